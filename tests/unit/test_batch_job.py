"""Tests how jobs of a batch system are submitted, described, cancelled and cleaned up after, where its commands are
scripts: two Slurm clusters have one home, and each knows its own jobs."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
import time
from pathlib import Path

import pytest

from howdah.engines import batch_job
from howdah.engines.cleanup import list_unfinished_jobs
from howdah.engines.slurm.engine import SlurmEngine
from howdah.errors import EngineRejected, EngineUnavailable, JobNotFound, SpecError, StagingError
from howdah.spec import JobSpec, Plan, Role, StagedJob, State, uris
from howdah.storage.factory import filesystem

NOBODY = 65534

COMMANDS = {
    # A cluster is the directory of its slurm.conf: `jobs` has the rows of squeue, and `ended` those of sacct.
    "scontrol": "echo 'SlurmctldHost[0] = ctl(10.0.0.1)'; echo SlurmctldPort = 6817; echo ClusterName = $(cat name)",
    "sbatch": "cat > script; [ -e refused ] && echo $(cat refused) >&2 && exit 1; cat number",
    "squeue": "cat jobs 2>/dev/null; exit 0",
    "sacct": "cat ended 2>/dev/null; exit 0",
    "scancel": "[ -e silent ] && echo 'Unable to contact slurm controller' >&2 && exit 1; rm -f jobs; touch cancelled",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the commands on the PATH, and give a home of its own."""
    for name, line in COMMANDS.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ncd ${{SLURM_CONF%/*}} && {line}\n")
        path.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "howdah"))
    return tmp_path / "howdah" / "slurm"


class FakeCluster:
    """A Slurm cluster that the scripts play."""

    def __init__(self, base: Path, name: str) -> None:
        self.directory = base / name
        self.directory.mkdir()
        self.others: dict[int, str] = {}
        for file, text in {"slurm.conf": "", "name": name}.items():
            (self.directory / file).write_text(text)

    @property
    def engine(self) -> SlurmEngine:
        return SlurmEngine({"slurm.conf": str(self.directory / "slurm.conf")})

    def submit(self, number: int, state: str = "RUNNING") -> str:
        (self.directory / "number").write_text(f"{number}\n")
        staged = StagedJob(JobSpec({"worker": Role("true")}), uris.of_local(self.directory))
        self.knows(number, state)
        return self.engine.submit(Plan("slurm", staged, {"sbatch": [[]]}), {"TOKEN": "hush"})

    def knows(self, number: int, state: str) -> None:
        rows = {**self.others, number: state}.items()
        lines = [f"{each}|{each}|{each}|N/A|{said}|None|n1|N/A|main\n" for each, said in rows]
        (self.directory / "jobs").write_text("".join(lines))

    def forgets(self) -> None:
        (self.directory / "jobs").unlink()

    def accounts(self, number: int, state: str) -> None:
        (self.directory / "ended").write_text(f"{number}|{state}|1:0|9||n1|job\n")


@pytest.fixture
def first(tmp_path: Path) -> FakeCluster:
    return FakeCluster(tmp_path, "first")


@pytest.fixture
def second(tmp_path: Path) -> FakeCluster:
    return FakeCluster(tmp_path, "second")


def forget_cluster(home: Path, job_id: str) -> None:
    """Let a job look like one of an earlier version, which does not say which cluster it is on."""
    path = home / "jobs" / job_id / "submitted.json"
    path.write_text(json.dumps({"submitted": time.time()}))


class TestTwoClustersOfOneHome:
    def test_a_submission_leaves_the_other_clusters_jobs_alone(
        self, home: Path, first: FakeCluster, second: FakeCluster
    ) -> None:
        running = first.submit(7)
        (home / "jobs" / running / "containers").mkdir()
        before = sorted(path.name for path in (home / "jobs" / running).iterdir())
        second.submit(900)
        assert sorted(path.name for path in (home / "jobs" / running).iterdir()) == before
        assert first.engine.describe(running)[0].state is State.RUNNING

    def test_each_lists_its_own(self, first: FakeCluster, second: FakeCluster) -> None:
        ids = [first.submit(7), second.submit(900)]
        assert [[report.id for report in each.engine.describe()] for each in (first, second)] == [[ids[0]], [ids[1]]]

    def test_a_job_that_is_named_is_said_to_be_there(self, first: FakeCluster, second: FakeCluster) -> None:
        job_id = first.submit(7)
        for call in (second.engine.describe, second.engine.cancel):
            with pytest.raises(JobNotFound) as caught:
                call(job_id)
            assert str(caught.value) == (
                "slurm-7 is a job of the cluster first of ctl(10.0.0.1):6817, "
                "not of the cluster second of ctl(10.0.0.1):6817"
            )
        assert not (second.directory / "cancelled").exists()

    def test_a_job_of_an_earlier_version_is_finished_where_its_end_is_known(
        self, home: Path, first: FakeCluster, second: FakeCluster
    ) -> None:
        job_id = first.submit(7)
        forget_cluster(home, job_id)
        second.submit(900)
        assert (home / "jobs" / job_id / "key").exists()
        assert first.engine.describe(job_id)[0].state is State.RUNNING
        first.forgets()
        first.accounts(7, "RUNNING")
        first.submit(8)
        assert (home / "jobs" / job_id / "key").exists(), "the accounts say that it runs"
        first.accounts(7, "FAILED")
        first.submit(9)
        assert not (home / "jobs" / job_id / "key").exists()
        assert not (home / "jobs" / job_id / "credentials").exists()

    def test_no_job_needs_no_cluster(self, first: FakeCluster) -> None:
        (first.directory / "name").unlink()
        assert first.engine.describe() == []
        assert first.engine.describe("slurm-7") == []


@pytest.mark.parametrize(("state", "stays"), [("PENDING", True), ("RUNNING", True), ("COMPLETED", False)])
def test_what_an_unfinished_job_may_need_stays_in_the_cache(
    home: Path, first: FakeCluster, state: str, stays: bool
) -> None:
    (entry := home / "cache" / "01" / f"{'ab' * 32}-train.py").parent.mkdir(parents=True)
    entry.touch()
    job_id = first.submit(7)
    for path, days in ((entry, 45), (home / "jobs" / job_id / "job.json", 20)):
        os.utime(path, (time.time() - days * 86400,) * 2)
    first.others[7] = state
    first.submit(8)
    assert entry.exists() is stays


class TestEnds:
    def test_a_killed_masters_job_is_finished_though_the_cluster_forgot_it(
        self, home: Path, first: FakeCluster
    ) -> None:
        job_id = first.submit(7)
        first.forgets()
        report = first.engine.describe(job_id)[0]
        assert (report.state, "has forgotten the job" in report.diagnostics) == (State.FAILED, True)
        first.submit(8)
        assert not (home / "jobs" / job_id / "credentials").exists()

    def test_more_jobs_than_have_three_digits(self, home: Path, first: FakeCluster) -> None:
        for number in range(975, 1000):
            (home / "jobs" / f"slurm-{number}").mkdir(parents=True)
        job_id = first.submit(1000)
        first.forgets()
        first.submit(1001)
        assert not (home / "jobs" / job_id / "credentials").exists()

    def test_what_a_killed_client_has_left_is_removed_later(self, home: Path, first: FakeCluster) -> None:
        old, fresh = home / "jobs" / ".submitting-1", home / "jobs" / ".submitting-2"
        for directory in (old, fresh):
            directory.mkdir(parents=True)
            (directory / "credentials").touch()
        os.utime(old, (time.time() - 4000, time.time() - 4000))
        first.submit(7)
        assert (old.exists(), fresh.exists()) == (False, True)

    def test_the_accounts_of_the_master_are_those_of_its_own_job(self, home: Path, first: FakeCluster) -> None:
        job_id = first.submit(7)
        (home / "jobs" / job_id / "extra-jobs").write_text("8")
        rows = {
            "7": ["7|FAILED|1:0|9||n1|a|b", "7.batch|FAILED|1:0|9||n1|batch"],
            "8": ["8.batch|FAILED|0:0|5||n2|batch"],
        }
        rows["8"].append("8.0|COMPLETED|0:0|5||n2|worker-1")
        for number, lines in rows.items():
            (first.directory / f"ended-{number}").write_text("\n".join(lines))
        sacct = Path(os.environ["PATH"].partition(":")[0], "sacct")
        sacct.write_text(
            "#!/bin/sh\nfor word; do case $word in --jobs=*) cat ${SLURM_CONF%/*}/ended-${word#*=};; esac; done\n"
        )
        assert [(row.task, row.node) for row in first.engine.accounting(job_id)] == [
            ("master", "n1"),
            ("worker:1", "n2"),
        ]


class TestCancelling:
    def test_a_cancelled_job_leaves_nothing_behind(self, home: Path, first: FakeCluster) -> None:
        job_id = first.submit(7)
        (home / "output" / "7").touch()
        first.engine.cancel(job_id)
        assert first.engine.describe(job_id)[0].state is State.CANCELLED
        assert not list((home / "output").iterdir())
        assert not (home / "jobs" / job_id / "key").exists()

    def test_programs_have_the_time_that_slurm_leaves_them(
        self, tmp_path: Path, home: Path, first: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(batch_job, "CANCEL_LIMIT_S", 0.0)
        job_id = first.submit(7)
        (tmp_path / "bin/scancel").write_text("#!/bin/sh\nexit 0\n")
        (tmp_path / "bin/scontrol").write_text(
            f"#!/bin/sh\ncd {first.directory} && {COMMANDS['scontrol']}; echo KillWait = 300 sec\n"
        )
        (tmp_path / "bin/squeue").write_text(
            f"#!/bin/sh\ncd {first.directory} && cat jobs\n"
            "[ -e stops ] && sed -i s/RUNNING/CANCELLED/ jobs\ntouch stops\n"
        )
        first.engine.cancel(job_id)
        assert not (home / "jobs" / job_id / "key").exists()

    def test_who_could_not_cancel_is_not_named(self, home: Path, first: FakeCluster) -> None:
        job_id = first.submit(7)
        (first.directory / "silent").touch()
        with pytest.raises(EngineUnavailable):
            first.engine.cancel(job_id)
        assert not (home / "jobs" / job_id / "cancelled-by").exists()
        first.knows(7, "FAILED")
        assert first.engine.describe(job_id)[0].state is State.FAILED


class TestSubmissionsThatFail:
    def test_a_refusal_leaves_nothing(self, home: Path, first: FakeCluster) -> None:
        (first.directory / "refused").write_text("sbatch: error: Batch job submission failed: no")
        with pytest.raises(EngineRejected, match="Slurm: no"):
            first.submit(7)
        assert list((home / "jobs").iterdir()) == []

    def test_a_job_in_the_way_leaves_no_output(self, home: Path, first: FakeCluster) -> None:
        (home / "jobs" / "slurm-7").mkdir(parents=True)
        (home / "output").mkdir()
        (home / "output" / "7").touch()
        with pytest.raises(StagingError, match="is of another job"):
            first.submit(7)
        assert (first.directory / "cancelled").exists()
        assert not list((home / "output").iterdir())

    @pytest.mark.parametrize("place", ["slurm.conf", "SLURM_CONF"])
    def test_a_configuration_must_exist(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
        conf = str(tmp_path / "nosuch.conf")
        monkeypatch.setenv("SLURM_CONF", conf)
        engine = SlurmEngine({"slurm.conf": conf} if place == "slurm.conf" else {})
        with pytest.raises(SpecError) as caught:
            engine.plan(StagedJob(JobSpec({"worker": Role("true")}), ""))
        assert str(caught.value) == f"{place}: {conf} does not exist"


def test_jobs_of_another_user_in_the_same_home_are_left_alone() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as base, contextlib.ExitStack() as stack:
        home = Path(base)
        home.chmod(0o755)
        (home / "jobs" / "slurm-7").mkdir(parents=True)
        (home / "jobs" / "slurm-7").chmod(0)
        engine, files = SlurmEngine({"staging_dir": base}), filesystem(uris.of_local(home))
        if os.geteuid() == 0:
            os.seteuid(NOBODY)
            stack.callback(os.seteuid, 0)
        assert engine.describe() == []
        assert list_unfinished_jobs(files, uris.of_local(home)) == []
        with pytest.raises(PermissionError):
            engine.describe("slurm-7")


def test_a_home_that_the_nodes_do_not_see_is_named(home: Path, first: FakeCluster) -> None:
    job_id = first.submit(7)
    first.knows(7, "FAILED")
    (report,) = first.engine.describe(job_id)
    why = "Slurm: failed, and the event log does not say why"
    asked = f"do all nodes see {home} under this path? (staging_dir)"
    assert report.diagnostics == f"{why}; its node has written nothing to the job's directory: {asked}"
    first.knows(7, "DEADLINE")
    assert first.engine.describe(job_id)[0].diagnostics == "Slurm ended it at its deadline"
    first.knows(7, "FAILED")
    (home / "jobs" / job_id / "master.log").touch()
    assert first.engine.describe(job_id)[0].diagnostics == why
