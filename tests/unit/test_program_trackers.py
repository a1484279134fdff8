"""Tests what happens when a tracker takes no metrics. tests/e2e/test_trackers.py has the trackers themselves."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from howdah.program import trackers


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("", ""),
        ("trackio", ""),  # the program does not use it
        ("wandb,tensorboard", "metrics do not reach tensorboard: HOWDAH_METRICS_TO takes mlflow, trackio, wandb"),
        ("wandb", "metrics do not reach wandb: no connection"),
    ],
)
def test_a_tracker_that_takes_no_metrics_is_told_once(
    chosen: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def log(values: dict[str, float], step: int) -> None:
        raise OSError("no connection")

    run = None if "tensorboard" in chosen else object()
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=run, log=log))
    monkeypatch.setenv(trackers.VARIABLE, chosen)
    monkeypatch.setattr(trackers, "_warned", False)
    for step in range(3):
        trackers.add("loss", 0.5, step)
    assert capsys.readouterr().err == (f"[howdah.program: {said}]\n" if said else "")
