"""What /proc says of howdah's own processes: memory in MB, CPU in seconds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def of_job(module: str, job_id: str) -> list[int]:
    """Processes that run `module` (howdah.master, howdah.executor) for this job; not who looks after them."""
    found = (pid for pid, text in _all() if f"\0{module}\0".encode() in text and job_id.encode() in text)
    return [pid for pid in found if b"warden.py" not in Path(f"/proc/{pid}/cmdline").read_bytes()]


def _all() -> Iterator[tuple[int, bytes]]:
    """Every process of ours with its command line and environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            yield int(folder.name), (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue


def resident_mb(pid: int) -> float:
    """VmRSS: pages in memory, shared ones counted whole. 1 MB is 1,000,000 bytes."""
    return _kib(Path(f"/proc/{pid}/status"), "VmRSS") * 1024 / 1e6


def proportional_mb(pid: int) -> float:
    """Pss: a page that n processes share counts 1/n."""
    return _kib(Path(f"/proc/{pid}/smaps_rollup"), "Pss") * 1024 / 1e6


def cpu_s(pid: int) -> float:
    """User and system time so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def _kib(file: Path, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", file.read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{file} does not tell {name}")
    return int(found[1])
