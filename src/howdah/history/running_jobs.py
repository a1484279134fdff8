"""Asks the engines about jobs whose log has no end: a master that was killed could not write it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable

from howdah.engines import Engine
from howdah.engines.info import name_of_id
from howdah.errors import HowdahError
from howdah.history.index import Index, IndexedJob
from howdah.history.options import ShownCluster, find_cluster
from howdah.spec import JobReport, State
from howdah.wire import auth

SETTLED_S = 10.0
"""The longest time between a job's end, as its engine reports it, and the last lines of its log."""
FORGOTTEN_S = 86400.0
"""Seconds without a new line in its log after which a job that no engine knows counts as over."""
AT_A_TIME = 50
"""The most jobs of one `refresh`."""
FEW = 5
"""The most jobs whose reports are requested one by one; for more, all of the user's jobs are requested in one call. The
local engine, which reads each job's log anyway, is always asked for single jobs."""


class RunningJobs:
    """Updates running jobs by asking the engines of `clusters` about a few at a time."""

    def __init__(self, index: Index, clusters: Iterable[ShownCluster]) -> None:
        self.index, self.clusters = index, tuple(clusters)
        self._next = 0

    def refresh(self, now: float) -> list[str]:
        """Update the jobs without an end; return sentences about engines that do not answer.

        Raises:
            sqlite3.Error: the index can't be written.
        """
        open_ = sorted(self.index.all_open_jobs(), key=lambda found: (found[1].id, found[0]))
        if not open_:
            return []
        turn = list(itertools.islice(itertools.cycle(open_), self._next, self._next + min(AT_A_TIME, len(open_))))
        self._next = (self._next + AT_A_TIME) % len(open_)
        reports, problems = self._fetch_reports([job for _, job in turn])
        for root, job in turn:
            self._update_job(root, job, *reports.get(job.directory, (None, None)), now=now, unsure=bool(problems))
        return problems

    def _fetch_reports(self, jobs: list[IndexedJob]) -> tuple[dict[str, tuple[Engine, JobReport]], list[str]]:
        """Return the report of each job that its engine knows, by the job's directory; and the problems."""
        found: dict[str, tuple[Engine, JobReport]] = {}
        problems = []
        for cluster in self.clusters:
            engine = cluster.engine
            own = [job for job in jobs if find_cluster(self.clusters, job.directory, _engine_name(job)) is cluster]
            reports: dict[str, JobReport] = {}
            try:
                if not engine.one_machine and len(own) > FEW:
                    reports.update((report.id, report) for report in engine.describe())
                for job in own:
                    if job.id not in reports:
                        reports.update((report.id, report) for report in engine.describe(job.id))
            except HowdahError as error:
                problems.append(f"{engine.name}{f', {cluster.name}' if cluster.name else ''}: {error}")
            found.update((job.directory, (engine, reports[job.id])) for job in own if job.id in reports)
        return found, problems

    def _update_job(
        self, root: str, job: IndexedJob, engine: Engine | None, report: JobReport | None, *, now: float, unsure: bool
    ) -> None:
        silent = now - max(job.modified_ms, job.directory_ms) / 1000
        if engine is None or report is None:
            if not unsure and silent > FORGOTTEN_S:
                self._end(root, job, State.FAILED, job.modified_ms / 1000, "its log ends without saying how it ended")
        elif not report.state.ended:
            self._follow(root, job, engine, report)
        elif silent > SETTLED_S:
            self._describe(job, report)
            self._end(root, job, report.state, report.finished or job.modified_ms / 1000, report.diagnostics)

    def _describe(self, job: IndexedJob, report: JobReport) -> None:
        """Fill in the facts that the log would have if the job had started."""
        if not job.summary.id:
            job.summary.name, job.summary.user, job.summary.queue = report.name, report.user, report.queue
            job.summary.engine, job.summary.started = report.engine, report.started or report.submitted

    def _follow(self, root: str, job: IndexedJob, engine: Engine, report: JobReport) -> None:
        columns: dict[str, object] = {"url": page_of(engine, report), "queue": job.summary.queue or report.queue}
        if not job.summary.id:
            columns |= {"name": report.name, "user": report.user, "engine": report.engine}
            columns |= {"state": report.state.value, "diagnostics": report.diagnostics}
            columns["started"] = report.started or report.submitted
        self.index.update_columns(root, job.id, columns)

    def _end(self, root: str, job: IndexedJob, state: State, moment: float, diagnostics: str) -> None:
        job.summary.end(state, moment, diagnostics[:400], "" if state is State.CANCELLED else "master")
        job.ended_by_engine = True
        self.index.put(root, [job])


def _engine_name(job: IndexedJob) -> str:
    return name_of_id(job.id) or job.summary.engine


def page_of(engine: Engine, report: JobReport) -> str:
    """Return a link to a running job's own page, "" if this user may not have one."""
    if report.tracking_url or not report.master:
        return report.tracking_url
    with contextlib.suppress(HowdahError, ValueError):
        if key := engine.job_key(report):
            return f"{report.master}/#token={auth.view_token(key)}"
    return ""
