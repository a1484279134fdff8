"""Tests that the end of the master's container on YARN ends an attempt, and that only people end the job."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commandline import CommandLine, Done, Running, eventually, processes, read

from howdah.sandbox import Sandbox
from howdah.storage.factory import filesystem

SUCCEEDED, FAILED, CANCELLED = 0, 1, 2
Strike = Callable[[CommandLine, str], None]


@pytest.fixture(scope="module")
def howdah(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("HADOOP_CONF_DIR", raising=False)
        yield CommandLine(sandbox, tmp_path_factory.mktemp("attempts"))


@pytest.fixture(autouse=True)
def tidy(howdah: CommandLine) -> Iterator[None]:
    yield
    howdah.end_all()
    howdah.sandbox.recommission()
    for daemon in howdah.sandbox.status():
        howdah.sandbox.start(daemon.name)
    howdah.sandbox.wait_nodes(3)


def master_of(job: str) -> int:
    return eventually(lambda: processes(job, "-m howdah.master --engine"), "the master's process")[0]


def node_of(pid: int) -> str:
    match = re.search(rb"/(nm\d+)/", read(pid, "environ"))
    assert match
    return match[1].decode()


def counting(directory: Path, seconds: int) -> str:
    """A program that writes down each of its starts, waits while there is a file `hold`, and makes an output."""
    held = f"echo started; while [ -e {directory}/hold ]; do sleep 0.2; done"
    steps = f"for i in $(seq {seconds * 5}); do echo step $i; sleep 0.2; done"
    return f"echo $HOWDAH_TASK >> {directory}/starts; {held}; {steps}; mkdir -p out; seq 1000 > out/numbers"


def submitted(howdah: CommandLine, directory: Path, seconds: int = 12, **job: object) -> Running:
    outputs = [{"path": f"{howdah.root}/tmp/{directory.name}", "from": "out"}]
    return howdah.run(counting(directory, seconds), "--logs", "all", replicas=2, outputs=outputs, **job)


def sees(howdah: CommandLine, running: Running, directory: Path) -> Done:
    """The job to its good end, whole, with nothing left and nothing held against any node."""
    done = running.done()
    assert done.code == SUCCEEDED, done.text
    assert "attempt 2 of the master took over" in done.text, done.text
    assert "CANCELLED" not in done.text, done.text
    names = sorted(
        entry.uri.rpartition("/")[2] for entry in howdah.files.children(f"{howdah.root}/tmp/{directory.name}")
    )
    assert names == ["_SUCCESS", "worker-0", "worker-1"]
    assert howdah.left(done.job) == []
    home = howdah.status(done.job)["directory"].rpartition("/jobs/")[0]
    assert not filesystem(home).exists(f"{home}/strikes/{done.job}.json")
    return done


def terminate(_: CommandLine, job: str) -> None:
    os.kill(master_of(job), signal.SIGTERM)


def terminate_group(_: CommandLine, job: str) -> None:
    """As a NodeManager does: the helpers of the master, too."""
    os.killpg(os.getpgid(master_of(job)), signal.SIGTERM)


def fail(howdah: CommandLine, job: str) -> None:
    howdah.yarn("applicationattempt", "-fail", f"appattempt_{job.partition('_')[2]}_000001")


@pytest.mark.parametrize("strike", [terminate, terminate_group, fail], ids=lambda strike: strike.__name__)
def test_the_programs_run_on(howdah: CommandLine, strike: Strike, tmp_path: Path) -> None:
    """Without retries, for nothing is lost."""
    running = submitted(howdah, tmp_path)
    running.says("worker:1 | step 10")
    strike(howdah, running.job)
    done = sees(howdah, running, tmp_path)
    assert sorted((tmp_path / "starts").read_text().split()) == ["worker:0", "worker:1"], "nothing started twice"
    assert "this attempt of the master was ended: " in done.text
    assert "attempt 1 of the master ended: " in done.text
    explained = howdah("explain", done.job).text
    assert "attempt 1 of the master ended: " in explained
    assert "cancelled" not in explained


def stopped(howdah: CommandLine, job: str) -> None:
    howdah.sandbox.stop(node_of(master_of(job)))


def restarted(howdah: CommandLine, job: str) -> None:
    node = node_of(master_of(job))
    howdah.sandbox.stop(node)
    howdah.sandbox.start(node)


def forgetful(howdah: CommandLine, job: str) -> None:
    """One without recovery, killed: when it is back it removes the files of all containers, which still run."""
    node = node_of(master_of(job))
    howdah.sandbox.stop(node, signal.SIGKILL)
    howdah.sandbox.start(node)


def decommissioned(howdah: CommandLine, job: str) -> None:
    howdah.sandbox.decommission(node_of(master_of(job)), 0)


@pytest.mark.parametrize("strike", [stopped, restarted, forgetful, decommissioned], ids=lambda strike: strike.__name__)
def test_the_masters_node_goes(howdah: CommandLine, strike: Strike, tmp_path: Path) -> None:
    """What ran there starts again, uses up no retry, and nothing is held against the node."""
    (tmp_path / "hold").touch()
    running = submitted(howdah, tmp_path, retries=1)
    running.says("worker:1 | started")
    events = howdah.status(running.job)["directory"] + "/events.jsonl"
    eventually(lambda: howdah.files.exists(events), "an event log, without which the next master begins anew")
    strike(howdah, running.job)
    (tmp_path / "hold").unlink()
    done = sees(howdah, running, tmp_path)
    assert "retry 1 of 1" not in done.text


def test_nodes_whose_containers_are_gone_at_a_takeover_get_the_next_job(howdah: CommandLine, tmp_path: Path) -> None:
    """The next job needs all three nodes, and would wait half an hour before it took one that was excluded."""
    running = howdah.run(counting(tmp_path, 10), "--logs", "all", replicas=6, memory="64MiB", retries=1)
    running.says("worker:5 | step 5")
    master = master_of(running.job)
    os.kill(master, signal.SIGSTOP)  # it hears nothing of what follows
    nodes = [node_of(pid) for pid in processes(running.job, "howdah.executor")]
    howdah.sandbox.stop(max(set(nodes), key=nodes.count))
    with contextlib.suppress(ProcessLookupError):
        os.kill(master, signal.SIGKILL)
    howdah.sandbox.start(max(set(nodes), key=nodes.count))
    howdah.sandbox.wait_nodes(3)
    done = running.done()
    assert done.code == SUCCEEDED, done.text
    assert "attempt 2 of the master took over" in done.text
    assert "retry 1 of 1" not in done.text
    home = howdah.status(done.job)["directory"].rpartition("/jobs/")[0]
    assert not howdah.files.exists(f"{home}/strikes/{done.job}.json")
    after = howdah.run("true", replicas=3, memory="6GiB", timeouts={"hold": "30min"}).done()
    assert after.code == SUCCEEDED, after.text
    assert len({task["node"] for task in howdah.status(after.job)["tasks"]}) == 3


def test_the_files_that_the_master_runs_from_are_removed_before_the_outputs_are_committed(
    howdah: CommandLine, tmp_path: Path
) -> None:
    running = submitted(howdah, tmp_path, seconds=5)
    running.says("worker:1 | step 10")
    shutil.rmtree(Path(f"/proc/{master_of(running.job)}/cwd").resolve())
    done = sees(howdah, running, tmp_path)
    assert "the node has removed the files that the master runs from" in done.text
    assert sorted((tmp_path / "starts").read_text().split()) == ["worker:0", "worker:1"]


def test_the_last_attempt_is_told_as_what_it_was(howdah: CommandLine, tmp_path: Path) -> None:
    running = submitted(howdah, tmp_path, master={"attempts": 1})
    running.says("worker:1 | step 10")
    terminate(howdah, running.job)
    done = running.done()
    assert done.code == FAILED, done.text
    reason = "the job's master ended: killed by signal 15"
    assert f"{done.job} FAILED: {reason}" in done.text
    assert howdah.status(done.job)["state"] == "FAILED"
    explained = howdah("explain", done.job).text
    assert f"why: {reason}" in explained
    assert "cancelled" not in explained
    howdah("run", "--on", "yarn", howdah.job_file("true"))  # the next submission looks after what was left
    assert howdah.left(done.job) == []


def test_a_job_that_is_killed_through_yarn_is_cancelled_by_its_word(howdah: CommandLine, tmp_path: Path) -> None:
    running = submitted(howdah, tmp_path)
    running.says("worker:1 | step 10")
    howdah.yarn("application", "-kill", running.job)
    done = running.done()
    assert done.code == CANCELLED, done.text
    assert f"{done.job} CANCELLED: Application {done.job} was killed by user" in done.text
    assert "why: Application" in howdah("explain", done.job).text
