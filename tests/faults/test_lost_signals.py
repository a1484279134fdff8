"""Tests that a signal ends a command and its job wherever it comes: in a finalizer or a callback, where Python drops
what a handler raises, or in the middle of what must be done wholly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.engines.local.engine import LocalEngine
from howdah.spec import State

LIMIT_S = 60.0
PROGRAM = Path(__file__).with_name("signal_at.py")
RUN = ("run", "--logs", "none", "--", "/bin/sleep", "600")
TONY = ("tony", "local", "--executes", "exec sleep 600", "--conf", "tony.am.memory=128m")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalEngine]:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path))
    engine = LocalEngine({})
    yield engine
    for job in engine.describe():
        engine.cancel(job.id)


@pytest.mark.parametrize(
    ("place", "number", "command", "status"),
    [
        ("response", signal.SIGINT, RUN, 2),
        ("codec", signal.SIGINT, RUN, 2),
        ("response", signal.SIGHUP, TONY, 255),
        ("import", signal.SIGTERM, TONY, 255),
        pytest.param(
            "dataclass",
            signal.SIGTERM,
            TONY,
            255,
            marks=pytest.mark.skipif(sys.version_info >= (3, 12), reason="fields are not called there any more"),
        ),
    ],
)
def test_a_signal_where_it_would_be_lost(
    engine: LocalEngine, tmp_path: Path, place: str, number: int, command: tuple[str, ...], status: int
) -> None:
    arguments = [sys.executable, str(PROGRAM), place, str(int(number)), *command]
    log = tmp_path / "out"
    with log.open("wb") as out:
        process = subprocess.Popen(arguments, env=dict(os.environ), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        assert process.wait(LIMIT_S) == status, log.read_text()
    except subprocess.TimeoutExpired:
        pytest.fail(f"the signal did not end the command, which said: {log.read_text()}")
    finally:
        process.kill()
        process.wait()
    assert f"signal {int(number)} in " in log.read_text()
    assert [job.state for job in engine.describe()] == [State.CANCELLED], log.read_text()
