"""Runs one cell of the fault matrix: a job, and a fault at one moment of it; then checks the job's end and files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.chaos.cluster import Cluster, processes, until
from bench.chaos.faults import Fault
from howdah.spec.events import (
    AllocationLost,
    Ended,
    Event,
    GangRestarted,
    JobFinished,
    Noted,
    Started,
    TimeLost,
    TookOver,
)

COUNT, WORKERS = 40, 2
PROGRAM = Path(__file__).with_name("program.py")
QUIET_S, CLIENT_S = 15.0, 90.0
"""A client waits a minute for the logs of a node, which may not come back."""
_CHECKPOINT = {"local": "kept", "every": "1s", "tasks": "all", "valid": "glob:count-*"}
_SIGNS_OF_A_FAULT = (TookOver, GangRestarted, TimeLost, Noted, AllocationLost)
_RETRY_COUNT = re.compile(r"\(retry \d+ of \d+\)")


@dataclass
class Result:
    """Holds a cell's result; `seen_s` and `repaired_s` count from the fault, and `wrong` must be empty."""

    fault: str
    moment: str
    state: str = ""
    seconds: float = 0.0
    seen_s: float | None = None
    repaired_s: float | None = None
    starts: int = 0
    wrong: list[str] = field(default_factory=list)
    client_output: str = ""

    @property
    def name(self) -> str:
        return f"{self.fault}:{self.moment}"

    @property
    def line(self) -> str:
        seen, repaired = (
            f"{delay:6.2f} s" if delay is not None else "      --" for delay in (self.seen_s, self.repaired_s)
        )
        lost = "nothing" if not self.wrong else "; ".join(self.wrong)
        ran = f"{self.starts} starts, {self.seconds:5.1f} s"
        return f"{self.name:28s} seen {seen}  repaired {repaired}  {ran}  lost: {lost}"


def _shows_fault_was_noticed(event: Event) -> bool:
    """Return whether an event is a sign that the fault was noticed."""
    return not event.exit.ok if isinstance(event, Ended) else isinstance(event, _SIGNS_OF_A_FAULT)


class Cell:
    """Runs a job with a fault; `directory` is on the machine that all nodes share."""

    def __init__(self, cluster: Cluster, directory: Path, fault: Fault, moment: str) -> None:
        self.cluster, self.directory, self.fault, self.moment = cluster, directory, fault, moment
        directory.mkdir()
        self.output = f"{cluster.root}/chaos/{directory.name}-out"

    def run(self) -> Result:
        """Run the job to its end, however it ends; the cluster is repaired afterwards."""
        result = Result(self.fault.name, self.moment)
        began, log = time.time(), self.directory / "log"
        client = self.cluster.start(self._job(), log)
        job = ""
        try:
            job = until(lambda: self._submitted(log, client), "the submission")
            self._wait_for_moment(log, job)
            injected_at = time.time()
            self.fault.inject(self.cluster, job, client)
            self.cluster.heal()
            result.state = until(lambda: self._ended(job), "the end of the job")
            result.seconds = time.time() - began
            self._check(result, job, injected_at)
            result.wrong += self._check_client(client)
        except Exception as error:
            result.wrong.append(f"{type(error).__name__}: {error}")
        finally:
            result.client_output = log.read_text(errors="replace")[-20000:] if result.wrong else ""
            client.kill()
            client.wait()
            if job and result.wrong:
                self.cluster.howdah("cancel", job)
            self.cluster.heal()
        return result

    def _job(self) -> Path:
        path = self.directory / "job.json"
        command = f"{sys.executable} {PROGRAM} {self.directory} {COUNT}"
        output = {"path": self.output, "save": {"every": "3s", "keep": 1}}
        job: dict[str, Any] = {
            "name": "chaos",
            "retries": 0 if self.fault.passes else 5,
            "roles": {"worker": {"command": command, "replicas": WORKERS, "resources": {"memory": "128MiB"}}},
            "checkpoint": {**_CHECKPOINT, "path": f"{self.cluster.root}/chaos/{self.directory.name}-kept"},
            "outputs": [output],
            "timeouts": {"stop": "2s"},
            "master": {"attempts": 4},
        }
        path.write_text(json.dumps(job))
        return path

    def _submitted(self, log: Path, client: subprocess.Popen[bytes]) -> str:
        ended = client.poll()
        found = re.search(r"submitted (application_\d+_\d+)", log.read_text())
        if ended and not found:
            raise ChildProcessError(f"`howdah run` ended with {ended}")
        return found[1] if found else ""

    def _wait_for_moment(self, log: Path, job: str) -> None:
        if self.moment == "start":
            time.sleep(0.3 + hash(self.fault.name) % 10 / 10)
            return
        words = {"mid": "worker:1 | step 12", "save": "snapshot 1", "end": f"worker:1 | step {COUNT}"}[self.moment]
        until(lambda: words in log.read_text(errors="replace"), f"{words!r} of {job}", 90.0)

    def _ended(self, job: str) -> str:
        state = str(self.cluster.status(job).get("state", ""))
        return state if state in ("SUCCEEDED", "FAILED", "CANCELLED") else ""

    def _check(self, result: Result, job: str, injected_at: float) -> None:
        events = self.cluster.events(job)
        seen = [event.time for event in events if event.time >= injected_at and _shows_fault_was_noticed(event)]
        again = [event.time for event in events if isinstance(event, (Started, TookOver)) and event.time >= injected_at]
        result.seen_s = min(seen) - injected_at if seen and (again or self.fault.name != "kill:client") else None
        result.repaired_s = max(again) - injected_at if again else None
        result.starts = sum(len(path.read_text().splitlines()) for path in self.directory.glob("starts-*"))
        if result.state != "SUCCEEDED":
            result.wrong.append(f"the job {result.state}")
        if (self.directory / "double").exists():
            result.wrong.append((self.directory / "double").read_text().strip())
        if self.fault.passes and result.starts != WORKERS:
            result.wrong.append(f"{result.starts} starts of {WORKERS} programs")
        result.wrong += self._check_attempts(result, job, events) if self.fault.ends_attempt else []
        result.wrong += self._find_missing_outputs() if result.state == "SUCCEEDED" else []
        result.wrong += self._find_leftovers(job)

    def _check_attempts(self, result: Result, job: str, events: list[Event]) -> list[str]:
        """Programs start again once at most, for a container that has gone with the master, and that uses up no retry.
        A job may end before the attempt of its master does."""
        again = [event for event in events if isinstance(event, GangRestarted)]
        wrong = [f"a retry is used up: {event.reason}" for event in again if _RETRY_COUNT.search(event.reason)]
        if len(again) > 1:
            wrong.append(f"the gang started again {len(again)} times")
        if result.starts > WORKERS * (1 + len(again)):
            wrong.append(f"{result.starts} starts of {WORKERS} programs, and the gang started again {len(again)} times")
        ends = [event for event in events if isinstance(event, JobFinished)]
        if len(ends) != 1:
            wrong.append(f"the log tells {len(ends)} ends")
        if strikes := self.cluster.strikes(job):
            wrong.append(f"strikes: {strikes}")
        return wrong

    def _check_client(self, client: subprocess.Popen[bytes]) -> list[str]:
        """Check that the client followed the job to its end, unless it was killed."""
        if self.fault.name == "kill:client":
            return []
        try:
            code = client.wait(CLIENT_S)
        except subprocess.TimeoutExpired:
            return [f"the client has not ended {CLIENT_S:.0f} s after its job"]
        return [f"the client ended with {code}"] if code else []

    def _find_missing_outputs(self) -> list[str]:
        wanted, files = "\n".join(map(str, range(COUNT))), self.cluster.files
        there = [f"{self.output}/worker-{index}/counted-{index}" for index in range(WORKERS)]
        wrong = [uri for uri in there if not files.exists(uri) or files.read_bytes(uri).decode() != wanted]
        marker = [] if files.exists(f"{self.output}/_SUCCESS") else ["no _SUCCESS"]
        return [*(f"{uri} is not whole" for uri in wrong), *marker]

    def _find_leftovers(self, job: str) -> list[str]:
        deadline = time.monotonic() + QUIET_S
        while (left := processes(job, "")) and time.monotonic() < deadline:
            time.sleep(0.2)
        beside = [entry.uri for entry in self.cluster.files.children(f"{self.cluster.root}/chaos") if job in entry.uri]
        return [*(f"process {pid} is left" for pid in left), *(f"{uri} is left" for uri in beside)]
