"""The suite that every engine passes: inherit `EngineContract` in a test module and set `name`.

    class TestMyEngine(EngineContract):
        name = "mine"

The engine must be configured where the tests run, find the Python that runs them on its nodes, and have room for two
tasks of 256 MiB. Programs must run on this machine, with this machine's temporary directory.

A subclass may say more of its cluster, for the tests that need it: `other_user`, `without_masters`.
"""

from __future__ import annotations

import contextlib
import socket
import time
import urllib.parse
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from howdah.client.clusters import engine_of
from howdah.client.engine_registry import engine as engine_for
from howdah.client.engine_registry import settings_for
from howdah.client.job_end import report_of
from howdah.client.master_client import connect
from howdah.client.submit import PreparedJob, prepare
from howdah.engines import Engine
from howdah.engines.info import find
from howdah.errors import HowdahError, JobNotFound
from howdah.spec import JobReport, JobSpec, Output, Plan, Resources, Role, State, TaskId, uris
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import FileSystem
from howdah.testing.allocator_contract import program

LIMIT_S = 120.0
"""The most seconds that the suite waits for anything."""
SECRET = "hush-" + uuid.uuid4().hex


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Wait until `condition` holds."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {LIMIT_S} s"
        time.sleep(0.1)


@contextlib.contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set these environment variables of this process inside the context."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in values.items():
            environment.setenv(name, value)
        yield


class EngineContract:
    """The tests of an engine: a subclass sets the engine's `name`."""

    name: str
    _ended_jobs: ClassVar[dict[tuple[str, str], str]] = {}
    """The ids of jobs that have ended, by the names of engines and their homes."""

    @pytest.fixture
    def engine(self) -> Engine:
        """Return the engine, as the settings of this process configure it."""
        return engine_for(settings_for({"engine": self.name}))

    def other_user(self, base: Path) -> AbstractContextManager[None] | None:
        """Make this process another user of the same cluster inside the context; return None if a test cannot do that.

        `base` is an existing directory of this test alone.
        """
        return None

    def without_masters(self, base: Path) -> AbstractContextManager[None] | None:
        """Make `submit` fail when it starts the master, or right after; return None if a test cannot arrange that."""
        return None

    def prepare_job(self, line: str, base: Path, secrets: Mapping[str, str] | None = None, **job: Any) -> PreparedJob:
        """Return the plan of a job of one task that runs a shell line; `job` are more of its fields."""
        role = Role(("/bin/sh", "-c", line), resources=Resources(256))
        spec = JobSpec({"worker": role}, name="contract", files=("note.txt",), secrets=secrets or {}, **job)
        return prepare(spec, base, {"engine": self.name}, lambda _: None)

    @pytest.fixture
    def base(self, tmp_path: Path) -> Path:
        """Return a directory with the file that each job brings; its content is new each time."""
        (tmp_path / "note.txt").write_text(uuid.uuid4().hex)
        return tmp_path

    @contextlib.contextmanager
    def running(self, engine: Engine, base: Path) -> Iterator[tuple[str, Callable[[], bool]]]:
        """Yield the id of a job whose program runs, and a function that returns whether it still does."""
        with program() as (line, runs):
            prepared = self.prepare_job(line, base)
            job_id = engine.submit(prepared.plan, prepared.secrets)
            try:
                wait_for(runs, "the start of the program")
                yield job_id, runs
            finally:
                engine.cancel(job_id)
                wait_for(lambda: not runs(), "the end of the program of a cancelled job")

    def ended(self, engine: Engine, job_id: str) -> JobReport:
        """Wait for the end of a job; return its report."""
        wait_for(lambda: engine.describe(job_id)[0].state.ended, f"the end of {job_id}")
        return engine.describe(job_id)[0]

    def ended_job(self, engine: Engine, base: Path) -> str:
        """Return the id of a job that has succeeded and has printed a line to each stream. The tests of one home share
        it: on some engines a job takes ten seconds."""
        key = (self.name, engine.home)
        if not engine.describe(self._ended_jobs.get(key, "nosuch")):
            began = time.time()
            self._ended_jobs[key] = self.submit(engine, "test -s note.txt && echo out; echo err >&2", base)
            report = self.ended(engine, self._ended_jobs[key])
            assert began - 5 <= report.submitted <= report.finished <= time.time() + 5, report
        return self._ended_jobs[key]

    def submit(self, engine: Engine, line: str, base: Path, secrets: Mapping[str, str] | None = None) -> str:
        """Submit a job of one task that runs a shell line; return its id."""
        prepared = self.prepare_job(line, base, secrets)
        return engine.submit(prepared.plan, prepared.secrets)

    def files_at_home(self, engine: Engine, but: Collection[str] = ()) -> set[str]:
        """Return the URIs of all files of the user's jobs, except those of the jobs with the ids `but`."""
        jobs, files = uris.join(engine.home, "jobs"), self.filesystem(engine)
        found = files.walk(jobs) if files.exists(jobs) else ()
        return {entry.uri for entry in found if not any(f"/{job}/" in entry.uri for job in but)}

    def filesystem(self, engine: Engine) -> FileSystem:
        """Return the file system of the engine's home."""
        return filesystem(engine.home, settings_for({})["hadoop_conf_dir"])

    # Plans and submissions

    def test_settings_that_lead_to_one_cluster_say_so(self, engine: Engine) -> None:
        again = engine_for(settings_for({"engine": self.name, "queue": "another"}))
        assert engine.cluster == again.cluster
        assert engine.cluster, "`cluster` must tell this cluster from others"

    def test_a_plan_changes_nothing(self, engine: Engine, base: Path) -> None:
        before = [report.id for report in engine.describe()]
        files = self.files_at_home(engine, before)  # earlier jobs may write and remove theirs meanwhile
        self.prepare_job("true", base)
        assert [report.id for report in engine.describe()] == before, "`plan` submits nothing"
        written = self.files_at_home(engine, before) - files
        assert not written, f"`plan` may ask the cluster questions, and writes nothing: {sorted(written)}"

    def test_a_job_runs_to_its_end(self, engine: Engine, base: Path) -> None:
        (report,) = engine.describe(self.ended_job(engine, base))
        assert (report.state, report.name, report.engine) == (State.SUCCEEDED, "contract", self.name), report
        assert report.user, "a report must name the user"

    def test_a_failed_job_is_a_failed_job(self, engine: Engine, base: Path) -> None:
        report = self.ended(engine, self.submit(engine, "exit 3", base))
        assert report.state is State.FAILED
        assert "worker:0" in report.diagnostics, "a report must say why the job failed"

    def test_an_id_leads_back_to_the_engine(self, engine: Engine, base: Path) -> None:
        job_id = self.ended_job(engine, base)
        info = find(self.name)
        assert info is not None
        assert job_id.startswith(info.id_prefix)
        assert engine_of(job_id).name == self.name

    def test_a_failed_submission_leaves_nothing(self, engine: Engine, base: Path) -> None:
        prepared = self.prepare_job("true", base)
        (base / "note.txt").unlink()
        self.fail_to_submit(engine, prepared.plan, r"note\.txt")

    def test_a_submission_whose_output_has_no_place_leaves_nothing(self, engine: Engine, base: Path) -> None:
        """Some engines find that out after the master was started."""
        if not engine.home_protects_secrets:
            return  # an object store has no directories, and takes any name
        blocked, files = uris.join(engine.home, f"blocked-{uuid.uuid4().hex}"), self.filesystem(engine)
        prepared = self.prepare_job("true", base, outputs=(Output(uris.join(blocked, "out"), "out"),))
        files.mkdirs(engine.home)
        files.write_bytes(blocked, b"no directory")
        try:
            self.fail_to_submit(engine, prepared.plan, "blocked-")
        finally:
            files.delete(blocked)

    def test_a_submission_that_starts_no_master_leaves_nothing(self, engine: Engine, base: Path) -> None:
        prepared, arranged = self.prepare_job("true", base), self.without_masters(base)
        if arranged is not None:
            with arranged:
                self.fail_to_submit(engine, prepared.plan)

    def fail_to_submit(self, engine: Engine, plan: Plan, match: str | None = None) -> None:
        """Assert that a submission fails with one of howdah's errors, and leaves nothing."""
        jobs = {report.id for report in engine.describe()}
        files = self.files_at_home(engine, jobs)  # earlier jobs may write and remove theirs meanwhile
        with pytest.raises(HowdahError, match=match):
            engine.submit(plan, {})
        reports = engine.describe()
        assert jobs <= {report.id for report in reports}, "after an error all earlier jobs are still there"
        assert {report.id for report in reports if not report.state.ended} <= jobs, "after an error no new job lives"
        left = self.files_at_home(engine, jobs) - files
        assert not left, f"after an error nothing is left behind: {sorted(left)}"

    def test_what_nodes_see_they_have(self, engine: Engine, base: Path) -> None:
        assert engine.sees(base / "note.txt") or not engine.one_machine, "the only machine has all of its files"
        if engine.sees(base / "note.txt"):
            report = self.ended(engine, self.submit(engine, f"cat {base / 'note.txt'}", base))
            assert report.state is State.SUCCEEDED, f"nodes do not have what `sees` says that they have: {report}"

    def test_secrets_reach_the_program_alone(self, engine: Engine, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CONTRACT_SECRET", SECRET)
        line = 'test -n "$TOKEN" || exit 11; grep -al "$TOKEN" /proc/[0-9]*/cmdline && exit 12; exit 0'
        job_id = self.submit(engine, line, base, {"TOKEN": "env:CONTRACT_SECRET"})
        report = self.ended(engine, job_id)
        assert report.state is State.SUCCEEDED, report.diagnostics
        files = self.filesystem(engine)

        def with_secret() -> list[str]:
            try:
                return [uri for uri in self.files_at_home(engine) if SECRET.encode() in files.read_bytes(uri)]
            except (HowdahError, OSError) as error:  # the engine removes files meanwhile
                return [str(error)]

        wait_for(lambda: not with_secret(), "the removal of files with secrets after the job's end")

    # Jobs that live, have ended, or were never there

    def test_a_living_job_is_described_reached_and_cancelled(self, engine: Engine, base: Path) -> None:
        with self.running(engine, base) as (job_id, runs):
            (report,) = engine.describe(job_id)
            assert report.state is State.RUNNING
            assert report.master, "the report of a running job must have the address of its master"
            assert job_id in [each.id for each in engine.describe()]
            self._reach(engine, report_of(engine, job_id))
            with contextlib.suppress(HowdahError):  # the logs need not be there yet: clients ask the master for them
                self.text_of(engine, job_id, TaskId("worker", 0), "")
                self.text_of(engine, job_id, None, "")
            assert runs(), "asking for logs ended the program"
            assert engine.describe(job_id)[0].state is State.RUNNING, "asking for logs ended the job"
            engine.cancel(job_id)
            assert self.ended(engine, job_id).state is State.CANCELLED
            wait_for(lambda: not runs(), "the end of the program of a cancelled job")
            engine.cancel(job_id)
            assert self.ended(engine, job_id).state is State.CANCELLED, "cancelling again changes nothing"

    def _reach(self, engine: Engine, report: JobReport) -> None:
        """Assert that the master of a running job can be reached with the key of the job, which only its owner has."""
        key = engine.job_key(report)
        assert key is not None, "`job_key` must give the key of a running job"
        link = connect(engine, report)
        assert link is not None
        with link:
            assert link.events(0, 0.0).events, "the master must know the key that `job_key` gives"
        if not engine.home_protects_secrets:
            files = self.filesystem(engine)
            kept = [files.read_bytes(uri) for uri in self.files_at_home(engine)]
            assert not any(key in data or key.hex().encode() in data for data in kept), "others can read the key"
        reached = engine.reach(report)
        address = urllib.parse.urlsplit(reached.master)
        with socket.create_connection((address.hostname or "", address.port or 80), LIMIT_S):
            pass
        assert engine.has_tunnel or reached.master == report.master, "a tunnel makes `has_tunnel` true"

    def test_a_job_is_not_another_users(self, engine: Engine, base: Path) -> None:
        if (user := self.other_user(base)) is None:
            return
        with self.running(engine, base) as (job_id, runs):
            report = report_of(engine, job_id)
            with user:
                other = engine_for(settings_for({"engine": self.name}))
                assert job_id not in [each.id for each in other.describe()], "`describe` gives the user's own jobs"
                with contextlib.suppress(HowdahError):
                    other.cancel(job_id)
                with contextlib.suppress(HowdahError):
                    assert self.text_of(other, job_id, None, "") == {}, "another user read the logs"
            assert runs(), "another user ended the program"
            assert engine.describe(job_id)[0].state is State.RUNNING, "another user ended the job"
            assert engine.job_key(report) is not None

    def test_an_ended_job_stays_what_it_was(self, engine: Engine, base: Path) -> None:
        job_id = self.ended_job(engine, base)
        report = report_of(engine, job_id)
        wait_for(lambda: engine.job_key(report) is None, "the end of the key of a job that has ended")
        engine.cancel(job_id)
        assert engine.describe(job_id)[0].state is State.SUCCEEDED
        assert engine.pending_reasons(job_id, None, {}) == []

    def test_the_newest_job_is_the_first(self, engine: Engine, base: Path) -> None:
        ids = [self.ended_job(engine, base), self.submit(engine, "true", base)]
        found = [report.id for report in engine.describe() if report.id in ids]
        assert found == ids[::-1]
        self.ended(engine, ids[-1])

    def test_an_unknown_job_is_no_job(self, engine: Engine, base: Path) -> None:
        job_id = self.ended_job(engine, base)
        for unknown in (f"{job_id}9", "nosuch", "../nosuch"):
            assert engine.describe(unknown) == []
            with contextlib.suppress(JobNotFound):
                assert list(engine.logs(unknown, None)) == []
            with contextlib.suppress(JobNotFound):
                engine.cancel(unknown)

    def test_logs_of_an_ended_job(self, engine: Engine, base: Path) -> None:
        job_id = self.ended_job(engine, base)
        wait_for(lambda: engine.logs_complete(job_id), "complete logs")
        worker = TaskId("worker", 0)
        assert self.text_of(engine, job_id, worker, "stdout") == {"worker:0 attempt 1 stdout": b"out\n"}
        both = self.text_of(engine, job_id, worker, "")
        assert both["worker:0 attempt 1 stdout"] == b"out\n"
        assert both["worker:0 attempt 1 stderr"] == b"err\n"
        assert both.items() <= self.text_of(engine, job_id, None, "").items(), "no task stands for all tasks"
        assert self.text_of(engine, job_id, TaskId("worker", 7), "stdout") == {}

    def text_of(self, engine: Engine, job_id: str, task: TaskId | None, stream: str) -> dict[str, bytes]:
        """Return logs by heading."""
        found: dict[str, bytes] = {}
        for heading, piece in engine.logs(job_id, task, stream):
            found[heading] = found.get(heading, b"") + piece
        return found
