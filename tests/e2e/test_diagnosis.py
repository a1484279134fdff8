"""Tests diagnoses on a real cluster: which rank hangs and where, why a job waits, what an installation lacks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import CommandLine, eventually

from howdah.sandbox import Sandbox

HANG = """
import threading, time
from howdah import here

def take_the_lock():
    lock.acquire()

def all_reduce(step):
    here.barrier("step")

lock = threading.Lock()
lock.acquire()
for step in range(6):
    here.metric("loss", 1 / (step + 1), step)
    if step == 3 and here.rank == 1 and here.epoch == 1:
        take_the_lock()
    all_reduce(step)
    time.sleep(0.1)
"""


@pytest.fixture
def howdah(sandbox: Sandbox, tmp_path: Path) -> Iterator[CommandLine]:
    line = CommandLine(sandbox, tmp_path)
    yield line
    line.end_all()


def test_a_rank_that_hangs_is_named_with_its_stack_and_started_again(howdah: CommandLine) -> None:
    (howdah.directory / "hang.py").write_text(HANG)
    hanging = howdah.run(
        "python3 hang.py",
        replicas=3,
        files=["hang.py"],
        retries=1,
        role={"on_stall": "restart"},
        timeouts={"stall": "15s", "stop": "1s"},
    )
    hanging.says("worker:1 runs")
    where = "it is in take_the_lock (hang.py:6), while 2 wait in barrier"
    assert f"suspected: worker:1 ({where}" in hanging.says("stacks: hdfs://")
    done = hanging.done()
    assert done.code == 0, done.text
    assert "starting again: worker:1 on 127.0.0.1" in done.text
    kept = howdah("stacks", done.job)
    assert "==> worker:1 <==" in kept.text
    assert "take_the_lock (hang.py:6)" in kept.text
    assert "with native frames:" in kept.text
    story = json.loads(howdah("explain", "--json", done.job).out)["story"]
    kinds = [one["kind"] for one in story if one["kind"] != "TimeLost"]  # a master may stand still at any time
    assert kinds[:3] == ["Stalled", "StacksTaken", "GangRestarted"]


def test_why_a_job_waits_and_what_the_other_one_does(howdah: CommandLine) -> None:
    greedy = howdah.run("exec python3 -c 'import time; time.sleep(600)'", replicas=3, gpus=4)
    greedy.says("worker:2 runs")
    late = howdah.run("true", gpus=3)
    late.says("waiting for containers")

    def explained() -> str:
        text = howdah("explain", late.job).text
        return text if "worker needs" in text else ""

    said = eventually(explained, "worker needs")
    assert "worker waits for 1 more containers" in said
    assert "worker needs 1 × (128 MiB memory, 1 vcores, 3 gpus); occupied: 127.0.0.1" in said
    assert "(0 gpus free of 4 gpus)" in said
    # The others know what `explain` knows.
    assert "worker needs 1 × (128 MiB memory" in late.says("still waiting for containers: 1 × worker: ")
    status = howdah("status", late.job).text
    assert "  PENDING" in status.splitlines()[0]
    assert "worker needs 1 × (128 MiB memory, 1 vcores, 3 gpus); occupied: 127.0.0.1" in status
    listed = {line.split()[0]: line for line in howdah("list", "--on", "yarn").text.splitlines() if line}
    assert "  PENDING  " in listed[late.job]
    assert "  RUNNING  " in listed[greedy.job]
    assert "worker needs 1 × (128 MiB memory" in listed[f"{late.job}:"]
    answer = json.loads(howdah("stacks", "--json", greedy.job, "worker:2").out)
    assert "<module> (<string>:1)" in answer["stacks"]["worker:2"]
    assert howdah("stacks", greedy.job, "worker:9").code == 66
    assert howdah("cancel", greedy.job).code == 0
    assert late.done().code == 0


def test_a_cluster_that_is_well(howdah: CommandLine) -> None:
    found = howdah("doctor", "--on", "yarn", "--json")
    findings = {one["name"]: one for one in map(json.loads, found.out.splitlines())}
    assert found.code == 0, found.text
    assert findings["queues"]["text"] == "default, prod"
    assert findings["nodes"]["text"].startswith("3 with ")
    assert {"NameNode", "staging", "pages", "clock"} <= findings.keys()


def test_a_set_up_that_lacks_its_cluster(howdah: CommandLine, tmp_path: Path) -> None:
    site = "<configuration><property><name>{}</name><value>{}</value></property></configuration>"
    (tmp_path / "core-site.xml").write_text(site.format("fs.defaultFS", "hdfs://127.0.0.1:1"))
    (tmp_path / "yarn-site.xml").write_text(site.format("yarn.resourcemanager.address", "127.0.0.1:1"))
    found = howdah("doctor", "--on", "yarn", HADOOP_CONF_DIR=str(tmp_path))
    assert found.code == 1
    assert "fail  ResourceManager: " in found.text
    assert "fail  NameNode: " in found.text
    assert found.seconds < 60
