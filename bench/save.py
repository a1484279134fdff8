"""Measures how a snapshot of one gigabyte slows the steps of two ranks that train on all cores.

The copier is stopped and let go on every other `TURN_S` (SIGSTOP, SIGCONT), so that steps beside it and steps without
it alternate: a shared machine's own speed drifts by more than what is looked for. BENCH_SAVE_MIB sets the size.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from bench.processes import of_job
from bench.report import Report, ratios
from bench.temp_home import HOWDAH, run, temp_home
from howdah.client.clusters import engine_of
from howdah.client.master_client import connect
from howdah.sandbox import Sandbox
from howdah.spec import TaskId

MIB = int(os.environ.get("BENCH_SAVE_MIB", "1024"))
WARM_S, TURN_S, SETTLE_S = 8.0, 3.0, 0.5
LIMIT_S = 1200.0
SLOWER, LATEST_S = 1.02, 5.0
EXAMPLE = Path(__file__).parent.parent / "examples" / "digits-pytorch"
# One step is some 20 ms of arithmetic on one core; the file is old enough to be copied at once.
PROGRAM = f"""
import os, time, torch
torch.set_num_threads(1)
os.makedirs("output", exist_ok=True)
if os.environ["HOWDAH_RANK"] == "0":
    with open("output/model.bin", "wb") as file:
        for _ in range({MIB}):
            file.write(os.urandom(1 << 20))
    os.utime("output/model.bin", (1, 1))
print("ready", flush=True)
x = torch.rand(500, 500)
with open("steps", "w") as steps:
    while True:
        begun = time.time()
        for _ in range(8):
            x @ x
        print(begun, time.time(), file=steps, flush=True)
"""


def measure(report: Report) -> None:
    """Measure copying to this machine's disk, and to HDFS on it, whose DataNode uses the same cores."""
    with temp_home() as home:
        _measure(report, home, str(home / "saved"), "disk")
    with temp_home() as home, Sandbox(nodes=0) as sandbox:
        os.environ["HADOOP_CONF_DIR"] = str(sandbox.conf_dir)
        _measure(report, home, "hdfs:///tmp/saved", "HDFS")


def _measure(report: Report, home: Path, path: str, where: str) -> None:
    program = home / "program.py"
    program.write_text(PROGRAM)
    job = {
        "name": "save",
        "framework": "pytorch",
        "roles": {"worker": {"command": "python program.py", "replicas": 2, "resources": {"memory": "2GiB"}}},
        "files": [str(program)],
        "environment": {"requirements": str(EXAMPLE / "requirements.lock")},
        "outputs": [{"path": path, "tasks": "worker:0", "save": {"keep": 1}}],
    }
    (home / "job.yaml").write_text(json.dumps(job))
    job_id = run([HOWDAH, "submit", "--on", "local", str(home / "job.yaml")]).find(r"local-\S+")
    try:
        _until_ready(job_id)
        time.sleep(WARM_S)
        slowest = _Slowest(job_id)
        run([HOWDAH, "save", job_id])
        turns = _take_turns(job_id)
        run([HOWDAH, "save", job_id, "--wait"])  # nothing has changed: it says when the one before is over
        latest = slowest.end()
        status = json.loads(run([HOWDAH, "status", "--json", job_id]).output)
        steps = _steps(home, job_id)
    finally:
        run([HOWDAH, "cancel", job_id])
    copy = status["saves"][0]
    took = copy["finished"] - copy["started"] - sum(one.end - one.begun for one in turns if not one.copying)
    means = [(one.copying, statistics.mean(_within(steps, one))) for one in turns]
    during, between = ([1000 * mean for copying, mean in means if copying is wanted] for wanted in (True, False))
    report.figure(f"a copy of {MIB} MiB to {where}", [took], "s")
    report.figure("a step while a copy is made", during, "ms")
    report.figure("a step while it stands still", between, "ms")
    ratio = report.figure("ratio, of turns side by side", ratios(during, between), "")
    report.target(f"step time while saving to {where}", ratio, SLOWER)
    report.target("longest wait for the executor's answer", report.figure("longest wait", [latest], "s"), LATEST_S)


@dataclass(frozen=True)
class _Turn:
    copying: bool
    begun: float
    end: float


def _take_turns(job_id: str) -> list[_Turn]:
    """Stop and continue the copier in turns until it has ended."""
    limit = time.monotonic() + LIMIT_S
    while not (pids := of_job("howdah.outputs.snapshot", job_id)):
        time.sleep(0.1)
    turns = []
    while time.monotonic() < limit:
        for copying, number in ((True, signal.SIGCONT), (False, signal.SIGSTOP)):
            try:
                os.kill(pids[0], number)
            except ProcessLookupError:
                return turns[: len(turns) // 2 * 2]
            begun = time.time()
            time.sleep(TURN_S)
            turns.append(_Turn(copying, begun, time.time()))
        os.kill(pids[0], signal.SIGCONT)
    raise SystemExit(f"no copy of {MIB} MiB within {LIMIT_S:.0f} s")


def _within(steps: list[tuple[float, float]], turn: _Turn) -> list[float]:
    return [took for took, end in steps if turn.begun + SETTLE_S < end < turn.end]


def _until_ready(job_id: str) -> None:
    for _ in range(600):
        if run([HOWDAH, "logs", job_id, "--stream", "stdout"]).output.count("ready") == 2:
            return
        time.sleep(0.5)
    raise SystemExit("the programs did not start within 5 minutes")


class _Slowest:
    """Asks the executor for its log again and again, by its master: answers come with its heartbeats."""

    def __init__(self, job_id: str) -> None:
        self.job_id, self.worst, self._ended = job_id, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        engine = engine_of(self.job_id)
        link = connect(engine, engine.describe(self.job_id)[0])
        assert link is not None
        with link:
            while not self._ended.wait(0.5):
                begun = time.monotonic()
                link.log(TaskId("worker", 0), "stdout", 0, 1)
                self.worst = max(self.worst, time.monotonic() - begun)

    def end(self) -> float:
        """Return the longest wait, in seconds."""
        self._ended.set()
        self._thread.join()
        return self.worst


def _steps(home: Path, job_id: str) -> list[tuple[float, float]]:
    """Return how long each step of both ranks took, and when it ended."""
    found = []
    for file in (home / "state" / "jobs" / job_id).rglob("steps"):
        for line in file.read_text().splitlines()[:-1]:
            begun, end = map(float, line.split())
            found.append((end - begun, end))
    return found
