"""Measures the history server with 100,000 jobs: how fast it indexes logs, its first page, and its memory.

BENCH_HISTORY_JOBS sets how many. Logs are our own writer's; each job's differs in name, user, time and end.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.processes import cpu_s, resident_mb
from bench.report import Report
from bench.temp_home import temp_home
from howdah.hadoop import conf
from howdah.history.directory_scan import LOG, Scanner
from howdah.history.index import Index
from howdah.sandbox import Sandbox
from howdah.spec import Container, Exit, JobSpec, Outcome, Resources, Role, State, TaskId, event_lines
from howdah.spec.events import (
    Allocated,
    Asked,
    Ended,
    Event,
    Greeted,
    JobFinished,
    JobStarted,
    Joined,
    Launched,
    Started,
    Used,
    WorldFormed,
)
from howdah.spec.usage import Usage
from howdah.storage.factory import filesystem

JOBS, ON_HDFS = int(os.environ.get("BENCH_HISTORY_JOBS", "100000")), 2000
RATE, PAGE_S, PAGE_BYTES, RESIDENT_MB = 2000.0, 0.2, 200_000.0, 200.0
NUMBER, BEGAN = "1700000000000_0000000", 1_700_000_000.0
QUESTIONS = {
    "first page": "",
    "one user's": "&user=user7",
    "words in any of them": "&text=memory%20exceeded",
    "longest first": "&sort=-duration",
    "part of a name": "&name=job-77",
}


def measure(report: Report) -> None:
    """Build the index, query it, and measure the process."""
    with temp_home() as home:
        write(home / "state" / "jobs", JOBS)
        log = home / "history.log"
        begun = time.perf_counter()
        with log.open("wb") as output:
            command = [sys.executable, "-m", "howdah.history", "--engine", "local", "--port", "0"]
            server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output)
        try:
            link = _link(server)
            while _ask(link, "&limit=1")["total"] < JOBS:
                time.sleep(0.2)
            report.target("jobs indexed a second", JOBS / (time.perf_counter() - begun), RATE, at_least=True)
            report.figure("jobs indexed in a second of CPU", [JOBS / cpu_s(server.pid)], "")
            _pages(report, link)
            report.target(f"resident memory with {JOBS} jobs", resident_mb(server.pid), RESIDENT_MB, " MB")
        finally:
            server.terminate()
            server.wait(20)
    _from_hdfs(report)


def _from_hdfs(report: Report) -> None:
    """Measure logs on a real cluster's file system, as small files."""
    with temp_home() as home, Sandbox(nodes=0) as sandbox:
        write(home / "here" / "jobs", ON_HDFS)
        root = conf.default_filesystem(conf.load(str(sandbox.conf_dir)))
        files = filesystem(root, str(sandbox.conf_dir))

        def put(directory: Path) -> None:
            target = f"{root}/user/me/.howdah/jobs/{directory.name}"
            files.mkdirs(target, 0o700)
            files.write_bytes(f"{target}/{LOG}", (directory / LOG).read_bytes())

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(put, (home / "here" / "jobs").iterdir()))
        with Index(home / "index") as index:
            index.claim()
            begun, spent = time.perf_counter(), time.process_time()
            read = Scanner(index, [f"{root}/user/*/.howdah"], lambda _: str(sandbox.conf_dir)).scan().read
            rate, cpu = read / (time.perf_counter() - begun), read / (time.process_time() - spent)
            report.target("jobs indexed a second, from HDFS", rate, RATE, at_least=True)
            report.figure("jobs indexed in a second of CPU, from HDFS", [cpu], "")


def _pages(report: Report, link: str) -> None:
    for what, query in QUESTIONS.items():
        times, size = [], 0
        for number in range(7):
            begun = time.perf_counter()
            size = max(size, len(_read(link, f"{query}&limit={50 - number}")))  # another each time: none is kept
            times.append(time.perf_counter() - begun)
        seconds = report.figure(f"{what} ({size} bytes)", times)
        if not query:
            report.target("first page", seconds, PAGE_S, " s")
            report.target("its size", float(size), PAGE_BYTES, " bytes")


def _link(server: subprocess.Popen[bytes]) -> str:
    assert server.stdout is not None
    for line in server.stdout:
        found = re.search(rb"http://\S+", line)
        if found:
            return found[0].decode()
    raise RuntimeError("the history server did not say where it is")


def _read(link: str, query: str) -> bytes:
    base, _, token = link.partition("/#token=")
    address = f"{base}/api/v1/jobs?token={token}{query}"
    with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 - a server that we started
        return bytes(answer.read())


def _ask(link: str, query: str) -> dict[str, int]:
    found: dict[str, int] = json.loads(_read(link, query))
    return found


def write(jobs: Path, count: int) -> None:
    """Write the directories of `count` jobs below `jobs`."""
    kinds = [list(map(event_lines.to_line, _events(n))) for n in range(40)]
    texts = ["".join(lines) for lines in kinds]
    for n in range(count):
        number = f"1700000000000_{n:07d}"
        text = texts[n % len(texts)].replace(NUMBER, number).replace('"time":17000000', f'"time":17{n % 1000000:06d}')
        directory = jobs / f"application_{number}"
        directory.mkdir(parents=True, mode=0o700)
        (directory / "events.jsonl").write_text(text.replace("job-x", f"job-{n}"))


def _events(kind: int) -> Iterator[Event]:
    """Return a training of two workers and a parameter server; one in five fails, and one in forty is cancelled."""
    worker = Role("python train.py --steps 10000", 2, Resources(2048, 2, kind % 3))
    roles = {"ps": Role("python train.py", 1), "worker": worker}
    job = JobSpec(roles, name="job-x", framework="tensorflow", queue=f"queue{kind % 4}", tags=("nightly",))
    yield JobStarted(BEGAN, f"application_{NUMBER}", "yarn", f"user{kind % 9}", job, f"node{kind}", "python3.11")
    tasks = [TaskId(name, index) for name, role in roles.items() for index in range(role.replicas)]
    for number, task in enumerate(tasks):
        container = Container(f"container_e01_{NUMBER}_01_{number + 2:06d}", f"node{number}", task.role)
        yield Asked(BEGAN + 0.5, task.role, 1)
        yield Allocated(BEGAN + 1, container)
        yield Launched(BEGAN + 1.1, task, 1, container)
        yield Greeted(BEGAN + 2, task, 1, f"node{number}", 1000 + kind)
        yield Joined(BEGAN + 2.1, task, 1, 1, f"node{number}", {"main": 2222})
    yield WorldFormed(BEGAN + 3, 1)
    for number, task in enumerate(tasks):
        yield Started(BEGAN + 3.1, task, 1, 1, 2000 + kind + number, "python3")
        yield Used(BEGAN + 20, task, Usage(812.5, 901.25, 1.5, 0.25 * number))
    failed = kind % 5 == 0
    for number, task in enumerate(tasks):
        exit = Exit("memory", detail="memory exceeded: 2.1 GiB of 2 GiB") if failed and number == 1 else Exit("exit", 0)
        yield Ended(BEGAN + 60 + number, task, 1, 1, exit, f"node{number}")
    state = State.FAILED if failed else State.CANCELLED if kind == 33 else State.SUCCEEDED
    diagnostics = "worker:0 on node1: memory exceeded: 2.1 GiB of 2 GiB" if failed else ""
    yield JobFinished(BEGAN + 64, Outcome(state, diagnostics, tasks[1] if failed else None, None))
