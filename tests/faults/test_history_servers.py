"""Tests history servers as processes: a full disk, two on one store, a killed one, a destroyed index."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from history_jobs import begun, ended, job_id, whole, write
from local_jobs import LIMIT_S, RunningCommand, eventually

from howdah.spec import State

LIMITED = """
import resource, runpy, sys
limit = int(sys.argv.pop(1))
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
runpy.run_module("howdah.history", run_name="__main__", alter_sys=True)
"""


class Served:
    """A server's process and its link."""

    def __init__(self, running: RunningCommand) -> None:
        self.running, self.process = running, running.process
        self.base, _, self.token = running.link.partition("/#token=")

    def jobs(self, query: str = "") -> dict[str, Any]:
        """A page of the list."""
        address = f"{self.base}/api/v1/jobs?token={self.token}{query}"
        with urllib.request.urlopen(address, timeout=LIMIT_S) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def until(self, wanted: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """The list, as soon as it is as wanted."""
        last: dict[str, Any] = {}

        def is_wanted() -> bool:
            with contextlib.suppress(urllib.error.HTTPError):
                last.update(self.jobs())
                return wanted(last)
            return False

        eventually(is_wanted, what, output=lambda: f"{last}\n{self.running.text}")
        return last

    def until_total(self, number: int) -> dict[str, Any]:
        """The list, as soon as it has so many jobs."""
        return self.until(lambda found: found["total"] == number, f"{number} jobs in the list")


@contextlib.contextmanager
def server(place: Path, limit: int = 0) -> Iterator[Served]:
    environment = {**os.environ, "HOWDAH_HOME": str(place)}
    command = [sys.executable, "-c", LIMITED, str(limit), "--engine", "local", "--pause", "0.05"]
    running = RunningCommand(command, environment, place / f"server-{time.time_ns()}")
    try:
        yield Served(running)
    finally:
        running.process.terminate()
        running.done()


def index_of(place: Path) -> Path:
    (found,) = (place / "state" / "history").glob("*/index.sqlite")
    return found


def test_a_full_disk_serves_what_is_known_and_says_so(tmp_path: Path) -> None:
    jobs = tmp_path / "state"
    for number in range(20):
        whole(jobs, number)
    with server(tmp_path) as first:
        first.until_total(20)
    for number in range(20, 400):
        whole(jobs, number, said="x" * 300)
    with server(tmp_path, limit=index_of(tmp_path).stat().st_size) as full:
        told = full.until(lambda found: bool(found["problems"]), "a problem in the list")
        assert "the index can't be written" in told["problems"][0]
        assert told["total"] >= 20
        assert full.jobs("&name=job-19")["total"] == 1
        assert full.process.poll() is None
    with server(tmp_path) as room:
        assert room.until_total(400)["problems"] == []


def test_two_on_one_store_and_the_second_goes_on_when_the_first_is_killed(tmp_path: Path) -> None:
    whole(tmp_path / "state", 1)
    with server(tmp_path) as first:
        first.until_total(1)
        with server(tmp_path) as second:
            second.until_total(1)
            assert second.token == first.token
            whole(tmp_path / "state", 2)
            second.until_total(2)
            first.process.send_signal(signal.SIGKILL)
            assert first.running.done() == -signal.SIGKILL
            whole(tmp_path / "state", 3)
            second.until_total(3)


def test_two_with_places_of_their_own_on_one_store(tmp_path: Path) -> None:
    """As on two machines that see the same jobs."""
    for name in ("one", "other"):
        (tmp_path / name / "state").mkdir(parents=True)
        (tmp_path / name / "state" / "jobs").symlink_to(tmp_path / "shared" / "jobs")
    write(tmp_path / "shared", job_id(1), begun(1))
    with server(tmp_path / "one") as one, server(tmp_path / "other") as other:
        one.until_total(1)
        write(tmp_path / "shared", job_id(1), ended(1, State.FAILED, "why"))
        for each in (one, other):
            found = each.until(has_state("FAILED"), "the job's failure")
            assert found["jobs"][0]["diagnostics"] == "why"


def test_an_index_that_is_destroyed_is_made_anew(tmp_path: Path) -> None:
    whole(tmp_path / "state", 1)
    with server(tmp_path) as served:
        served.until_total(1)
    index = index_of(tmp_path)
    size = index.stat().st_size
    index.write_bytes(index.read_bytes()[:4096] + os.urandom(size - 4096))
    whole(tmp_path / "state", 2)
    with server(tmp_path) as served:
        served.until_total(2)


def test_logs_of_any_size_leave_its_memory_small(tmp_path: Path) -> None:
    log = write(tmp_path / "state", job_id(1), begun(1))
    with server(tmp_path) as served:
        served.until(has_state("RUNNING"), "the running job")
        before_kb = peak_kb(served.process.pid)
        with log.open("ab") as file:
            for _ in range(64):
                file.write(b"x" * (1 << 20))
            file.write(b"\n")
        write(tmp_path / "state", job_id(1), ended(1))
        served.until(has_state("SUCCEEDED"), "the job's end")
        assert peak_kb(served.process.pid) - before_kb < 32 << 10


def has_state(state: str) -> Callable[[dict[str, Any]], bool]:
    return lambda found: bool(found["jobs"]) and found["jobs"][0]["state"] == state


def peak_kb(pid: int) -> int:
    """The most memory that a process has had, in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def test_a_server_that_is_told_to_end_stops_in_order(tmp_path: Path) -> None:
    for number in range(1000):
        whole(tmp_path / "state", number)
    with server(tmp_path) as served:
        served.until(lambda found: found["total"] > 0, "a job in the list")
        served.process.terminate()
        assert served.running.done() == 0
    with contextlib.closing(sqlite3.connect(index_of(tmp_path))) as index:
        assert index.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert index.execute("SELECT count(*) FROM job").fetchone()[0] > 0
