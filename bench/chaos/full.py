"""Fills the disk of a node or of a server, so that nothing more can be written there."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from howdah.sandbox import Sandbox

SIZE_MIB, DATA_MIB = 384, 2048
"""A DataNode must have room for a whole block of each file that is being written."""
SERVERS = {"nn": "dfs/name", "dn1": "dfs/data-dn1", "rm": "rmstate"}
"""What fills for them: the file system's own log, blocks, the applications that are known."""
_PIECE, _AGAIN_S = 1 << 20, 0.05


def small_disks(sandbox: Sandbox, nodes: int) -> list[Path]:
    """Give each NodeManager a disk of its own for its containers' directories and logs, and SERVERS for what they
    keep. Only root may."""
    managers = [f"nm{number}" for number in range(1, nodes + 1)]
    for daemon in (*managers, *reversed(SERVERS)):
        sandbox.stop(daemon)
    disks = [sandbox.run_dir / directory for directory in (*managers, *SERVERS.values())]
    for disk in disks:
        before = disk.with_name(f"{disk.name}-before")
        disk.rename(before)
        disk.mkdir()
        size = DATA_MIB if disk == sandbox.run_dir / SERVERS["dn1"] else SIZE_MIB
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}m,mode=700", "tmpfs", str(disk)], check=True)
        shutil.copytree(before, disk, dirs_exist_ok=True)
    sandbox.up()
    return disks


def unmount(disks: list[Path]) -> None:
    """Unmount the small disks."""
    for disk in disks:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def keep_full(disk: Path, seconds: float) -> None:
    """Keep a directory's disk full for so long, whatever is removed meanwhile."""
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
