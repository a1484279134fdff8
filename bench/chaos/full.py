"""No room: on the disk that a node's containers work on, or in HDFS for what this user's jobs keep there."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path

from howdah.sandbox import Sandbox

SIZE_MIB = 384
_PIECE, _AGAIN_S = 1 << 20, 0.05


def small_disks(sandbox: Sandbox, nodes: int) -> list[Path]:
    """Give each NodeManager a disk of its own for its containers' directories and logs. Only root may."""
    disks = [sandbox.run_dir / f"nm{number}" for number in range(1, nodes + 1)]
    for disk in disks:
        sandbox.stop(disk.name)
    for disk in disks:
        disk.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m,mode=755", "tmpfs", str(disk)], check=True)
    sandbox.up()
    return disks


def unmount(disks: list[Path]) -> None:
    """Once nobody needs them any more."""
    for disk in disks:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def keep_full(disk: Path, seconds: float) -> None:
    """Not a byte more fits for so long, whatever is removed meanwhile."""
    filler = disk / "filler"
    deadline = time.monotonic() + seconds
    with filler.open("wb", buffering=0) as file:
        while time.monotonic() < deadline:
            _fill(file.fileno())
            time.sleep(_AGAIN_S)
    filler.unlink()


def _fill(file: int) -> None:
    piece = bytes(_PIECE)
    with contextlib.suppress(OSError):
        while True:
            os.write(file, piece)
