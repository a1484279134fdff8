"""Measures searching a task's output, from disk and memory, beside `cat` and `grep`. BENCH_LOG_MIB sets its size.

Ours steps back for the training beside it (nice 10), so what it is compared with does, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.report import Report, alternate, ratios
from bench.temp_home import temp_home
from howdah.executor.io.task_output import TaskOutput

MIB = int(os.environ.get("BENCH_LOG_MIB", "10240"))
ROUNDS = 3
OF_DISK, MEMORY_MB = 0.9, 40.0
"""Of the speed at which `cat` reads the file from the disk; and what searching may hold, whatever the size."""


def measure(report: Report) -> None:
    """Measure finding a word near the end, errors by their words, and a regular expression."""
    with temp_home() as home:
        path = home / "stdout"
        _write(path)
        _from_disk(report, path)
        for what, wish, rival in (
            ("a text", {"text": "needle in it"}, ["grep", "-F", "needle in it", str(path)]),
            ("errors", {"level": "error"}, ["grep", "-E", "rror|ERROR|xception|Traceback|FATAL", str(path)]),
            (
                "an expression",
                {"text": "needle [a-z]+ it", "regex": True},
                ["grep", "-E", "needle [a-z]+ it", str(path)],
            ),
        ):
            subjects: dict[str, Callable[[], float]] = {
                "howdah": lambda wish=wish: _ours(path, wish),  # type: ignore[misc]
                "grep": lambda rival=rival: _timed(rival),  # type: ignore[misc]
                "cat": lambda: _timed(["cat", str(path)]),
            }
            taken = alternate(subjects, ROUNDS, warm_ups=0)
            for name, seconds in taken.items():
                report.figure(f"{what} in {MIB} MiB: {name}", [MIB / one for one in seconds], "MiB/s")
            report.figure(f"grep's time ÷ ours, for {what}", ratios(taken["grep"], taken["howdah"]), "")
        report.target("the process that searches, most resident", _peak_mb(path), MEMORY_MB, " MB")


def _from_disk(report: Report, path: Path) -> None:
    """Measure a file that is not cached in memory, as most logs are."""

    def cold(search: Callable[[], float]) -> Callable[[], float]:
        def forgotten() -> float:
            with path.open("rb") as file:
                os.fsync(file)
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return search()

        return forgotten

    subjects = {
        "howdah": cold(lambda: _ours(path, {"text": "needle in it"})),
        "cat": cold(lambda: _timed(["cat", str(path)])),
    }
    taken = alternate(subjects, ROUNDS, warm_ups=0)
    for name, seconds in taken.items():
        report.figure(f"from the disk, a text in {MIB} MiB: {name}", [MIB / one for one in seconds], "MiB/s")
    ratio = report.figure("  of the disk's speed", ratios(taken["cat"], taken["howdah"]), "")
    report.target("search from the disk, of the disk's speed", ratio, OF_DISK, at_least=True)


def _write(path: Path) -> None:
    """Write the log as an executor does."""
    line = "2026-11-21 18:00:00,123 INFO step %08d loss 0.123456 examples/s 1234.5 lr 0.001 epoch 3 of 90 worker 7\n"
    block = "".join(line % number for number in range(10_000)).encode()
    printed = TaskOutput(str(path.parent), MIB << 22)
    log = printed.logs[path.name]
    while log.size < (MIB << 20) - len(block):
        log.write(block)
    log.write(b"2026-11-21 18:00:00,123 ERROR there is a needle in it\n")
    printed.close()


def _request(path: Path, wish: dict[str, object]) -> bytes:
    one = {"task": "worker:0", "attempt": 1, "stream": "stdout", "path": str(path)}
    return json.dumps({"files": [one], "query": wish}).encode()


def _ours(path: Path, wish: dict[str, object]) -> float:
    begun = time.monotonic()
    argv = [sys.executable, "-m", "howdah.logs.search"]
    done = subprocess.run(argv, input=_request(path, wish), stdout=subprocess.PIPE, check=True)
    seconds = time.monotonic() - begun
    answer = json.loads(done.stdout)
    assert len(answer["hits"]) == 1, answer
    assert answer["scanned_bytes"] == path.stat().st_size
    return seconds


def _timed(argv: list[str]) -> float:
    begun = time.monotonic()
    subprocess.run(["nice", "-n", "10", *argv], stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - begun


def _peak_mb(path: Path) -> float:
    argv = [sys.executable, "-m", "howdah.logs.search"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(_request(path, {"text": "nowhere"}))
        process.stdin.close()
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return usage.ru_maxrss / 1000
