"""A container's memory limit: its own control group, below howdah's (version 1) or beside it (version 2).

In version 2 a group with limited children may hold no processes, so the container's group is made in the parent, which
a user's session may write. Where neither place can be written, limits are not enforced, and a note in the job says so.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from pathlib import Path

from howdah.engines.processes import kill_all
from howdah.spec.message import message

_ROOT = Path("/sys/fs/cgroup")


class MemoryGroup:
    """The control group at `directory`. It is gone after its last process has ended and `remove` was called."""

    def __init__(self, directory: Path, version: int) -> None:
        self.directory, self.version = directory, version

    @classmethod
    def create(cls, name: str, limit_mib: int) -> MemoryGroup:
        """Create a group that may use `limit_mib` MiB of memory, and no swap.

        Raises:
            OSError: control groups cannot be written here.
        """
        parent, version = _parent()
        group = cls(parent / f"howdah-{name}", version)
        group.directory.mkdir(exist_ok=True)
        try:
            group._set_limit(limit_mib << 20)
        except OSError:
            group.remove()
            raise
        return group

    @classmethod
    def at(cls, directory: str) -> MemoryGroup:
        """Return a group that was created earlier, perhaps by another process."""
        path = Path(directory)
        return cls(path, 1 if (path / "memory.limit_in_bytes").exists() else 2)

    def entering(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """Return a command that enters the group, then becomes `command`. If the process were moved in later, it might
        have children outside."""
        enter = 'echo $$ > "$0" || exit 126; exec "$@"'
        return ("/bin/sh", "-c", enter, str(self.directory / "cgroup.procs"), *command)

    def oom_kill_text(self) -> str:
        """Return a sentence if the kernel has killed a process of the group because of its memory, else ""."""
        kills = self._read("memory.events" if self.version == 2 else "memory.oom_control").partition("oom_kill ")[2]
        if not kills or int(kills.split()[0]) == 0:
            return ""
        limit = self._mib("memory.max" if self.version == 2 else "memory.limit_in_bytes")
        used = self._mib("memory.peak" if self.version == 2 else "memory.max_usage_in_bytes") or limit
        return message("killed by the kernel: used {used} MiB of {limit} MiB", used=used, limit=limit)

    def kill(self) -> None:
        """KILL every process of the group, as `kill_all` does."""
        kill_all(lambda: map(int, self._read("cgroup.procs").split()))

    def remove(self) -> None:
        """Remove the group. The kernel may need a moment for that after the last process has ended."""
        for _ in range(50):
            try:
                self.directory.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.002)
            else:
                return

    def _set_limit(self, limit: int) -> None:
        self._write("memory.max" if self.version == 2 else "memory.limit_in_bytes", limit)
        with contextlib.suppress(OSError):  # a kernel that does not limit swap
            self._write(*(("memory.swap.max", 0) if self.version == 2 else ("memory.memsw.limit_in_bytes", limit)))

    def _write(self, name: str, value: int) -> None:
        # Not created: a name the kernel does not offer is an error.
        file = os.open(self.directory / name, os.O_WRONLY)
        try:
            os.write(file, str(value).encode())
        finally:
            os.close(file)

    def _read(self, name: str) -> str:
        """Read a file of the group; "" if the group is gone.

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
    """Return the directory in which groups can be made, and the version of control groups there."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()]
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            own = _ROOT / "memory" / path.lstrip("/")
            if os.access(own, os.W_OK):
                return own, 1
    for _, controllers, path in lines:
        own = _ROOT / path.lstrip("/")
        for parent in (own, own.parent):
            enabled = parent / "cgroup.subtree_control"
            if not controllers and os.access(parent, os.W_OK) and enabled.exists() and "memory" in enabled.read_text():
                return parent, 2
    raise PermissionError("no control group of this machine can be written")
