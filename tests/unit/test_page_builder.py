"""Tests that the builder of the page says which of its steps took too long, and checks no sources twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from page_script import page_builder


@pytest.mark.parametrize("limit_s", [0.05, -1.0])
def test_a_step_that_takes_too_long_is_named(limit_s: float) -> None:
    builder = page_builder()
    command = [sys.executable, "-c", "import time; time.sleep(300)"]
    with pytest.raises(builder.NotBuilt, match=r"^eslint took longer than the 0 s that it had$"):
        builder._run("eslint", command, [sys.executable], limit_s)


def test_sources_that_have_passed_are_not_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder, ran, status = page_builder(), list[str](), 0
    source = tmp_path / "src/a.ts"
    source.parent.mkdir()
    source.write_text("one")

    def run(step: str, command: list[str], node: list[str], limit_s: float) -> subprocess.CompletedProcess[str]:
        ran.append(step)
        return subprocess.CompletedProcess(command, status, "", "")

    for name, value in {"FRONTEND": tmp_path, "GENERATED": tmp_path, "CHECK_SOURCES": [], "_run": run}.items():
        monkeypatch.setattr(builder, name, value)
    monkeypatch.setattr(builder, "CHECKED", tmp_path / "src/.checked")
    monkeypatch.setattr(builder, "find_node", lambda: [sys.executable])
    for name in ("generate", "_install", "_make_types"):
        monkeypatch.setattr(builder, name, lambda *_, **__: None)
    monkeypatch.setattr(builder, "_digest", lambda _: source.read_text())
    all_checks = [script for script, *_ in builder.CHECKS]
    for text, expected in (("one", all_checks), ("one", []), ("two", all_checks)):
        source.write_text(text)
        ran.clear()
        builder.check()
        assert ran == expected
    source.write_text("three")
    status = 1
    for _ in range(2):
        ran.clear()
        with pytest.raises(builder.NotSound):
            builder.check()
        assert ran == all_checks[:1]
