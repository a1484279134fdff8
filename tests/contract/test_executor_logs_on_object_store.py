"""Tests an executor that stores its logs on an object store, with a real server of its protocol."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conductor import Conductor

from howdah.logs.store import logs_of_attempt
from howdah.spec import uris
from howdah.storage.factory import filesystem
from howdah.wire.launch_messages import STORES_LOGS
from howdah.wire.messages import Assignment, Goal, Phase

pytestmark = pytest.mark.usefixtures("s3")
Start = Callable[[str], tuple[Conductor, str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start an executor of worker:1, whose program runs a line; return its master and the URI of its logs."""
    started: list[Conductor] = []

    def start(line: str) -> tuple[Conductor, str]:
        master = Conductor(tmp_path, Assignment((sys.executable, "-uc", line)))
        started.append(master)
        job = f"s3://howdah/{os.urandom(4).hex()}/jobs/job-1"
        aws = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        master.start({"HOWDAH_DIRECTORY": job, STORES_LOGS: "1", **aws})
        return master, f"{job}/tasks/worker-1/1"

    yield start
    for one in started:
        one.close()


def test_the_logs_are_there_before_the_master_hears_of_the_end(start: Start) -> None:
    master, logs = start("import os, sys; print('out', 'HOWDAH_STORES_LOGS' in os.environ); sys.exit('err')")
    assert master.run().exit is not None
    files = filesystem(logs)
    assert files.read_bytes(f"{logs}/stdout") == b"out False\n"
    assert files.read_bytes(f"{logs}/stderr") == b"err\n"
    directory, found = (
        logs.removesuffix("/tasks/worker-1/1"),
        sorted(uris.name(each.uri) for each in files.children(logs)),
    )
    assert found == ["executor.log", "stderr", "stdout", "times"]
    stored = logs_of_attempt(directory, "worker-1", 1, "")
    assert stored.chunk("stderr", -3, 100) == (1, 4, b"rr\n")
    with pytest.raises(FileNotFoundError):
        logs_of_attempt(directory, "worker-1", 2, "").size("stdout")
    assert master.leave() == 0


def test_a_terminated_executor_stores_what_was_printed(start: Start) -> None:
    master, logs = start("import time; print('begun'); time.sleep(600)")
    master.phase(Phase.JOINED)
    master.set_orders(Goal.RUN)
    deadline = time.monotonic() + 60
    while b"begun\n" not in master.output():  # an unbuffered program writes the end of a line by itself
        assert time.monotonic() < deadline, master.log()
        time.sleep(0.02)
    assert master.executor is not None
    master.executor.send_signal(signal.SIGTERM)
    assert master.exit_status() == 143
    assert filesystem(logs).read_bytes(f"{logs}/stdout") == b"begun\n"
