"""The base of engines for batch systems: each job is one job of that system, which runs the master, and all nodes see
the directory of jobs.

A subclass submits, cancels and queries the batch system's jobs, by their numbers. Everything else is here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import getpass
import math
import os
import secrets as random
import shutil
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path

from howdah.engines import Engine, Progress, no_progress
from howdah.engines.job_directory import JobDirectory
from howdah.engines.shared_home import SUBMITTING, SharedHome
from howdah.errors import HowdahError, JobNotFound, StagingError
from howdah.localfiles.own_directories import shared_directory
from howdah.outputs.commit import abandon, reserve
from howdah.spec import JobReport, Plan, StagedJob, State, TaskId, uris
from howdah.spec.message import message
from howdah.spec.values import dataclass
from howdah.spec.view import JobView
from howdah.storage.content_cache import max_unused_s

CANCELLED_BY = "cancelled-by"
"""The file of a job's directory that names the user who has cancelled the job."""
EXTRA_JOBS = "extra-jobs"
"""The file of a job's directory with the numbers of the extra jobs that its master has submitted."""
MASTER_LOG = "master.log"
"""The file of a job's directory for the master's output. It exists once a node has begun the job."""
FORGOTTEN = message("the cluster has forgotten the job, and its event log does not say how it ended")
UNSEEN = (
    "{reason}; its node has written nothing to the job's directory: do all nodes see {directory} under this path?"
    " (staging_dir)"
)
CANCEL_LIMIT_S, CANCEL_POLL_S = 60.0, 0.2


@dataclass(frozen=True)
class BatchJob:
    """The batch system's description of one of its jobs."""

    state: State
    """The state of howdah that corresponds to the batch system's state."""
    reason: str
    """Why it waits, or has ended; "" if there is no reason to report."""
    queue: str
    """The queue in which the job waits or runs."""
    has_begun: bool = True
    """Whether a node may have begun the job, if it has ended."""


class BatchJobEngine(Engine):
    """Runs jobs below the setting `staging_dir`, else below .howdah/<name> in the user's home directory."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings, self._conf_dir = settings, settings.get("hadoop_conf_dir", "")
        default = shared_directory(os.environ, self.name)
        directory = Path(uris.path(settings.get("staging_dir") or str(default))).absolute()
        self._home = SharedHome(directory, self._conf_dir)

    @property
    def home(self) -> str:
        """Return the URI of the user's directory of jobs, which all nodes share."""
        return self._home.uri

    @abstractmethod
    def find_cluster_name(self) -> str:
        """Return a text for people that distinguishes this cluster from all others that may have the same home. Jobs
        keep the text from their submission on, so it must not change."""

    @abstractmethod
    def start_master(self, plan: Plan, placed: StagedJob, mark: str) -> str:
        """Submit the job that runs the master, which waits until its directory `jobs/<id>` has the file `mark`; return
        its number. `placed` is the job with the places of its files."""

    @abstractmethod
    def query_jobs(self, number: str = "") -> Mapping[str, BatchJob]:
        """Return the batch system's descriptions of the job with a number, or of all jobs of this user, by number."""

    @abstractmethod
    def query_ended_job(self, number: str) -> BatchJob | None:
        """Return the end of a job that `query_jobs` no longer knows; None if nobody knows it."""

    @abstractmethod
    def cancel_batch_jobs(self, *numbers: str) -> None:
        """Cancel jobs in the batch system; those that have ended are no error."""

    def kill_wait_s(self) -> float:
        """Return the seconds that the batch system gives the programs of a cancelled job to stop, as far as it
        tells."""
        return 0.0

    @abstractmethod
    def remove_output(self, number: str) -> None:
        """Remove the files that the batch system has written for a job outside the job's directory."""

    def job_id(self, number: str) -> str:
        """Return the id of the job with this number."""
        return f"{self.name}-{number}"

    def number(self, job_id: str) -> str:
        """Return the number of a job; "" if the id is not one of this engine."""
        text = job_id.removeprefix(self.job_id(""))
        return text if text != job_id and text.isascii() and text.isdecimal() else ""

    def batch_jobs_of(self, job_id: str) -> list[str]:
        """Return the number of a job, and the numbers of all extra jobs that its master has submitted; [] if the id is
        not one of this engine."""
        number = self.number(job_id)
        return [number, *read_words(self.directory(job_id) / EXTRA_JOBS)] if number else []

    def directory(self, job_id: str) -> Path:
        """Return the directory that holds a job's files; it need not exist."""
        return self._home.jobs / job_id

    def submit(self, plan: Plan, secrets: Mapping[str, str], progress: Progress = no_progress) -> str:
        directory, job_id = self._home.jobs / f"{SUBMITTING}{random.token_hex(6)}", ""
        try:
            placed = self._home.place(plan.job, progress)
            directory.mkdir(parents=True, mode=0o700)
            (directory / directory.name).touch()
            self._home.write_job(directory, placed, secrets, self._cluster_name)
            job_id = self.job_id(self.start_master(plan, placed, directory.name))
            if (other := self.directory(job_id)).exists():
                raise StagingError(
                    f"{other} is of another job {job_id}: this cluster counts its jobs anew, or another one has the "
                    "same home; choose another home with the setting staging_dir"
                )
            reserve(plan.job.job, job_id, self._conf_dir, plan.job.sources)
            directory = directory.rename(other)
        except BaseException as error:
            with contextlib.suppress(HowdahError):
                if job_id:
                    self.cancel_batch_jobs(self.number(job_id))
                    self._wait_ended(self.number(job_id))
            shutil.rmtree(directory, ignore_errors=True)
            with contextlib.suppress(HowdahError):
                if job_id:
                    abandon(plan.job.job, job_id, self._conf_dir)
            if isinstance(error, OSError):
                raise StagingError(f"{error.filename or directory}: {error.strerror or error}") from error
            raise
        self._home.clean_up(self._find_ended, max_unused_s(self._settings), self._oldest_unfinished)
        return job_id

    def _oldest_unfinished(self) -> float:
        """Return when the oldest job that has not ended was submitted, in epoch seconds; `inf` for none."""
        submitted = [math.inf]
        for number, job in self.query_jobs().items():
            with contextlib.suppress(FileNotFoundError):
                if not job.state.ended:
                    submitted.append((self.directory(self.job_id(number)) / "job.json").stat().st_mtime)
        return min(submitted)

    @functools.cached_property
    def _cluster_name(self) -> str:
        return self.find_cluster_name()

    def _cluster_of(self, job_id: str) -> str:
        """Return the name of the cluster that has a job; "" for a job of an earlier version, which does not record
        it."""
        return JobDirectory(self.directory(job_id)).cluster

    def _is_here(self, job_id: str) -> bool:
        recorded = self._cluster_of(job_id)
        return not recorded or recorded == self._cluster_name

    def _is_own_and_here(self, job_id: str) -> bool:
        """Return whether a job is on this cluster, and its directory belongs to this user. Another user may have the
        same home."""
        with contextlib.suppress(PermissionError):
            return self._is_here(job_id)
        return False

    def _find_ended(self, job_id: str) -> JobReport | None:
        """Return the report of a job whose end is certain. A job of an earlier version may be another cluster's, so it
        has ended only if this cluster says so."""
        number = self.number(job_id)
        if not number or not self._is_here(job_id):
            return None
        job = self.query_jobs(number).get(number)
        if not self._cluster_of(job_id) and job is None and self.query_ended_job(number) is None:
            return None
        report = self._report(job_id, job)
        return report if report.state.ended else None

    def describe(self, job_id: str | None = None) -> list[JobReport]:
        if job_id is None:
            found = [path.name for path in self._home.jobs.glob(self.job_id("*")) if self.number(path.name)]
        else:
            found = [job_id] if self.number(job_id) and self.directory(job_id).is_dir() else []
        there, found = found, list(filter(self._is_here if job_id else self._is_own_and_here, found))
        if job_id is not None and there and not found:
            raise JobNotFound(f"{job_id} is a job of {self._cluster_of(job_id)}, not of {self._cluster_name}")
        known = self.query_jobs(self.number(job_id or "")) if found else {}
        reports = [self._report(each, known.get(self.number(each))) for each in found]
        return sorted(reports, key=lambda report: (report.submitted, report.id), reverse=True)

    def _report(self, job_id: str, job: BatchJob | None) -> JobReport:
        def state(view: JobView) -> tuple[State, str]:
            if view.state.ended:
                return view.state, view.outcome.diagnostics if view.outcome is not None else ""
            by = " ".join(read_words(self.directory(job_id) / CANCELLED_BY))
            if by and (job is None or job.state.ended):
                return State.CANCELLED, message("cancelled by {user}", user=by)
            known = job or self.query_ended_job(self.number(job_id))
            if known is None:
                return State.FAILED, FORGOTTEN
            if known.state is State.FAILED and known.has_begun and not (self.directory(job_id) / MASTER_LOG).exists():
                where = self._home.directory
                return State.FAILED, message(UNSEEN, reason=known.reason, directory=where)
            return known.state, known.reason

        found = self._home.report(job_id, self.name, state)
        return dataclasses.replace(found, queue=job.queue) if job is not None else found

    def cancel(self, job_id: str) -> None:
        for report in self.describe(job_id):
            if report.state.ended:
                continue
            directory, number = self.directory(job_id), self.number(job_id)
            (directory / CANCELLED_BY).write_text(getpass.getuser())
            try:
                self.cancel_batch_jobs(*self.batch_jobs_of(job_id))
            except HowdahError:
                (directory / CANCELLED_BY).unlink(missing_ok=True)
                raise
            if self._wait_ended(number):  # the master may have had no time to write the end
                self._home.finish(self.describe(job_id)[0])

    def _wait_ended(self, number: str) -> bool:
        """Wait for the end of a cancelled job; return whether it has ended."""
        deadline = time.monotonic() + CANCEL_LIMIT_S + self.kill_wait_s()
        while (job := self.query_jobs(number).get(number)) and not job.state.ended and time.monotonic() < deadline:
            time.sleep(CANCEL_POLL_S)
        if has_ended := job is None or job.state.ended:
            self.remove_output(number)
        return has_ended

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        if not self.number(job_id) or not self.directory(job_id).is_dir():
            raise JobNotFound(f"no job {job_id} in {self._home.jobs}")
        yield from JobDirectory(self.directory(job_id)).read_logs(task, stream)


def read_words(path: Path) -> list[str]:
    """Return the words in a file; [] if there is none."""
    try:
        return path.read_text(encoding="ascii").split()
    except OSError:
        return []
