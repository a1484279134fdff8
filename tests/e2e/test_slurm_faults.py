"""Tests what jobs on a real Slurm survive: killed programs, executors and masters, lost nodes, preemption; and how they
end when they are cancelled, fail, or run out of time."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from submitted_job import WAITING, SubmittedJob, until

from howdah.client.engine_registry import engine as engine_for
from howdah.client.engine_registry import settings_for
from howdah.engines import Engine
from howdah.sandbox import SlurmSandbox
from howdah.sandbox.slurm_conf import MEMORY_GROUPS, SlurmShape
from howdah.spec import Checkpoint, Resources, Role, State
from howdah.spec.events import AllocationLost, Ended, Launched, LossAnnounced, TookOver

HOWDAH = str(Path(sys.executable).with_name("howdah"))


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture
def engine(slurm: SlurmSandbox, slurm_home: Path) -> Iterator[Engine]:
    found = engine_for(settings_for({"engine": "slurm"}))
    yield found
    for report in found.describe():
        if not report.state.ended:
            found.cancel(report.id)
    for node in slurm.shape.node_names:
        slurm.start(node)


class Job(SubmittedJob):
    """A job on Slurm."""

    @property
    def number(self) -> str:
        return self.id.removeprefix("slurm-")

    def slurm_state(self) -> str:
        """Return the state that Slurm's accounting has of the ended job."""

        def state() -> str:
            row = ask("sacct", "-nPX", "-D", "-j", self.number, "-o", "State").split("\n")[-2:][0]
            return "" if row.split(" ")[0] in ("", "RUNNING", "PENDING", "COMPLETING") else row.split(" ")[0]

        found: str = until(state, f"the row of {self.id}")
        return found


def ask(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def master_of(job: Job) -> int:
    found = [
        int(entry.name)
        for entry in Path("/proc").glob("[0-9]*")
        if (entry / "cmdline").exists()
        and (words := (entry / "cmdline").read_bytes().split(b"\0"))
        and b"howdah.master" in words
        and job.id.encode() in words
    ]
    assert len(found) == 1, found
    return found[0]


def test_a_failed_job_is_failed_in_slurm(engine: Engine, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, "echo no such layer >&2; exit 3")
    report = job.ended()
    assert report.state is State.FAILED
    assert "exit code 3" in report.diagnostics
    assert job.slurm_state() == "FAILED"
    rows = until(lambda: [row for row in engine.accounting(job.id) if row.task == "worker:0"], "the row of the task")
    assert {row.node for row in rows} == {job.launched().container.node}
    said = subprocess.run([HOWDAH, "explain", job.id], capture_output=True, text=True, timeout=120, check=True).stdout
    assert re.search(r"\n  worker:0 +n\d +[A-Z_]+ +(exit code|signal) \d+ +\d+ s", said), said
    assert re.search(r"\n  master +n\d +FAILED +exit code 1 ", said), said


def test_what_runs_in_extra_jobs_outlives_the_master(engine: Engine, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, role={"replicas": 3, "resources": Resources(256, vcores=5)}, gang=False)
    programs = [job.program(index) for index in (0, 1, 2)]
    os.kill(master_of(job), signal.SIGKILL)
    until(lambda: job.of(TookOver), "the next master")
    assert all(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in programs)
    job.finish()
    assert job.ended().state is State.SUCCEEDED, job.report
    assert len(job.of(Launched)) == 3, "taking over restarts nothing"
    until(lambda: not ask("squeue", "-ht", "PD,R", "-o", "%j").split(), "the end of the extra jobs")


def test_a_heterogeneous_job_comes_back(engine: Engine, slurm: SlurmSandbox, tmp_path: Path) -> None:
    spec = Role(("/bin/sh", "-c", WAITING.format(mark=tmp_path / "other")), resources=Resources(256, vcores=6))
    job = Job(engine, tmp_path, role={"resources": Resources(256, vcores=5)}, more={"ps": spec}, retries=3)
    job.program()
    slurm.lose_node(ask("squeue", "-hj", job.number, "-o", "%B").split()[0])
    job.program(0, 2)
    job.finish()
    (tmp_path / "other-end").touch()
    assert job.ended().state is State.SUCCEEDED, job.report


def test_a_lost_batch_host_brings_the_job_back(engine: Engine, slurm: SlurmSandbox, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, role={"replicas": 2, "resources": Resources(256, vcores=5)}, retries=3)
    job.program(0), job.program(1)
    slurm.lose_node(ask("squeue", "-hj", job.number, "-o", "%B").strip())
    job.program(0, 2), job.program(1, 2)
    job.finish()
    assert job.ended().state is State.SUCCEEDED, job.report
    assert job.of(TookOver)


def test_a_lost_node_of_another_component_is_replaced(engine: Engine, slurm: SlurmSandbox, tmp_path: Path) -> None:
    spec = Role(("/bin/sh", "-c", WAITING.format(mark=tmp_path / "other")), resources=Resources(256, vcores=6))
    job = Job(engine, tmp_path, role={"resources": Resources(256, vcores=5)}, more={"ps": spec}, retries=3)
    job.program()
    until(lambda: (tmp_path / "other-0-1").exists(), "ps:0")
    nodes = {each.task.role: each.container.node for each in job.of(Launched)}
    assert nodes["worker"] == ask("squeue", "-hj", job.number, "-o", "%B").split()[0], "the batch host"
    slurm.lose_node(nodes["ps"])
    until(lambda: (tmp_path / "other-0-2").exists(), "ps:0 elsewhere")
    assert [each.container.node for each in job.of(Launched) if each.task.role == "ps"][-1] not in nodes.values()
    job.finish()
    (tmp_path / "other-end").touch()
    assert job.ended().state is State.SUCCEEDED, job.report
    assert job.of(TookOver) + job.of(AllocationLost) == []
    assert job.causes()[0] in ("lost", "silent"), job.causes()


def test_a_requeued_job_comes_back(engine: Engine, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, role={"replicas": 2}, retries=1)
    job.program(0), job.program(1)
    ask("scontrol", "requeue", job.number)
    job.program(0, 2), job.program(1, 2)
    job.finish()
    assert job.ended().state is State.SUCCEEDED, job.report
    assert [(each.comes_back, each.cause) for each in job.of(AllocationLost)] == [
        (True, "Slurm put the job back into the queue")
    ]


@pytest.fixture
def preemption(request: pytest.FixtureRequest, slurm: SlurmSandbox) -> Iterator[tuple[int, bool]]:
    """Set how long a preempted job has, and whether Slurm sends its batch script the announcing signal."""
    grace_s, is_announced = request.param
    conf = slurm.run_dir / "slurm.conf"
    before = conf.read_text()
    try:
        if is_announced:
            conf.write_text(f"{before}SlurmctldParameters=preempt_send_user_signal\n")
            ask("scontrol", "reconfigure")
        ask("scontrol", "update", "PartitionName=preemptable", f"GraceTime={grace_s}")
        yield grace_s, is_announced
    finally:
        conf.write_text(before)
        ask("scontrol", "reconfigure")
        ask("scontrol", "update", "PartitionName=preemptable", "GraceTime=0")


@pytest.mark.parametrize("preemption", [(0, False), (10, False), (10, True)], indirect=True, ids=str)
def test_a_preempted_job_comes_back(engine: Engine, tmp_path: Path, preemption: tuple[int, bool]) -> None:
    """With GraceTime Slurm ends the steps first and the job later; or the batch script is told, and announces it."""
    job = Job(engine, tmp_path, role={"replicas": 2}, queue="preemptable", retries=1)
    job.program(0), job.program(1)
    other = ask("sbatch", "--parsable", "-N3", "--exclusive", "--output=/dev/null", "--wrap", "sleep 600").strip()
    until(lambda: job.report.state is State.PENDING, "preemption")
    assert "Slurm" in job.report.diagnostics
    ask("scancel", other)
    job.program(0, 2), job.program(1, 2)
    job.finish()
    assert job.ended().state is State.SUCCEEDED, job.report
    assert [each.comes_back for each in job.of(AllocationLost)] == [True]
    assert "preempted" in job.of(AllocationLost)[0].cause
    announced = [each for each in job.of(LossAnnounced) if "another job" in each.text]
    assert len(announced) == (2 if preemption[1] else 0), job.events
    assert all(0 < each.within_s <= preemption[0] for each in announced)


def test_scancel_cancels(engine: Engine, tmp_path: Path) -> None:
    job = Job(engine, tmp_path)
    pid = job.program()
    ask("scancel", job.number)
    assert job.ended().state is State.CANCELLED
    assert job.slurm_state() == "CANCELLED"
    until(lambda: not Path(f"/proc/{pid}").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes(), "the end")


def test_a_program_saves_when_scancel_ends_it(engine: Engine, tmp_path: Path) -> None:
    """Started by a shell that ends at once; it is told once, and prints that it has saved."""
    saver = f"""trap 'echo told >> {tmp_path}/told; sleep 2; echo saved > {tmp_path}/saved; exit' TERM
    touch {tmp_path}/mark-0-1; while true; do sleep 0.1; done"""
    (tmp_path / "saver.sh").write_text(saver)
    job = Job(engine, tmp_path, f"sh {tmp_path}/saver.sh; true", checkpoint=Checkpoint(path=(tmp_path / "c").as_uri()))
    until((tmp_path / "mark-0-1").exists, "the program")
    ask("scancel", job.number)
    assert job.ended().state is State.CANCELLED
    assert (tmp_path / "saved").read_text() == "saved\n"
    assert (tmp_path / "told").read_text() == "told\n"
    assert job.slurm_state() == "CANCELLED"


def test_a_waiting_job_says_why_and_can_be_cancelled(engine: Engine, tmp_path: Path) -> None:
    other = ask("sbatch", "--parsable", "-N3", "--exclusive", "--output=/dev/null", "--wrap", "sleep 600").strip()
    until(lambda: "R" in ask("squeue", "-hj", other, "-o", "%t"), "the job in the way")
    job = Job(engine, tmp_path)
    until(lambda: "Resources" in job.report.diagnostics or "Priority" in job.report.diagnostics, "the reason")
    assert job.report.state is State.PENDING
    assert any("Slurm" in each.facts["text"] for each in engine.pending_reasons(job.id, None, {}))
    engine.cancel(job.id)
    assert job.ended().state is State.CANCELLED
    ask("scancel", other)


def test_a_checkpoint_is_saved_at_the_time_limit_and_the_next_job_goes_on(engine: Engine, tmp_path: Path) -> None:
    line = f"""if [ "$HOWDAH_RESUME_FROM" ]; then cp $HOWDAH_RESUME_FROM/state {tmp_path}/resumed; exit 0; fi
    save() {{ cd $HOWDAH_CHECKPOINT_DIR; mkdir step-7; echo seven > step-7/state; touch step-7/done; }}
    trap save URG; echo $$ > {tmp_path}/mark-0-1; while true; do sleep 0.1; done"""
    checkpoint = Checkpoint(path=(tmp_path / "checkpoints").as_uri(), valid="marker:done")
    first = Job(engine, tmp_path, line, queue="short", engines={"slurm": {"time": "2min"}}, checkpoint=checkpoint)
    first.program()
    report = first.ended()
    assert report.state is State.FAILED
    assert "time limit" in report.diagnostics
    (announced,) = first.of(LossAnnounced)
    assert "time limit" in announced.text
    second = Job(engine, tmp_path, line, checkpoint=checkpoint)
    assert second.ended().state is State.SUCCEEDED, second.report
    assert (tmp_path / "resumed").read_text() == "seven\n"


def test_a_controller_that_restarts_costs_a_job_nothing(engine: Engine, slurm: SlurmSandbox, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, role={"on_failure": "restart", "replicas": 2})
    first = job.program(0)
    job.program(1)
    slurm.stop("slurmctld")
    try:
        os.kill(first, signal.SIGKILL)  # the next attempt runs in the same container
        job.program(0, 2)
        done = subprocess.run([HOWDAH, "explain", job.id], capture_output=True, text=True, timeout=120)
        # A line before it says that the cluster is being asked, which may take long.
        said = [line for line in done.stderr.splitlines() if line.startswith("howdah:")]
        assert (done.returncode, len(said)) == (69, 1), done
        assert "Slurm's controller does not answer" in said[0]
    finally:
        slurm.start("slurmctld")
    job.finish()
    assert job.ended().state is State.SUCCEEDED, job.report
    assert job.slurm_state() == "COMPLETED"


@pytest.mark.skipif(not (MEMORY_GROUPS / "release_agent").exists(), reason="needs cgroups v1")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_task_that_needs_more_memory_than_it_asked_for(
    slurm_home: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SlurmSandbox(tmp_path_factory.mktemp("slurm"), SlurmShape(nodes=1, gpus=0, memory_limits=True)) as limited:
        monkeypatch.setenv("SLURM_CONF", limited.env()["SLURM_CONF"])
        job = Job(engine_for(settings_for({"engine": "slurm"})), tmp_path, "python3 -c 'bytearray(600 << 20)'")
        report = job.ended()
        assert report.state is State.FAILED
        assert "memory" in report.diagnostics
        assert job.of(Ended)[0].exit.cause == "memory"


def test_gpus_are_those_that_slurm_gives(engine: Engine, tmp_path: Path) -> None:
    line = f'echo "${{CUDA_VISIBLE_DEVICES-none}}" > {tmp_path}/gpus-$HOWDAH_INDEX; env > {tmp_path}/env; sleep 1'
    job = Job(engine, tmp_path, line, role={"replicas": 2, "resources": Resources(256, gpus=2)})
    assert job.ended().state is State.SUCCEEDED, job.report
    found = [(tmp_path / f"gpus-{index}").read_text().strip() for index in (0, 1)]
    assert all(re.fullmatch(r"[0-3],[0-3]", text) for text in found), found
    if job.launched(0).container.node == job.launched(1).container.node:
        assert found[0] != found[1]
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert not {name for name in names if name.startswith(("SLURM_", "PMI")) and name != "SLURM_CONF"}


def test_tasks_without_a_gang_are_an_array(engine: Engine, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, role={"replicas": 5, "resources": Resources(256, vcores=8)}, gang=False)
    job.program(0)

    def arrays() -> set[str]:
        rows = [row.split() for row in ask("squeue", "-hrt", "PD,R", "-o", "%j %F").splitlines()]
        return {row[1] for row in rows if row[0].startswith("howdah-")}

    found = until(arrays, "an array")
    job.program(1), job.program(2)
    assert len(found) == 1, "one array brings all other tasks"
    assert arrays() == found, "what still waits keeps its turn"
    job.finish()
    assert job.ended().state is State.SUCCEEDED, job.report


BIG = {"command": "true", "resources": {"vcores": 8}}


@pytest.mark.parametrize(
    ("job", "words", "code"),
    [
        ({"queue": "nosuch"}, "Invalid partition name specified (--partition=nosuch)", 77),
        ({"engines": {"slurm": {"account": "nosuch"}}}, "Invalid account or account/partition", 77),
        ({"engines": {"slurm": {"qos": "nosuch"}}}, "Invalid qos specification (--qos=nosuch)", 77),
        ({"engines": {"slurm": {"reservation": "nosuch"}}}, "reservation is invalid (--reservation=nosuch)", 77),
        ({"node_label": "nosuch"}, "Invalid feature specification (--constraint=nosuch)", 77),
        ({"roles": {"worker": {**BIG, "resources": {"vcores": 64}}}}, "not available", 77),
        ({"roles": {"worker": {**BIG, "resources": {"gpus": 64}}}}, "not available", 77),
        ({"roles": {"worker": {**BIG, "resources": {"named": {"fpga": 1}}}}}, "Invalid generic resource (gres)", 77),
        ({"roles": {"worker": {**BIG, "replicas": 4}}}, "not available", 77),
        ({"engines": {"slurm": {"colour": "red"}}}, "engines.slurm.colour", 64),
        ({"name": "controller"}, "Slurm's controller does not answer", 69),
    ],
)
def test_what_cannot_be_is_one_line_and_leaves_nothing(
    slurm: SlurmSandbox, slurm_home: Path, tmp_path: Path, job: dict[str, Any], words: str, code: int
) -> None:
    (tmp_path / "job.yaml").write_text(json.dumps({"roles": {"worker": {"command": "true"}}, **job}))
    command = [HOWDAH, "run", "--on", "slurm", str(tmp_path / "job.yaml")]
    is_down = job.get("name") == "controller"
    try:
        if is_down:
            slurm.stop("slurmctld")
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    finally:
        slurm.start("slurmctld")
    assert (done.returncode, words in done.stderr, done.stdout) == (code, True, ""), done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not list(slurm_home.glob("slurm/jobs/*"))
    assert not list(slurm_home.glob("slurm/output/*"))
    until(lambda: not ask("squeue", "-h", "-t", "PD,R").split(), "an empty queue")


def test_an_older_job_of_the_same_number_keeps_its_directory(slurm: SlurmSandbox, slurm_home: Path) -> None:
    """A cluster that was set up anew counts its jobs from one again."""
    number = int(ask("sbatch", "--parsable", "--output=/dev/null", "--wrap", "true"))
    older = [slurm_home / "slurm" / "jobs" / f"slurm-{number + next}" for next in range(1, 4)]
    for directory in older:
        directory.mkdir(parents=True)
        (directory / "events.jsonl").touch()
    command = [HOWDAH, "run", "--on", "slurm", "--", "true"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (66, "", 1), done
        assert "is of another job slurm-" in done.stderr
        until(lambda: not ask("squeue", "-h", "-t", "PD,R").split(), "the end of the refused job")
        assert [[path.name for path in directory.iterdir()] for directory in older] == [["events.jsonl"]] * 3
        assert sorted((slurm_home / "slurm" / "jobs").iterdir()) == older
    finally:
        for directory in older:
            shutil.rmtree(directory)
