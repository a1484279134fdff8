"""Tests the parts of the Slurm engine that need no Slurm: shapes, what its commands print, and how steps end."""

from __future__ import annotations

import shlex
import stat
import subprocess
from pathlib import Path

import pytest
from fake_slurm import FakeSlurm

from howdah.engines.slurm import commands
from howdah.engines.slurm.batch_script import GUARD, batch_script
from howdah.engines.slurm.commands import SlurmCommands, SlurmJob, tasks_per_node
from howdah.engines.slurm.engine import SlurmEngine, explain_start, explain_wait
from howdah.engines.slurm.shapes import components, shape_of
from howdah.engines.slurm.step_end import end_of_step
from howdah.errors import EngineRejected, EngineUnavailable
from howdah.spec import JobSpec, Resources, Role, StagedJob, uris
from howdah.spec.job import Placement

EXPIRED = "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 3"


@pytest.mark.parametrize(("text", "counts"), [("2(x3),1", [2, 2, 2, 1]), ("4", [4]), ("1(x2)", [1, 1])])
def test_tasks_per_node(text: str, counts: list[int]) -> None:
    assert list(tasks_per_node(text)) == counts


class TestShapes:
    def test_equal_roles_are_one_component(self) -> None:
        job = JobSpec({"ps": Role("", 2, Resources(512)), "worker": Role("", 3, Resources(512), spares=1)})
        assert list(components(job).values()) == [6]

    def test_later_stages_use_the_same_places(self) -> None:
        job = JobSpec({"a": Role("", 4), "b": Role("", 2, after=("a",))})
        assert list(components(job).values()) == [4]

    def test_different_roles_are_components_of_their_own(self) -> None:
        job = JobSpec({"ps": Role("", 2, Resources(512)), "worker": Role("", 3, Resources(512, gpus=1))})
        assert sorted(components(job).values()) == [2, 3]

    def test_without_a_gang_the_allocation_is_one_task(self) -> None:
        assert list(components(JobSpec({"worker": Role("", 100)}, gang=False)).values()) == [1]

    def test_options(self) -> None:
        placement = Placement(spread=True, avoid=("n7", "n8"))
        role = Role("", 3, Resources(1000, vcores=3, gpus=2), node_label="fast", placement=placement)
        shape = shape_of(JobSpec({"worker": role}), "worker")
        assert shape.job_options(3, "ib") == [
            *("--ntasks=3", "--cpus-per-task=3", "--mem-per-cpu=334M", "--gpus-per-task=2", "--nodes=3"),
            *("--ntasks-per-node=1", "--constraint=fast&ib", "--exclude=n7,n8"),
        ]
        assert shape.step_options()[-1] == "--gres=gpu:2"
        assert shape_of(JobSpec({"worker": Role("")}), "worker").step_options()[-1] == "--gres=none"


@pytest.mark.parametrize(
    ("version", "option"),
    [("slurm-wlm 22.05.8", "--requeue"), ("slurm 25.05.3", "--requeue"), ("slurm 25.11.0-0rc1", "--requeue=expedite")],
)
def test_newer_versions_bring_jobs_back_before_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, option: str
) -> None:
    slurm = FakeSlurm(tmp_path / "state", monkeypatch)
    slurm.say("version", version)
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "howdah"))
    job = JobSpec({"worker": Role("true")}, engines={"slurm": {"segment": "4", "switches": "1@30:00"}})
    planned = SlurmEngine({}).plan(StagedJob(job, "")).request["sbatch"][0]
    assert (option in planned, {"--segment=4", "--switches=1@30:00"} <= set(planned)) == (True, True), planned


class TestEndOfStep:
    @pytest.mark.parametrize(
        ("said", "status", "cause"),
        [
            ("", 0, "exit"),
            ("srun: error: n1: task 0: Exited with exit code 3", 3, "exit"),
            ("srun: error: n1: task 0: Killed", 137, "signal"),
            ("srun: error: Node failure on n2", 1, "lost"),
            ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=3.0", 137, "memory"),
            ("srun: error: Unable to create step for job 3: Node is down", 1, "lost"),
            ("srun: error: Unable to create step for job 3: Unable to contact slurm controller", 1, "withdrawn"),
            ("slurmstepd: error: *** STEP 3.0 ON n1 CANCELLED AT 2026 DUE TO JOB REQUEUE ***", 143, "withdrawn"),
            ("srun: error: Task launch for StepId=3.1 failed on node n2: Communication connection failure", 1, "lost"),
            ("srun: error: Application launch failed: Socket timed out on send/recv operation", 1, "lost"),
            ("srun: error: step_launch_notify_io_failure: aborting, io error with slurmstepd on node 0", 137, "lost"),
            ("srun: error: _check_io_timeout: aborting, io error and missing step on node 0", 137, "lost"),
            (
                f"srun: error: Unable to confirm allocation for job 3: Invalid job id specified\n{EXPIRED}",
                1,
                "withdrawn",
            ),
            (f"srun: error: SLURM job 3 has expired\n{EXPIRED}", 1, "withdrawn"),
            ("", None, "withdrawn"),
        ],
    )
    def test_what_srun_says_tells_the_cause(self, tmp_path: Path, said: str, status: int | None, cause: str) -> None:
        (tmp_path / "srun.log").write_text(said)
        assert end_of_step(tmp_path, status, released=False).cause == cause

    def test_a_released_one_was_stopped(self, tmp_path: Path) -> None:
        assert end_of_step(tmp_path, 143, released=True).cause == "stopped"

    def test_the_last_line_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "executor.log").write_text("begin\nno such module\n")
        assert "no such module" in end_of_step(tmp_path, 78, released=False).detail


class TestCommands:
    @pytest.fixture
    def sbatch(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A program in place of sbatch, which the test writes."""
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        path = tmp_path / "sbatch"
        path.touch()
        path.chmod(stat.S_IRWXU)
        return path

    def test_a_refusal_is_one_line(self, sbatch: Path) -> None:
        sbatch.write_text("#!/bin/sh\necho 'sbatch: error: a' >&2; echo 'allocation failure: b c' >&2; exit 1\n")
        with pytest.raises(EngineRejected) as caught:
            SlurmCommands().submit([], "")
        assert str(caught.value) == "Slurm: b c"

    def test_a_controller_that_is_down(self, sbatch: Path) -> None:
        sbatch.write_text("#!/bin/sh\necho 'sbatch: error: Unable to contact slurm controller' >&2; exit 1\n")
        with pytest.raises(EngineUnavailable, match="controller does not answer"):
            SlurmCommands().submit([], "")

    def test_a_command_that_hangs_has_a_limit(self, sbatch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(commands, "LIMIT_S", 0.1)
        sbatch.write_text("#!/bin/sh\nexec sleep 60\n")
        with pytest.raises(EngineUnavailable, match="sbatch has not answered"):
            SlurmCommands().submit([], "")

    def test_none_installed(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(EngineUnavailable, match="sbatch is not installed"):
            SlurmCommands().submit([], "")

    def test_another_jobs_variables_do_not_reach_slurm(self, sbatch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("SLURM_NTASKS", "SBATCH_WAIT", "SQUEUE_PARTITION"):
            monkeypatch.setenv(name, "7")
        sbatch.write_text("#!/bin/sh\necho ${SLURM_NTASKS-${SBATCH_WAIT-${SQUEUE_PARTITION-none}}}\n")
        assert SlurmCommands("/some/slurm.conf").submit([], "") == "none"

    def test_accounts_are_rows_of_steps(self, sbatch: Path) -> None:
        rows = [
            "7|FAILED|1:0|9||n[1-2]|a|b",
            "7.0|CANCELLED by 0|0:9|8|12.50M|n1|worker-0",
            "7.batch|RUNNING|0:0||0|n2|batch",
        ]
        sbatch.with_name("sacct").write_text(f"#!/bin/sh\nprintf '%s\\n' '{rows[0]}' '{rows[1]}' '{rows[2]}'\n")
        sbatch.with_name("sacct").chmod(stat.S_IRWXU)
        found = SlurmCommands().accounted("7")
        assert [(row.task, row.state, row.signal) for row in found] == [
            ("", "FAILED", 0),
            ("worker-0", "CANCELLED", 9),
            ("batch", "RUNNING", 0),
        ]
        assert [(row.elapsed_s, row.memory_mib, row.node) for row in found[1:]] == [(8.0, 12.5, "n1"), (0.0, 0.0, "n2")]
        assert SlurmCommands().accounted() == []

    def test_without_accounts_there_are_no_rows(self, sbatch: Path) -> None:
        sbatch.with_name("sacct").write_text("#!/bin/sh\necho 'Slurm accounting storage is disabled' >&2; exit 1\n")
        sbatch.with_name("sacct").chmod(stat.S_IRWXU)
        assert SlurmCommands().accounted("7") == []

    def test_what_administrators_write_may_be_in_any_encoding(self, sbatch: Path) -> None:
        sbatch.with_name("scontrol").write_bytes(
            b"#!/bin/sh\necho 'NodeName=n1 NodeAddr=10.0.0.1 Reason=d\xe9fectueux'\n"
        )
        sbatch.with_name("scontrol").chmod(stat.S_IRWXU)
        assert SlurmCommands().facts("node", "n1")["n1"]["NodeAddr"] == "10.0.0.1"

    def test_a_command_that_cannot_be_started_is_no_answer(self, sbatch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(sbatch.parent))
        sbatch.with_name("squeue").write_text("no program")
        sbatch.with_name("squeue").chmod(stat.S_IRWXU)
        with pytest.raises(EngineUnavailable, match="squeue cannot be started: Exec format error"):
            SlurmCommands().jobs("7")

    def test_facts_are_by_name_or_number(self, sbatch: Path) -> None:
        sbatch.with_name("scontrol").write_text(
            "#!/bin/sh\n[ $2 = job ] && echo 'JobId=7 A=b=c' || echo 'NodeName=n1 X=y'\n"
        )
        sbatch.with_name("scontrol").chmod(stat.S_IRWXU)
        assert SlurmCommands().facts("job", "7")["7"]["A"] == "b=c"
        assert SlurmCommands().facts("node", "n1")["n1"]["X"] == "y"


class TestBatchScript:
    """The script runs here, with a shell line in place of the master and of Slurm's commands."""

    def play(self, home: Path, master: str, attempts: int = 2) -> tuple[int, list[str]]:
        directory = home / "jobs" / "slurm-7"
        directory.mkdir(parents=True)
        (directory / "mark").touch()
        (home / "bin").mkdir()
        for name in ("scontrol", "scancel"):
            (home / "bin" / name).write_text(
                f"#!/bin/sh\ncd {shlex.quote(str(home))}\necho {name} $1 >> calls\n"
                "if [ $1 = show ]; then [ ! -e silent ] || { rm silent; exit 1; }\n"
                "echo NodeName=n1 NodeAddr=10.0.0.1 X=y; else [ ! -e away ] || ! rm away; fi\n"
            )
            (home / "bin" / name).chmod(stat.S_IRWXU)
        (home / "bin" / "sleep").write_text("#!/bin/sh\nexit 0\n")
        (home / "bin" / "sleep").chmod(stat.S_IRWXU)
        command = ["/bin/sh", "-c", f"echo $HOWDAH_MASTER_ATTEMPT >> ../../attempts; {master}", "master"]
        path = f"{home / 'bin'}:/usr/bin:/bin"
        script = batch_script(home, "mark", command, {"PATH": path}, attempts)
        environment = {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "1", "SLURMD_NODENAME": "n1", "PATH": path}
        done = subprocess.run(["bash", "-c", script], env=environment, timeout=60)
        calls = (home / "calls").read_text().splitlines() if (home / "calls").exists() else []
        return done.returncode, [
            *(home / "attempts").read_text().split(),
            *[call for call in calls if "show" not in call],
        ]

    @pytest.mark.parametrize(
        ("master", "status", "happened"),
        [
            ("echo SUCCEEDED > outcome", 0, ["101"]),
            ("echo FAILED > outcome", 1, ["101"]),
            ("echo CANCELLED > outcome", 1, ["101", "scancel 7"]),
            ("kill -9 $$", 1, ["101", "102"]),
            ("exit 3", 1, ["101"]),
            ("[ $HOWDAH_MASTER_ATTEMPT = 102 ] && echo SUCCEEDED > outcome && exit 0; kill -9 $$", 0, ["101", "102"]),
            ("touch requeue; kill -9 $$", 1, ["101", "scontrol requeue"]),
            ("kill -TERM $PPID; sleep 0.1; kill -9 $$", 1, ["101"]),
        ],
    )
    def test_it_ends_as_the_job(self, tmp_path: Path, master: str, status: int, happened: list[str]) -> None:
        assert self.play(tmp_path, master) == (status, happened)
        assert not (tmp_path / "jobs" / "slurm-7" / "requeue").exists()

    @pytest.mark.parametrize(("silent", "host"), [("once", "10.0.0.1"), ("never", "10.0.0.1"), ("always", "n1")])
    def test_a_master_has_an_address_that_other_nodes_reach(self, tmp_path: Path, silent: str, host: str) -> None:
        if silent != "never":
            (tmp_path / "silent").mkdir() if silent == "always" else (tmp_path / "silent").touch()
        assert self.play(tmp_path, "echo $HOWDAH_HOST > ../../host; echo SUCCEEDED > outcome")[0] == 0
        assert (tmp_path / "host").read_text() == f"{host}\n"

    def test_the_path_of_the_home_may_have_any_letters(self, tmp_path: Path) -> None:
        home = tmp_path / 'my "home" of $USER `date`'
        home.mkdir()
        assert self.play(home, 'echo "$0 $*" > ../../line; echo SUCCEEDED > outcome')[0] == 0
        directory = uris.of_local(home / "jobs" / "slurm-7")
        assert (home / "line").read_text() == f"master --id slurm-7 --directory {directory} --job job.json\n"

    def test_a_controller_that_is_away_loses_no_requeue(self, tmp_path: Path) -> None:
        (tmp_path / "away").touch()
        assert self.play(tmp_path, "touch requeue; kill -9 $$") == (1, ["101", "scontrol requeue", "scontrol requeue"])


class TestGuard:
    """The script runs here, with shell lines in place of Slurm's commands, and looks once."""

    @pytest.mark.parametrize(
        ("nodes", "requeues"),
        [("n1,n2", False), ("n2,n11", True), ("", False), ("broken", False), ("n2\nn1", False)],
    )
    def test_it_puts_a_job_back_that_has_lost_its_batch_host(self, tmp_path: Path, nodes: str, requeues: bool) -> None:
        for name, line in {
            "sleep": f"mkdir {tmp_path}/looked",
            "squeue": f"printf '{nodes}'",
            "scontrol": f"[ $1 = show ] || exec touch {tmp_path}/requeued; echo $3 | grep -v broken | tr , ' '",
        }.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{line} 2>/dev/null\n")
            (tmp_path / name).chmod(stat.S_IRWXU)
        script = GUARD.format(number="7", host="n1", mark=tmp_path / "mark")
        subprocess.run(["sh", "-c", script], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, timeout=60)
        assert [(tmp_path / name).exists() for name in ("requeued", "mark")] == [requeues, requeues]


def test_a_configuration_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path))
    monkeypatch.setattr(commands, "_CONF_FILES", ())
    monkeypatch.delenv("SLURM_CONF", raising=False)
    assert commands.find_conf({}) == ""
    monkeypatch.setenv("SLURM_CONF", "/a/slurm.conf")
    assert commands.find_conf({}) == "/a/slurm.conf"
    assert commands.find_conf({"slurm.conf": "/b/slurm.conf"}) == "/b/slurm.conf"


@pytest.mark.parametrize("job_id", ["slurm-", "slurm-1x", "../slurm-1", "slurm-٣", "local-1"])
def test_what_is_no_id_is_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job_id: str) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path))
    engine = SlurmEngine({})
    assert engine.describe(job_id) == []
    assert engine.pending_reasons(job_id, None, {}) == []


def test_why_a_job_waits_is_said_in_slurms_word_once_it_has_one() -> None:
    told = [SlurmJob("1", "1", "N/A", "PENDING", reason, "", "N/A", "main") for reason in ("None", "Resources")]
    assert list(map(explain_wait, told)) == [
        "Slurm has not looked at the job yet (partition main)",
        "Slurm: Resources (partition main)",
    ]


@pytest.mark.parametrize("where", ["nodes n[1-2] in partition main", "n[1-2]"])
def test_the_plan_says_when_slurm_would_start_a_job(where: str) -> None:
    said = f"Job 2937012 to start at 2026-12-01T03:09:27 using 2 processors on {where}"
    assert explain_start(said) == "Slurm would start it at 2026-12-01T03:09:27 on n[1-2], if it were submitted now"


def test_what_else_slurm_says_of_the_start_is_shown_as_it_is() -> None:
    assert explain_start("something else") == "something else"
