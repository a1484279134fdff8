"""Tests that the supervisor of local jobs outlives a full disk: it starts no job, and starts it when there is room."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from howdah.engines.local.machine import Machine
from howdah.supervisor import __main__ as program
from howdah.supervisor.masters import START, start_record
from howdah.supervisor.state import MachineState

WITHOUT_ROOM = 'ulimit -S -f 0 && exec "$@"'
"""No file may grow, as on a full disk; neither may the supervisor's log."""


def test_a_job_begins_when_there_is_room(tmp_path: Path) -> None:
    state, begun = MachineState.for_home(str(tmp_path)), tmp_path / "begun"
    job = Path(state.jobs_directory, "local-1")
    job.mkdir(parents=True)
    (job / START).write_bytes(start_record(["/bin/sh", "-c", f"touch {begun}"], {}, 1))
    with state.change() as change:
        change.enqueue(job.name, (1, 1, 0), Machine.detect())
    Path(state.supervisor_lock).touch()
    os.mkfifo(state.wake_fifo, 0o600)
    os.utime(state.directory, (0, 0))
    command = ["/bin/sh", "-c", WITHOUT_ROOM, "sh", sys.executable, "-I", "-S", str(program.__file__), state.directory]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as supervisor:

        def wait_until(happened: Callable[[], bool]) -> None:
            while not happened():
                assert supervisor.poll() is None, "it has ended"
                time.sleep(0.01)

        try:
            wait_until(lambda: Path(state.directory).stat().st_mtime > 0)  # it has tried to write a file there
            assert not begun.exists()
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.prlimit(supervisor.pid, resource.RLIMIT_FSIZE, (hard, hard))
            wait_until(begun.exists)
        finally:
            supervisor.kill()
