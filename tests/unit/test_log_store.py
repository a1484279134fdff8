"""Tests that a log which a program replaced by something else is not read, and that nobody waits for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from howdah.executor.identity import Identity
from howdah.executor.io.program_api_files import ProgramApiDir
from howdah.logs.query import LogQuery, SearchedStream
from howdah.logs.search import Search, _search_stream
from howdah.logs.store import DirectoryLogs
from howdah.wire import program_protocol as wire


@pytest.fixture(params=["a link", "a pipe", "a directory"])
def replaced(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory of logs whose `stdout` is none."""
    (tmp_path / "secret").write_text("secret\n" * 10)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "stderr").write_text("printed\n")
    if request.param == "a link":
        (logs / "stdout").symlink_to(tmp_path / "secret")
    elif request.param == "a pipe":
        os.mkfifo(logs / "stdout")
    else:
        (logs / "stdout").mkdir()
    return logs


def test_what_is_no_log_is_not_read(replaced: Path) -> None:
    with pytest.raises(OSError, match="is not a file that a task has printed to"):
        DirectoryLogs(replaced).chunk("stdout", 0, 100)
    assert DirectoryLogs(replaced).chunk("stderr", -4, 100) == (4, 8, b"ted\n")


def test_a_replaced_log_is_not_searched(replaced: Path) -> None:
    one = SearchedStream("worker:0", 1, "stdout", path=str(replaced / "stdout"))
    with pytest.raises(OSError, match="is not a file that a task has printed to"):
        list(_search_stream(one, Search(LogQuery("secret"), "worker:0", 1, "stdout")))


def test_progress_that_is_a_pipe_holds_no_executor(tmp_path: Path) -> None:
    here = ProgramApiDir(Identity("worker:0", 1, ("127.0.0.1", 1), b"k"), str(tmp_path))
    place = Path(here.variables({}, 1)[wire.VARIABLE])
    os.mkfifo(place / wire.PROGRESS_FILE)
    assert here.progress is None
    (place / wire.PROGRESS_FILE).unlink()
    (place / wire.PROGRESS_FILE).write_text("0.25")
    assert here.progress == 0.25
    (place / wire.PROGRESS_FILE).unlink()
    (tmp_path / "other").write_text("0.5")
    (place / wire.PROGRESS_FILE).symlink_to(tmp_path / "other")
    assert here.progress is None
