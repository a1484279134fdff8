"""Tests `howdah.program` on a real cluster: programs find each other, and go on when the master is killed."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import CommandLine, eventually, processes

from howdah.sandbox import Sandbox

EXAMPLE = Path(__file__).parents[2] / "examples" / "here-rendezvous" / "job.yaml"


@pytest.fixture(scope="module")
def howdah(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("HADOOP_CONF_DIR", raising=False)
        yield CommandLine(sandbox, tmp_path_factory.mktemp("here"))


@pytest.fixture(autouse=True)
def tidy(howdah: CommandLine) -> Iterator[None]:
    yield
    howdah.end_all()


def test_the_example_trains_on_hadoop(howdah: CommandLine) -> None:
    model = f"{howdah.root}/tmp/here-line"
    done = howdah("run", "--on", "yarn", "--logs", "all", "--set", f"LINE_MODEL={model}", str(EXAMPLE))
    assert done.code == 0, done.text
    assert "worker:0 | 3 tasks, 1 result" in done.text
    line = json.loads(howdah.files.read_bytes(f"{model}/line.json"))
    assert (round(line["slope"], 1), round(line["offset"], 1)) == (2.0, 1.0)
    seen = howdah.status(done.job)
    assert [task["progress"] for task in seen["tasks"]] == [1.0] * 3
    assert seen["tasks"][0]["metrics"]["loss"] < 0.01
    directory = seen["directory"]
    log, last = f"{directory}/events.jsonl", rb'"name":"loss".*"step":199'
    eventually(lambda: re.search(last, howdah.files.read_bytes(log)), "the last point of a curve in the history")
    kept = f"{directory}/here.jsonl"
    assert eventually(lambda: not howdah.files.exists(kept), "the values of the programs are removed")
    assert howdah.left(done.job) == []


PROGRAM = r"""
import os, time
from howdah import here
assert here.inside and "howdah-here" in here.__file__, here.__file__
print("start", here.rank, flush=True)
here.put(f"at/{here.rank}", here.task)
here.barrier("start")
print("met", sorted(here.keys("at/")), flush=True)
if here.rank == 0:
    here.put("before", b"\0kept")
    print("ready", flush=True)
    while not os.path.exists("FLAG"):
        time.sleep(0.1)
    here.barrier("middle", timeout=120)
else:
    here.barrier("middle", timeout=120)
assert here.get("before", wait=60) == b"\0kept"
assert here.swap("won", None, here.task) or here.get("won")
here.barrier("end", timeout=120)
print("through", here.rank, here.keys(), flush=True)
"""


def test_a_master_that_takes_over_knows_who_waits_where(howdah: CommandLine, tmp_path: Path) -> None:
    """Killed while one task waits at a barrier and another has not come yet: they meet under the next one."""
    flag = tmp_path / "flag"
    program = tmp_path / "meet.py"
    program.write_text(PROGRAM.replace("FLAG", str(flag)))
    running = howdah.run(f"python3 {program}", "--logs", "all", replicas=2, name="meet")
    running.says("worker:0 | ready")
    master, *_ = processes(running.job, "-m howdah.master --engine")
    os.kill(master, signal.SIGKILL)
    eventually(lambda: "took over" in " ".join(howdah.status(running.job)["notes"]), "a note of the takeover")
    flag.touch()
    done = running.done()
    assert done.code == 0, done.text
    for rank in range(2):
        assert f"through {rank} ['at/0', 'at/1', 'before', 'won']" in done.text
    assert done.text.count("| start ") == 2, "nothing was started twice"
    assert howdah.left(running.job) == []
