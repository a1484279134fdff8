"""A container's memory limit: a control group of its own, below ours (version 1) or beside it (version 2).

Version 2 lets no group have processes and limited children both, so there the sibling place is the one a user's
session is given. Where neither can be written, limits are not enforced, and the job is told so.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


class MemoryGroup:
    """One group, at `directory`. Gone when its last process is and `remove` was called."""

    def __init__(self, directory: Path, version: int) -> None:
        self.directory, self.version = directory, version

    @classmethod
    def create(cls, name: str, limit_mib: int) -> MemoryGroup:
        """A group that may use `limit_mib`, without swap.

        Raises:
            OSError: control groups cannot be written here.
        """
        parent, version = _parent()
        group = cls(parent / f"howdah-{name}", version)
        group.directory.mkdir(exist_ok=True)
        try:
            group._limit(limit_mib << 20)
        except OSError:
            group.remove()
            raise
        return group

    @classmethod
    def at(cls, directory: str) -> MemoryGroup:
        """One that was created earlier, by another process perhaps."""
        path = Path(directory)
        return cls(path, 1 if (path / "memory.limit_in_bytes").exists() else 2)

    def entering(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """A command that enters the group, then becomes `command`: moved in later, it might have children already."""
        enter = 'echo $$ > "$0" || exit 126; exec "$@"'
        return ("/bin/sh", "-c", enter, str(self.directory / "cgroup.procs"), *command)

    def verdict(self) -> str:
        """A sentence if the kernel has killed one of its processes for memory, else ""."""
        kills = self._read("memory.events" if self.version == 2 else "memory.oom_control").partition("oom_kill ")[2]
        if not kills or int(kills.split()[0]) == 0:
            return ""
        limit = self._mib("memory.max" if self.version == 2 else "memory.limit_in_bytes")
        used = self._mib("memory.peak" if self.version == 2 else "memory.max_usage_in_bytes") or limit
        return f"killed by the kernel: used {used} MiB of {limit} MiB"

    def kill(self, limit: float = 2.0) -> None:
        """KILL everything in it until nothing is left, at most `limit` seconds."""
        deadline = time.monotonic() + limit
        while (pids := self._read("cgroup.procs").split()) and time.monotonic() < deadline:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(pid), signal.SIGKILL)
            time.sleep(0.002)

    def remove(self) -> None:
        """Take it away; the kernel may need a moment after its last process has gone."""
        for _ in range(50):
            try:
                self.directory.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.002)
            else:
                return

    def _limit(self, limit: int) -> None:
        if self.version == 2:
            self._write("memory.max", limit)
            with contextlib.suppress(OSError):
                self._write("memory.swap.max", 0)
            return
        self._write("memory.limit_in_bytes", limit)
        with contextlib.suppress(OSError):
            self._write("memory.memsw.limit_in_bytes", limit)

    def _write(self, name: str, value: int) -> None:
        # Not created: a name the kernel does not offer is an error.
        file = os.open(self.directory / name, os.O_WRONLY)
        try:
            os.write(file, str(value).encode())
        finally:
            os.close(file)

    def _read(self, name: str) -> str:
        """A file of the group; "" when the group is gone.

        Raises:
            OSError: it cannot be read for another reason.
        """
        try:
            return (self.directory / name).read_text(encoding="ascii")
        except FileNotFoundError:
            return ""
        except OSError as error:
            if error.errno == errno.ENODEV:  # removed since it was opened
                return ""
            raise

    def _mib(self, name: str) -> int:
        text = self._read(name).strip()
        return int(text) >> 20 if text.isdigit() else 0


def _parent() -> tuple[Path, int]:
    """Where groups can be made. Raises PermissionError when nowhere."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()]
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            own = _ROOT / "memory" / path.lstrip("/")
            if os.access(own, os.W_OK):
                return own, 1
    for _, controllers, path in lines:
        own = _ROOT / path.lstrip("/")
        for place in (own, own.parent):
            enabled = place / "cgroup.subtree_control"
            if not controllers and os.access(place, os.W_OK) and enabled.exists() and "memory" in enabled.read_text():
                return place, 2
    raise PermissionError("no control group of this machine can be written")
