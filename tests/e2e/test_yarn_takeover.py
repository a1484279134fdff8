"""Tests that the next master keeps the containers of one that was killed on YARN, unnoticed by the programs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import CommandLine, eventually, processes

from howdah.engines.yarn.engine import YarnEngine
from howdah.sandbox import Sandbox
from howdah.spec import State
from howdah.storage.factory import filesystem


@pytest.fixture(scope="module")
def howdah(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("HADOOP_CONF_DIR", raising=False)
        yield CommandLine(sandbox, tmp_path_factory.mktemp("takeover"))


@pytest.fixture(autouse=True)
def tidy(howdah: CommandLine) -> Iterator[None]:
    yield
    howdah.end_all()


def kill_master(job: str) -> None:
    """Kill it as the kernel would."""
    master, *_ = processes(job, "-m howdah.master --engine")
    os.kill(master, signal.SIGKILL)


def counting(directory: Path, seconds: int) -> str:
    """A program that writes down each of its starts."""
    return f"echo $HOWDAH_TASK >> {directory}/starts; for i in $(seq {seconds * 5}); do echo step $i; sleep 0.2; done"


def test_programs_run_on_under_the_next_master(howdah: CommandLine, tmp_path: Path) -> None:
    running = howdah.run(counting(tmp_path, 12), "--logs", "all", replicas=2, name="takeover")
    running.says("worker:1 | step 15")
    kill_master(running.job)
    told = "attempt 2 of the master took over"
    eventually(lambda: told in " ".join(howdah.status(running.job)["notes"]), "a note of the takeover")
    done = running.done()
    assert done.code == 0, done.text
    assert sorted((tmp_path / "starts").read_text().split()) == ["worker:0", "worker:1"], "nothing started twice"
    assert done.out.count(b"worker:0 | step 60") == 1
    assert howdah.left(running.job) == []


def test_a_failure_after_the_takeover_is_named_and_retried(howdah: CommandLine, tmp_path: Path) -> None:
    """The retry is still there, and the state is that of one master that lived through it all."""
    fails_once = f"[ -e {tmp_path}/failed ] || [ $HOWDAH_INDEX = 1 ] || {{ touch {tmp_path}/failed; exit 3; }}"
    running = howdah.run(f"{counting(tmp_path, 5)}; {fails_once}", replicas=2, retries=1)
    running.says("worker:0 | step 12")  # YARN takes back containers that it does not count yet
    kill_master(running.job)
    done = running.done()
    assert done.code == 0, done.text
    assert "exit code 3 (retry 1 of 1)" in done.text
    assert sorted((tmp_path / "starts").read_text().split()) == ["worker:0"] * 2 + ["worker:1"] * 2


def test_killed_before_its_gang_has_formed(howdah: CommandLine, tmp_path: Path) -> None:
    running = howdah.run(counting(tmp_path, 1), replicas=2)
    eventually(lambda: processes(running.job, "-m howdah.master --engine"), "the master's process")
    kill_master(running.job)
    done = running.done()
    assert done.code == 0, done.text
    assert howdah.left(running.job) == []


def test_killed_while_its_outputs_are_committed(howdah: CommandLine, tmp_path: Path) -> None:
    path = f"{howdah.root}/tmp/takeover-{time.time_ns()}"
    output = [{"path": path, "from": "out"}]
    running = howdah.run("mkdir out; seq 1000 > out/numbers; sleep 1; echo done", replicas=3, outputs=output)
    running.says("worker:0 on")
    found = processes(running.job, "-m howdah.master --engine")
    if found:
        os.kill(found[0], signal.SIGKILL)
    done = running.done()
    assert done.code == 0, done.text
    names = sorted(entry.uri.rpartition("/")[2] for entry in howdah.files.children(path))
    assert names == ["_SUCCESS", "worker-0", "worker-1", "worker-2"]
    assert howdah.left(running.job) == []


def test_killed_before_its_log_was_written_the_job_begins_anew(howdah: CommandLine, tmp_path: Path) -> None:
    """What lies beside the log, of a master that had come further with it, is in nobody's way."""
    again = f"echo $HOWDAH_ATTEMPT >> {tmp_path}/starts; [ $(wc -l < {tmp_path}/starts) = 2 ] || sleep 600; echo done"
    running = howdah.run(again)
    running.says("worker:0 runs")
    files, directory = filesystem(howdah.root), howdah.status(running.job)["directory"]
    eventually(
        lambda: all(files.exists(f"{directory}/{name}") for name in ("events.jsonl", "metrics.jsonl")), "its files"
    )
    master, *_ = processes(running.job, "-m howdah.master --engine")
    os.kill(master, signal.SIGSTOP)
    files.delete(f"{directory}/events.jsonl")
    os.kill(master, signal.SIGKILL)
    done = running.done()
    assert done.code == 0, done.text
    assert "attempt 2 of the master found no event log: the job begins anew" in done.text
    engine = YarnEngine({"hadoop_conf_dir": str(howdah.sandbox.conf_dir)})
    eventually(lambda: engine.describe(running.job)[0].state is State.SUCCEEDED, "the ResourceManager's word")
    assert howdah.left(running.job) == []
