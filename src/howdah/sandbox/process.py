"""Starts and signals daemons. A process is identified by its pid and its start time (from /proc), so that another
process with the same pid is never signalled."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from howdah.engines.local.processes import start_of
from howdah.spec.values import dataclass

TERM_LIMIT_S = 10.0
KILL_LIMIT_S = 5.0
_POLL_S = 0.05
_spawned: set[int] = set()


@dataclass(frozen=True)
class Process:
    """A process of the sandbox."""

    pid: int
    """The process id."""
    started: str
    """The id of the boot, and the clock ticks from the boot to the start."""

    @classmethod
    def from_pid(cls, pid: int) -> Process | None:
        started = _started(pid)
        return cls(pid, started) if started else None

    def alive(self) -> bool:
        _reap(self.pid)
        return _started(self.pid) == self.started

    def begun(self) -> float:
        """Return when the process was started, in seconds since 1970."""
        ticks = int(self.started.rpartition(":")[2] or 0)
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")

    def send(self, number: int) -> None:
        if self.alive():
            os.kill(self.pid, number)

    def rss_mib(self) -> int:
        """Return the resident memory, 0 after the process has ended."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def spawn(command: list[str], environment: Mapping[str, str], log: Path) -> Process:
    """Start `command` in its own session, with its output appended to `log`; it outlives this process."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    pid = os.posix_spawn(command[0], command, environment, file_actions=actions, setsid=True)
    _spawned.add(pid)
    # A child has an entry in /proc, with its start time, until it is reaped.
    return Process(pid, _started(pid) or "")


def stop(processes: Iterable[Process], number: int = signal.SIGTERM) -> None:
    """Signal all processes, wait TERM_LIMIT_S for them together, then kill those that are left."""
    left = [process for process in processes if process.alive()]
    for signalled, limit in ((number, TERM_LIMIT_S), (signal.SIGKILL, KILL_LIMIT_S)):
        for process in left:
            process.send(signalled)
        left = wait_ended(left, limit)


def wait_ended(processes: Sequence[Process], limit_s: float) -> list[Process]:
    """Return the processes that are still alive after at most `limit_s`."""
    deadline = time.monotonic() + limit_s
    left = [process for process in processes if process.alive()]
    while left and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        left = [process for process in left if process.alive()]
    return left


def with_variable_below(name: str, directory: Path) -> list[Process]:
    """Return this user's processes whose environment variable `name` holds a path below `directory`."""
    wanted = f"\0{name}={directory}/".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended, or another user's
            if wanted in b"\0" + (entry / "environ").read_bytes():
                found.append(Process.from_pid(int(entry.name)))
    return list(filter(None, found))


def _started(pid: int) -> str | None:
    ticks = start_of(pid)
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}:{ticks}" if ticks else None


def _reap(pid: int) -> None:
    if pid in _spawned:  # no other child of this process is ours to reap
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
