"""Asks the engines about jobs whose log has no end: a master that was killed could not write it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable

from howdah.engines import Engine
from howdah.errors import HowdahError
from howdah.history.index import Index, IndexedJob
from howdah.spec import JobReport, State
from howdah.storage.factory import filesystem
from howdah.wire import auth

SETTLED_S = 10.0
"""The longest time between a job's end, as its engine reports it, and the last lines of its log."""
FORGOTTEN_S = 86400.0
"""Seconds without a new line in its log after which a job that no engine knows counts as over."""
AT_A_TIME = 50
"""Jobs of one `refresh`."""
FEW = 5
"""Reports on more jobs than this are requested in one call for all of the user's jobs; the local engine, which reads
each job's log anyway, is always asked for single jobs."""


class RunningJobs:
    """Updates running jobs by asking `engines` about a few at a time."""

    def __init__(self, index: Index, engines: Iterable[Engine]) -> None:
        self.index, self.engines = index, tuple(engines)
        self._next = 0

    def refresh(self, now: float) -> list[str]:
        """Update the jobs without an end; return sentences about engines that do not answer.

        Raises:
            sqlite3.Error: the index can't be written.
        """
        open_ = sorted(self.index.open_jobs(), key=lambda job: job.id)
        if not open_:
            return []
        turn = list(itertools.islice(itertools.cycle(open_), self._next, self._next + min(AT_A_TIME, len(open_))))
        self._next = (self._next + AT_A_TIME) % len(open_)
        reports, problems = self._fetch_reports(turn)
        for job in turn:
            self._update_job(job, reports.get(job.id), now, bool(problems))
        return problems

    def _fetch_reports(self, jobs: list[IndexedJob]) -> tuple[dict[str, JobReport], list[str]]:
        found: dict[str, JobReport] = {}
        problems = []
        for engine in self.engines:
            ids = [job.id for job in jobs if job.id.startswith("application_") == (engine.name == "yarn")]
            try:
                if engine.name != "local" and len(ids) > FEW:
                    found.update((report.id, report) for report in engine.describe())
                for id_ in ids:
                    if id_ not in found:
                        found.update((report.id, report) for report in engine.describe(id_))
            except HowdahError as error:
                problems.append(f"{engine.name}: {error}")
        return found, problems

    def _update_job(self, job: IndexedJob, report: JobReport | None, now: float, unsure: bool) -> None:
        silent = now - max(job.modified_ms, job.directory_ms) / 1000
        if report is None:
            if not unsure and silent > FORGOTTEN_S:
                self._end(job, State.FAILED, job.modified_ms / 1000, "its log ends without saying how it ended")
        elif not report.state.ended:
            self._follow(job, report)
        elif silent > SETTLED_S:
            self._describe(job, report)
            self._end(job, report.state, report.finished or job.modified_ms / 1000, report.diagnostics)

    def _describe(self, job: IndexedJob, report: JobReport) -> None:
        """Fill in what the log would have said if the job had started."""
        if not job.summary.id:
            job.summary.name, job.summary.user, job.summary.queue = report.name, report.user, report.queue
            job.summary.engine, job.summary.started = report.engine, report.started or report.submitted

    def _follow(self, job: IndexedJob, report: JobReport) -> None:
        columns: dict[str, object] = {"url": page_of(report), "queue": job.summary.queue or report.queue}
        if not job.summary.id:
            columns |= {"name": report.name, "user": report.user, "engine": report.engine}
            columns |= {"state": report.state.value, "diagnostics": report.diagnostics}
            columns["started"] = report.started or report.submitted
        self.index.update_columns(job.id, columns)

    def _end(self, job: IndexedJob, state: State, moment: float, diagnostics: str) -> None:
        job.summary.end(state, moment, diagnostics[:400], "" if state is State.CANCELLED else "master")
        job.ended_by_engine = True
        self.index.put(self.index.root_of(job.id), [job])


def page_of(report: JobReport) -> str:
    """Return a link to a running job's own page, "" where this user may not have one."""
    if report.tracking_url or not report.master:
        return report.tracking_url
    uri = f"{report.directory}/key"
    with contextlib.suppress(HowdahError, ValueError):
        key = bytes.fromhex(filesystem(uri, report.conf_dir).read_bytes(uri).decode().strip())
        return f"{report.master}/#token={auth.view_token(key)}"
    return ""
