"""Tests what happens when a tracker takes no metrics. tests/e2e/test_trackers.py has the trackers themselves."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from howdah.program import trackers


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("", {}),
        ("trackio", {}),  # the program does not use it
        ("wandb", {"wandb": "no connection"}),
        (
            "tensorboard wandb",
            {"tensorboard": "HOWDAH_METRICS_TO takes mlflow, trackio, wandb", "wandb": "no connection"},
        ),
    ],
)
def test_standard_error_names_a_tracker_that_takes_no_metrics_once(
    chosen: str, said: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def log(values: dict[str, float]) -> None:
        raise OSError("no connection")

    run = SimpleNamespace(id="run", log=log, define_metric=lambda *_, **__: None)
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=run))
    monkeypatch.setenv(trackers.VARIABLE, chosen)
    for state in ("_seen", "_next_steps"):
        monkeypatch.setattr(trackers, state, {})
    for state in ("_warned", "_on_own_axis"):
        monkeypatch.setattr(trackers, state, set())
    for step in range(3):
        trackers.add("loss", 0.5, step, 1.0)
    lines = [f"[howdah.program: metrics do not reach {tracker}: {reason}]\n" for tracker, reason in said.items()]
    assert capsys.readouterr().err == "".join(lines)
