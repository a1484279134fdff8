"""Distinguishes a process from a later one with the same number: by the boot, and by the time of its start."""

from __future__ import annotations

from pathlib import Path


def start_of(pid: int) -> int:
    """Return when a process started, in clock ticks since boot (field 22 of proc(5) stat); 0 if it is gone or a zombie.

    Raises:
        OSError: this process cannot look, because it has too many open files for instance.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def identity_of(pid: int) -> str:
    """Return a text that no other process ever has: the id of the boot, and the start; "" if it is gone or a zombie.
    Raises as `start_of`."""
    ticks = start_of(pid)
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}:{ticks}" if ticks else ""
