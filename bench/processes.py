"""Reads memory in MB and CPU in seconds of howdah's own processes from /proc."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def of_job(module: str, job_id: str) -> list[int]:
    """Return the processes that run `module` (howdah.master, howdah.executor) for this job."""
    return [pid for pid, text in _all() if f"\0{module}\0".encode() in text and job_id.encode() in text]


def of_home(home: Path) -> list[int]:
    """Return all processes that work below this HOWDAH_HOME, except this one."""
    return [pid for pid, text in _all() if f"{home}/".encode() in text and pid != os.getpid()]


def _all() -> Iterator[tuple[int, bytes]]:
    """Yield every process of this user with its command line and environment."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            yield int(directory.name), (directory / "cmdline").read_bytes() + (directory / "environ").read_bytes()
        except OSError:
            continue


def resident_mb(pid: int) -> float:
    """Return VmRSS: resident pages, shared ones counted whole. 1 MB is 1,000,000 bytes."""
    return _kib(Path(f"/proc/{pid}/status"), "VmRSS") * 1024 / 1e6


def proportional_mb(pid: int) -> float:
    """Return Pss: a page that n processes share counts 1/n."""
    return _kib(Path(f"/proc/{pid}/smaps_rollup"), "Pss") * 1024 / 1e6


def cpu_s(pid: int) -> float:
    """Return a process's user and system time so far."""
    return sum(_ticks(pid)[:2]) * _TICK_S


def ran_s(pid: int) -> float:
    """Return the time its living threads were on a core, exact where `cpu_s` counts in hundredths of a second."""
    schedules = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in schedules) / 1e9


def family_cpu_s(pid: int) -> float:
    """Return the same with its children, those that live and those that have ended."""
    living = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return (sum(_ticks(pid)) + sum(sum(_ticks(int(child))) for child in living)) * _TICK_S


def _ticks(pid: int) -> list[int]:
    """Return user and system time, its own and that of its ended children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(field) for field in fields[11:15]]


def _kib(file: Path, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", file.read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{file} does not tell {name}")
    return int(found[1])
