"""Tests history servers as processes: a full disk, two on one store, a killed one, a destroyed index."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from history_jobs import begun, ended, job_id, whole, write

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

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.base, _, self.token = process.stdout.readline().strip().partition("/#token=")

    def jobs(self, query: str = "") -> dict[str, Any]:
        """A page of the list."""
        address = f"{self.base}/api/v1/jobs?token={self.token}{query}"
        with urllib.request.urlopen(address, timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def until(self, wanted: Callable[[dict[str, Any]], bool], seconds: float = 60.0) -> dict[str, Any]:
        """The list, as soon as it is as wanted."""
        deadline = time.monotonic() + seconds
        while True:
            found: dict[str, Any] = {}
            with contextlib.suppress(urllib.error.HTTPError):
                found = self.jobs()
                if wanted(found):
                    return found
            assert time.monotonic() < deadline, found
            time.sleep(0.1)


@contextlib.contextmanager
def server(place: Path, limit: int = 0) -> Iterator[Served]:
    environment = {**os.environ, "HOWDAH_HOME": str(place)}
    command = [sys.executable, "-c", LIMITED, str(limit), "--engine", "local"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Served(process)
        finally:
            process.terminate()
            process.communicate(timeout=20)


def index_of(place: Path) -> Path:
    (found,) = (place / "state" / "history").glob("*/index.sqlite")
    return found


def test_a_full_disk_serves_what_is_known_and_says_so(tmp_path: Path) -> None:
    jobs = tmp_path / "state"
    for number in range(20):
        whole(jobs, number)
    with server(tmp_path) as first:
        first.until(lambda found: found["total"] == 20)
    for number in range(20, 400):
        whole(jobs, number, said="x" * 300)
    with server(tmp_path, limit=index_of(tmp_path).stat().st_size) as full:
        told = full.until(lambda found: bool(found["problems"]))
        assert "the index can't be written" in told["problems"][0]
        assert told["total"] >= 20
        assert full.jobs("&name=job-19")["total"] == 1
        assert full.process.poll() is None
    with server(tmp_path) as room:
        assert room.until(lambda found: found["total"] == 400)["problems"] == []


def test_two_on_one_store_and_the_second_goes_on_when_the_first_is_killed(tmp_path: Path) -> None:
    whole(tmp_path / "state", 1)
    with server(tmp_path) as first:
        first.until(lambda found: found["total"] == 1)
        with server(tmp_path) as second:
            assert second.until(lambda found: found["total"] == 1)
            assert second.token == first.token
            whole(tmp_path / "state", 2)
            assert second.until(lambda found: found["total"] == 2)
            first.process.send_signal(signal.SIGKILL)
            first.process.wait(10)
            whole(tmp_path / "state", 3)
            assert second.until(lambda found: found["total"] == 3)


def test_two_with_places_of_their_own_on_one_store(tmp_path: Path) -> None:
    """As on two machines that see the same jobs."""
    for name in ("one", "other"):
        (tmp_path / name / "state").mkdir(parents=True)
        (tmp_path / name / "state" / "jobs").symlink_to(tmp_path / "shared" / "jobs")
    write(tmp_path / "shared", job_id(1), begun(1))
    with server(tmp_path / "one") as one, server(tmp_path / "other") as other:
        one.until(lambda found: found["total"] == 1)
        write(tmp_path / "shared", job_id(1), ended(1, State.FAILED, "why"))
        for each in (one, other):
            found = each.until(lambda found: bool(found["jobs"]) and found["jobs"][0]["state"] == "FAILED")
            assert found["jobs"][0]["diagnostics"] == "why"


def test_an_index_that_is_destroyed_is_made_anew(tmp_path: Path) -> None:
    whole(tmp_path / "state", 1)
    with server(tmp_path) as served:
        served.until(lambda found: found["total"] == 1)
    index = index_of(tmp_path)
    size = index.stat().st_size
    index.write_bytes(index.read_bytes()[:4096] + os.urandom(size - 4096))
    whole(tmp_path / "state", 2)
    with server(tmp_path) as served:
        served.until(lambda found: found["total"] == 2)


def test_logs_of_any_size_leave_its_memory_small(tmp_path: Path) -> None:
    log = write(tmp_path / "state", job_id(1), begun(1))
    with log.open("ab") as file:
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(b"\n")
    write(tmp_path / "state", job_id(1), ended(1))
    with server(tmp_path) as served:
        served.until(lambda found: bool(found["jobs"]) and found["jobs"][0]["state"] == "SUCCEEDED")
        status = Path(f"/proc/{served.process.pid}/status").read_text()
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        assert peak < 100 << 10


def test_a_server_that_is_told_to_end_stops_in_order(tmp_path: Path) -> None:
    for number in range(3000):
        whole(tmp_path / "state", number)
    with server(tmp_path) as served:
        served.until(lambda found: found["total"] > 0)
        served.process.terminate()
        assert served.process.wait(60) == 0
    with contextlib.closing(sqlite3.connect(index_of(tmp_path))) as index:
        assert index.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert index.execute("SELECT count(*) FROM job").fetchone()[0] > 0
