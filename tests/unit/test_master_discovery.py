"""Tests that looking for the next master leaves nothing behind, however the search ends."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.executor.event_loop import EventLoop
from howdah.executor.master_link.master_discovery import find_master


@pytest.fixture
def _sigchld() -> Iterator[None]:
    """Give SIGCHLD back to whom it was."""
    before = signal.getsignal(signal.SIGCHLD)
    yield
    signal.signal(signal.SIGCHLD, before)


LIMIT_S = 0.2
"""The server never answers: the longer the search may take, the longer the test."""


@pytest.mark.usefixtures("_sigchld")
def test_a_look_that_took_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        loop = EventLoop()
        loop.on_signal(signal.SIGCHLD, loop.reaper.reap)
        find_master(loop, f"hdfs://127.0.0.1:{silent.getsockname()[1]}/jobs/a", told.append, LIMIT_S)
        (directory,) = tmp_path.iterdir()
        (directory / ".half.part").write_text("x")  # as a helper leaves it that is ended at its limit
        while not told:
            loop.run_once()
    assert told == [None]
    assert list(tmp_path.iterdir()) == []
