"""Tests what can be watched of a job on YARN: progress, resource usage, current and old logs."""

from __future__ import annotations

import getpass
import json
import os
import signal
import sys
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from commandline import CommandLine, eventually, processes

from howdah.api import metric_series
from howdah.client.master_client import connect
from howdah.engines.yarn.engine import YarnEngine
from howdah.sandbox import Sandbox

PROGRAM = """
import os, sys, time
first = os.environ["HOWDAH_ATTEMPT"] == "1"
for i in range(3000 if first else 120):
    while i == 60 and not first and not os.path.exists(sys.argv[1]):
        time.sleep(0.1)
    print(f"step {i} attempt {os.environ['HOWDAH_ATTEMPT']}", flush=True)
    print(f"ERROR {i}", file=sys.stderr, flush=True)
    print("reporter progress:0.5", file=sys.stderr, flush=True)
    time.sleep(3 if i == 0 else 0.2)  # whose lines came first is known of what was read together
"""


@pytest.fixture
def howdah(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    command = CommandLine(sandbox, tmp_path)
    yield command
    command.end_all()


def test_a_job_is_watched_live_and_afterwards(howdah: CommandLine, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    running = howdah.run([sys.executable, "-c", PROGRAM, str(go_on)], "--logs", "none", retries=1)
    job = running.job
    eventually(lambda: howdah("logs", job, "worker:0", "--tail", "1").out.startswith(b"worker:0"), "a line")

    web = next(daemon.web for daemon in howdah.sandbox.status() if daemon.name == "rm")

    def progress() -> float:
        with urllib.request.urlopen(f"http://{web}/ws/v1/cluster/apps/{job}", timeout=60) as answer:
            return float(json.load(answer)["app"]["progress"])

    eventually(lambda: progress() == 50.0, "the ResourceManager's progress bar")
    words = "logs", job, "worker:0", "--grep", "step 1 attempt 1"
    eventually(lambda: howdah(*words).out, "what is looked for later")
    [executor] = processes(job, "howdah.executor")[:1]
    os.kill(executor, signal.SIGKILL)

    def again() -> bytes:
        return howdah("logs", job, "worker:0", "--grep", "step 1 attempt 2").out

    eventually(again, "the second attempt")
    # A node that does not answer at once has no lines: each is asked again.
    first = "logs", job, "worker:0", "--attempt", "1", "--stream", "both", "--all"
    earlier = eventually(lambda: howdah(*first).out, "the first attempt")
    # Which of two pipes was written first, nobody can tell.
    assert {b"worker:0 | step 0 attempt 1", b"worker:0 ! ERROR 0"} <= set(earlier.split(b"\n")[:3]), earlier[:1000]

    def both() -> list[int]:
        lines = howdah("logs", job, "--attempt", "all", "--grep", "step 0 ", "--json").out.splitlines()
        return [json.loads(line)["attempt"] for line in lines]

    eventually(lambda: both() == [1, 2], "both attempts")

    engine = YarnEngine({"hadoop_conf_dir": str(howdah.sandbox.conf_dir)})
    report = engine.describe(job)[0]
    link = connect(engine, report)
    assert link is not None
    with link:
        search = partial(link.search, text="step 1 attempt")
        hits = eventually(lambda: found if (found := search())["complete"] else None, "a search of everything")
    assert [(hit["attempt"], hit["line"], bool(hit["time"])) for hit in hits["hits"]] == [(1, 2, True), (2, 2, True)]
    go_on.touch()
    assert running.done().code == 0
    kept = howdah("logs", job, "--stream", "both", "--level", "error", "--merge", "--tail", "2", "--json")
    told = [json.loads(line) for line in kept.out.splitlines()]
    assert [one["text"] for one in told] == ["ERROR 118", "ERROR 119"]
    assert all(one["attempt"] == 2 and one["time"] for one in told)
    directory = f"{howdah.root}/user/{getpass.getuser()}/.howdah/jobs/{job}"
    lines = list(metric_series.read(directory, str(howdah.sandbox.conf_dir)))
    found = metric_series.sampled_series(lambda: lines, metric_series.SeriesQuery(("memory_mib",)), ["worker:0"])
    assert found[0]["points"][0][3] > 1
