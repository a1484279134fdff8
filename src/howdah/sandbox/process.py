"""Starts and signals daemons. A process is identified by its pid and its start time (from /proc), so that another
process with the same pid is never signalled."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from howdah.localfiles.process_identity import identity_of
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
        started = identity_of(pid)
        return cls(pid, started) if started else None

    def alive(self) -> bool:
        _reap(self.pid)
        return self.started != "" and identity_of(self.pid) == self.started

    def begun(self) -> float:
        """Return when the process was started, in seconds since 1970."""
        ticks = int(self.started.rpartition(":")[2] or 0)
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):  # it ends just now
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
    return Process(pid, identity_of(pid))


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
    return with_variables({name: f"{directory}/"})


def with_variables(beginnings: Mapping[str, str]) -> list[Process]:
    """Return this user's processes that have all these environment variables, with values that begin in this way. A
    value that ends with a NUL must be equal."""
    wanted = [f"\0{name}={beginning}".encode() for name, beginning in beginnings.items()]
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended, or another user's
            environment = b"\0" + (entry / "environ").read_bytes()
            if all(each in environment for each in wanted):
                found.append(Process.from_pid(int(entry.name)))
    return list(filter(None, found))


def with_socket_below(directory: Path, command: str) -> list[Process]:
    """Return this user's processes with the name `command` that listen at a Unix socket below `directory`."""
    rows = (line.split(" ") for line in Path("/proc/net/unix").read_text().splitlines())
    wanted = {f"socket:[{row[-2]}]" for row in rows if row[-1].startswith(f"{directory}/")}
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_meant = command_name(int(entry.name)) == command
            if is_meant and wanted.intersection(str(file.readlink()) for file in (entry / "fd").iterdir()):
                found.append(Process.from_pid(int(entry.name)))
    return list(filter(None, found))


def with_descendants(processes: Iterable[Process]) -> list[Process]:
    """Return these processes, and all of their descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            children.setdefault(int(parent), []).append(int(entry.name))
    found = list(dict.fromkeys(processes))
    for ancestor in found:  # which grows meanwhile
        started = map(Process.from_pid, children.get(ancestor.pid, ()))
        found += [each for each in started if each is not None and each not in found]
    return found


def command_name(pid: int) -> str:
    """Return the name of a process's program; "" after the process has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def command_line(pid: int) -> str:
    """Return the command line of a process; "" after it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def _reap(pid: int) -> None:
    if pid in _spawned:  # no other child of this process is ours to reap
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
