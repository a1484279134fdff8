"""The jobs of the engines that are configured on this machine, for `howdah.Client`."""

from __future__ import annotations

import asyncio
import codecs
import getpass
import itertools
import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from howdah.api.curve_schemas import Stacks
from howdah.api.http_server import Response
from howdah.api.recorded_job import EndedJobSource
from howdah.api.recorded_log import RecordedLog
from howdah.client.api_client import ApiClient, decode_answer, encode_query
from howdah.client.clusters import describe_clusters, engine_of, find_clusters
from howdah.client.engine_registry import settings_for
from howdah.client.follow import Follower, settled_report
from howdah.client.job_end import cancel_job, report_of
from howdah.client.job_filter import OF_REPORTS, read_filters
from howdah.client.job_list import history_link, jobs_of_answers
from howdah.client.jobs_api import BegunSnapshot, JobsApi
from howdah.client.master_client import MasterClient, connect, job_key, translate_refusals
from howdah.client.recorded_files import shown_owner
from howdah.client.submission import submit
from howdah.client.submit import prepare
from howdah.client.wait_for_tensorboard import wait_until_open
from howdah.client.waiting_jobs import with_waits
from howdah.config.job_file import check_job, load
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, HowdahError, JobEnded, NotFound
from howdah.eventfiles import locations
from howdah.logs.query import tasks_of
from howdah.logs.stream_index import BOTH
from howdah.spec import JobReport, JobSpec, Outcome, TaskId
from howdah.spec.view import JobView
from howdah.storage.factory import filesystem
from howdah.storage.progress import no_notice
from howdah.wire import auth

_LOG = logging.getLogger("howdah")
RETRY_S = 60.0
"""Seconds for which a request is repeated while the engine does not answer."""


class IncompleteJobList(UserWarning):
    """A cluster did not answer, or a profile leads nowhere: jobs may be missing in the list of `Client.jobs`."""


class LocalJobs(JobsApi):
    """The jobs of the engines that are configured here, reached with the job's key as the command line does; those of
    `found` alone, if it is given."""

    def __init__(self, engine: str, profile: str, found: Engine | None = None) -> None:
        self.engine, self.profile, self._found = engine, profile, found

    def submit(
        self, job: JobSpec | Path | str, base_directory: Path, sets: Mapping[str, object], overwrite: bool
    ) -> str:
        flags = {"engine": self.engine, "profile": self.profile}
        if isinstance(job, JobSpec):
            check_job(job)
            prepared = prepare(job, base_directory, flags, _LOG.warning, overwrite=overwrite)
        else:
            loaded = load(Path(job), sets)
            spec, base_directory, file, text = loaded.spec, loaded.base_directory, Path(job), loaded.text
            origins = loaded.sources
            prepared = prepare(
                spec, base_directory, flags, _LOG.warning, overwrite=overwrite, origins=origins, file=file, text=text
            )
        return submit(prepared, _LOG.warning)

    def jobs(self, filters: Mapping[str, Any]) -> list[JobReport]:
        wanted, max_jobs = read_filters(filters, OF_REPORTS)
        clusters = find_clusters(self.engine, self.profile, _warn_of_unusable)
        answers = list(with_waits(clusters, describe_clusters(clusters)))
        errors = [answer for answer in answers if answer.error is not None]
        if self.engine and len(errors) == len(answers) and errors[0].error is not None:
            raise errors[0].error
        for answer in errors:  # the others are listed
            warnings.warn(f"jobs are missing, {answer.place}: {answer.error}", IncompleteJobList, stacklevel=3)
        found = (job.report for job in jobs_of_answers(answers) if wanted.fits(job.report))
        return sorted(found, key=lambda report: report.submitted, reverse=True)[:max_jobs]

    def job(self, job_id: str) -> JobView:
        return next(self._follower(job_id).updates(wait_s=0.0)).view

    def views(self, job_id: str) -> Iterator[JobView]:
        for update in self._follower(job_id).updates():
            yield update.view

    def logs(self, job_id: str, task: TaskId, stream: str) -> Iterator[str]:
        engine = self._engine(job_id)
        report = settled_report(engine, job_id)
        if report.state.ended:
            return decode_pieces(self._read_ended_log(engine, job_id, task, "" if stream == BOTH else stream))
        return decode_pieces(_read_running_log(engine, report, task, stream))

    def _read_ended_log(self, engine: Engine, job_id: str, task: TaskId, stream: str) -> Iterator[bytes]:
        is_empty = True
        for _, piece in engine.logs(job_id, task, stream):
            is_empty = False
            yield piece
        if is_empty and (view := self.job(job_id)).tasks:  # a job that never began has no known tasks
            tasks_of(view, str(task))

    def call(self, job_id: str, path: str, query: Mapping[str, Any]) -> Mapping[str, Any]:
        engine = self._engine(job_id)
        report = report_of(engine, job_id)
        if not report.state.ended and report.master:
            try:
                remote = ApiClient(report.master, auth.view_token(job_key(engine, report)))
                found: Mapping[str, Any] = remote.get(f"jobs/{job_id}/{path}".rstrip("/"), **query)
                return found
            except HowdahError:
                report = settled_report(engine, job_id)
                if not report.state.ended:
                    raise
        with ThreadPoolExecutor(1) as thread:  # the caller's thread may run an event loop, as in a notebook
            response = thread.submit(asyncio.run, _answer_ended(engine, report, path, encode_query(query))).result()
        answer: Mapping[str, Any] = decode_answer(path, response.status, response.body)
        return answer

    def save(self, job_id: str, output: int) -> list[BegunSnapshot]:
        with self._master(job_id) as master, translate_refusals(job_id):
            return list(itertools.starmap(BegunSnapshot, master.save(getpass.getuser(), output)))

    def stacks(self, job_id: str, task: str, native: bool) -> Stacks:
        with self._master(job_id) as master, translate_refusals(job_id):
            return master.stacks(getpass.getuser(), task, native)

    def tensorboard(self, job_id: str, idle_s: float) -> str:
        from howdah.client.tensorboard_install import install

        engine = self._engine(job_id)
        with self._master(job_id) as master, translate_refusals(job_id):
            if not locations.event_file_locations(self.job(job_id)):
                raise NotFound("the location of its event files is unknown: set `board` in the job file")
            install(engine, settings_for({"engine": engine.name, "profile": self.profile}), no_notice)
            return wait_until_open(job_id, lambda: master.tensorboard(getpass.getuser(), idle_s), master.changes())

    def end_tensorboard(self, job_id: str) -> None:
        with self._master(job_id) as master, translate_refusals(job_id):
            master.end_tensorboard(getpass.getuser())

    def history(self) -> ApiClient:
        return ApiClient(history_link(self.profile))

    def cancel(self, job_id: str) -> None:
        engine = self._engine(job_id)
        report = report_of(engine, job_id)
        if not report.state.ended:
            cancel_job(engine, report)

    def _master(self, job_id: str) -> MasterClient:
        engine = self._engine(job_id)
        report = report_of(engine, job_id)
        if report.state.ended:
            raise JobEnded(f"{job_id} has ended: nothing of it runs any more")
        master = connect(engine, report)
        if master is None:
            raise EngineUnavailable(f"{job_id} has no running master yet")
        return master

    def _engine(self, job_id: str) -> Engine:
        return self._found or engine_of(job_id, self.profile)

    def _follower(self, job_id: str) -> Follower:
        return Follower(self._engine(job_id), job_id, retry_s=RETRY_S)


def _warn_of_unusable(engine: str, profile: str, error: HowdahError) -> None:
    where = ", ".join(filter(None, (engine, profile and f"profile {profile}")))
    warnings.warn(f"jobs are missing, {where}: {error}", IncompleteJobList, stacklevel=5)


async def _answer_ended(engine: Engine, report: JobReport, path: str, query: str) -> Response:
    """Answer a call about an ended job with the same handlers as a history server."""
    log = RecordedLog(report.id, report.directory, filesystem(report.directory, report.conf_dir))
    log.apply(log.read())
    log.add_outcome(Outcome(report.state, report.diagnostics), report.finished)
    async with EndedJobSource(log, engine, report.conf_dir, shown_owner(log, report.conf_dir)) as source:
        return await source.get(path, query)


def _read_running_log(engine: Engine, report: JobReport, task: TaskId, stream: str) -> Iterator[bytes]:
    master = connect(engine, report)
    if master is None:
        return
    offset = 0
    with master:
        while True:
            with translate_refusals(report.id):
                chunk = master.log(task, stream, offset)
            if not chunk.text:
                return
            offset = chunk.offset + len(chunk.text)
            yield chunk.text.encode("latin-1")


def decode_pieces(pieces: Iterable[bytes]) -> Iterator[str]:
    """Decode UTF-8 that comes in pieces; a character may be split between two of them."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in itertools.chain(pieces, (b"",)):
        if text := decoder.decode(piece, final=not piece):
            yield text
