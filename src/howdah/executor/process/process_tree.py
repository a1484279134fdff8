"""Starts, finds, kills and reaps the processes of this container.

The executor is a sub-reaper (prctl(2), PR_SET_CHILD_SUBREAPER): a process that forks twice or starts a session of its
own becomes our child when its parent ends, so the tree below us holds everything the program ever started.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import termios
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_PTRACER = 0x59616D61  # so that helpers may trace the program, too, on nodes where only ancestors may
_libc = ctypes.CDLL(None, use_errno=True)

_FILTERS = frozenset(
    ["tee", "cat", "grep", "egrep", "sed", "awk", "gawk", "mawk", "tr", "cut", "ts", "head", "tail", "pv", "logger"]
)

Ended = Callable[[int, Any], None]
"""Called with wait status and resource usage, as os.wait4 returns them."""


class Reaper:
    """Starts child processes and reports how each ended; `reap` reaps all children, the adopted ones too."""

    def __init__(self) -> None:
        self._ended: Dict[int, Ended] = {}
        self._helpers: Set[int] = set()

    def spawn(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[int],
        ended: Ended,
        directory: Optional[str] = None,
        helper: bool = False,
        terminal: bool = False,
    ) -> int:
        """Run `argv` (found on the PATH of `environment`) in a process group of its own, and return its pid.

        `streams` become its stdin, stdout, stderr, and a fourth one its descriptor 3. The kernel kills it when this
        process dies. A `helper` is one of our own processes, which may outlive the program. With `terminal` the first
        stream is a terminal, which becomes the one of a session of its own.

        Raises:
            OSError: `argv` could not be executed, or the system has no room for a process.
        """
        reader, writer = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _exec_child(argv, environment, streams, directory, parent, writer, terminal)
        os.close(writer)
        with os.fdopen(reader, "rb") as failure:
            reason = failure.read()
        if reason:
            os.waitpid(pid, 0)
            code = int(reason)
            raise OSError(code, os.strerror(code), argv[0])
        self._ended[pid] = ended
        if helper:
            self._helpers.add(pid)
        return pid

    def reap(self) -> bool:
        """Reap every ended child, after each SIGCHLD; return True when no child, living or dead, is left.

        The result comes from the kernel itself. The lists of /proc (`children`) may miss a process while others come
        and go.
        """
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            self._helpers.discard(pid)
            ended = self._ended.pop(pid, None)
            if ended is not None:
                ended(status, usage)

    @property
    def has_helpers(self) -> bool:
        """Return whether a helper runs."""
        return bool(self._helpers)

    def program_processes(self) -> List[int]:
        """List the living processes below this one but our helpers, as far as /proc knows them."""
        helpers = {pid for helper in self._helpers for pid in tree(helper)}
        return [pid for pid in descendants() if pid not in helpers]

    def end_everything(self, limit: float) -> List[int]:
        """Kill all descendants until none is left or `limit` seconds are over; return those left. It blocks."""
        deadline = time.monotonic() + limit
        while not self.reap():
            left = descendants()
            if time.monotonic() > deadline:
                return left
            for pid in left:
                kill(pid, signal.SIGKILL)
            time.sleep(0.002)
        return []


def _exec_child(
    argv: Sequence[str],
    environment: Mapping[str, str],
    streams: Sequence[int],
    directory: Optional[str],
    parent: int,
    failure: int,
    terminal: bool,
) -> None:
    """Turn the forked child into `argv`, or write an errno to `failure`, which exec closes; this never returns."""
    try:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _libc.prctl(_PR_SET_PTRACER, parent, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        # A program gets no session: the kernel schedules each as a group of its own (sched_autogroup), and ranks that
        # wait for each other in every step train 5 to 8 % slower apart.
        (os.setsid if terminal else os.setpgrp)()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if failure < len(streams):
            failure = fcntl.fcntl(failure, fcntl.F_DUPFD_CLOEXEC, len(streams))
        for target, stream in enumerate(streams):
            os.dup2(stream, target)
        if terminal:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        if directory is not None:
            os.chdir(directory)
        os.execvpe(argv[0], list(argv), dict(environment))  # noqa: S606
    except OSError as error:
        os.write(failure, str(error.errno or 0).encode())
    except BaseException:
        os.write(failure, b"22")
    finally:
        os._exit(127)


def adopt_orphans(adopt: bool = True) -> None:
    """Become the parent of every descendant whose own parent ends, or stop that. The setting survives exec."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0)


def read(path: str) -> bytes:
    """Read a file of /proc; return nothing when it is gone or not readable.

    The file ends where the kernel returns no bytes: before that the kernel returns whole lines, so often fewer bytes
    than were asked for.
    """
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        found = b""
        while data := os.read(file, 1 << 13):
            found += data
        return found
    except OSError:
        return b""
    finally:
        os.close(file)


def children(pid: int) -> List[int]:
    """List living and unreaped children of `pid`, from /proc/PID/task/*/children (proc(5))."""
    found: List[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found.extend(int(word) for word in read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def children_by_parent() -> Dict[int, List[int]]:
    """Map parents to children by field 4 of proc(5) stat, for kernels that list no children."""
    found: Dict[int, List[int]] = {}
    for entry in os.listdir("/proc"):
        fields = read(f"/proc/{entry}/stat").rpartition(b")")[2].split() if entry.isdigit() else []
        if len(fields) > 1:
            found.setdefault(int(fields[1]), []).append(int(entry))
    return found


def tree(pid: int) -> List[int]:
    """List `pid` and all its descendants."""
    listed = os.path.exists(f"/proc/{pid}/task/{pid}/children")
    by_parent = {} if listed else children_by_parent()
    found = [pid]
    for parent in found:
        found.extend(children(parent) if listed else by_parent.get(parent, ()))
    return found


def descendants() -> List[int]:
    """List all descendants of this process."""
    return tree(os.getpid())[1:]


def group(pid: int) -> int:
    """Return the id of a process's group; 0 when the process is gone."""
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def filters(pids: Sequence[int]) -> Set[int]:
    """Return the processes that only pass on what another of them prints, as `tee` does. They end when that process
    ends; while it saves, it may still print to them."""
    named = [pid for pid in pids if name(pid) in _FILTERS]
    if not named:
        return set()
    printed = {_pipe(pid, stream) for pid in pids for stream in (1, 2)} - {""}
    return {pid for pid in named if _pipe(pid, 0) in printed}


def _pipe(pid: int, stream: int) -> str:
    """Return the name of the pipe that a process has as a standard stream; "" for anything else."""
    try:
        target = os.readlink(f"/proc/{pid}/fd/{stream}")
    except OSError:
        return ""
    return target if target.startswith("pipe:") else ""


def name(pid: int) -> str:
    """Return the kernel's name of a process, for messages."""
    return read(f"/proc/{pid}/comm").decode("utf-8", "replace").strip() or "?"


def kill(pid: int, number: int) -> None:
    """Send signal `number`, unless the process is gone or belongs to another user."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def kill_group(group: int, number: int) -> None:
    """Send signal `number` to a whole process group, unless it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
