"""Starts and wakes the supervisor process, for the commands that submit, list and cancel jobs, and for masters."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

from howdah.supervisor.state import MachineState

_KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TZ", "USER")
"""Variables of the submitter that the supervisor gets: no others, because it serves jobs of several submitters."""


class _Detached(subprocess.Popen[bytes]):
    """A process that may outlive this one without a ResourceWarning."""

    def __del__(self) -> None:
        self.poll()


_started: list[_Detached] = []


def is_running(state: MachineState) -> bool:
    """Return whether the supervisor runs: it alone has the FIFO open for reading."""
    return _send(state, b"")


def ensure_running(state: MachineState) -> None:
    """Wake the supervisor; start it if it does not run.

    Raises:
        OSError: the supervisor cannot be started.
    """
    for process in [process for process in _started if process.poll() is not None]:
        _started.remove(process)
    if not _send(state, b"."):
        _started.append(_start(state))


def wake(state: MachineState) -> None:
    """Wake the supervisor, if it runs, because the state of a job has changed."""
    _send(state, b".")


def _send(state: MachineState, data: bytes) -> bool:
    """Send to the supervisor; return whether it runs."""
    try:
        fifo = os.open(state.wake_fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENXIO):  # there is no FIFO, or no process reads it
            return False
        raise
    try:
        if not stat.S_ISFIFO(os.fstat(fifo).st_mode):
            return False
        if data:
            os.write(fifo, data)
    except BlockingIOError:  # the supervisor has enough to read
        pass
    except BrokenPipeError:
        return False
    finally:
        os.close(fifo)
    return True


def _start(state: MachineState) -> _Detached:
    state.make()
    program = str(Path(__file__).with_name("__main__.py"))
    with Path(state.directory, "supervisor.log").open("ab") as log:
        return _Detached(
            # -I and -S: the supervisor needs nothing that is installed, and no file beside it may pass for a module.
            [sys.executable, "-I", "-S", program, state.directory],
            cwd="/",
            env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
