"""Finds the job that a user means: by its id, its name, the beginning or end of its id, or its place in the list."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from howdah.client.clusters import (
    ClusterAnswer,
    ConfiguredCluster,
    ReportUnusable,
    describe_clusters,
    engine_of,
    find_clusters,
)
from howdah.engines import Engine
from howdah.engines.info import name_of_id
from howdah.errors import EngineUnavailable, HowdahError, InvalidRequest, JobNotFound
from howdah.spec import JobReport
from howdah.spec.values import dataclass

LAST = "@last"
MIN_LETTERS = 3
"""A shorter part of an id would be of another job tomorrow."""
MAX_NAMED = 5
"""How many of several possible jobs an error names."""
_NUMBERED = re.compile(r"@-([1-9]\d{0,5})")


@dataclass(frozen=True)
class NamedJob:
    """The job that a user means."""

    id: str
    """The job's whole id."""
    engine: Engine
    """The engine that has the job, with the settings that lead to its cluster."""
    report: JobReport | None
    """What its engine says of it; None if the user gave the whole id."""


def find_job(said: str, profile: str = "", report_silent: ReportUnusable = lambda *_: None) -> NamedJob:
    """Return the job that `said` means: its id; its name; a part of the id, at its beginning or end; `@last` for the
    job that was submitted last, `@-2` for the one before it.

    Of several jobs of one name it is the only one that has not ended, else the last. `report_silent` is called for each
    cluster that does not answer: its jobs do not count.

    Raises:
        JobNotFound: no job is meant. InvalidRequest: several are. SpecError, EngineUnavailable: as of `engine_of`.
    """
    name = name_of_id(said)
    if name:
        engine = engine_of(said, profile)
        if engine.describe(said):
            return NamedJob(said, engine, None)
    elif not said.strip(" ."):
        raise JobNotFound(f"no job {said!r}; `howdah list` shows yours")
    clusters = find_clusters(name, profile, report_silent)
    answers = list(describe_clusters(clusters))
    for answer in answers:
        if answer.error is not None:
            report_silent(answer.engine, answer.profile, answer.error)
    found = choose(said, _newest_first(clusters, answers))
    if found is None:
        raise _not_found(said, name, answers)
    return found


def _newest_first(clusters: Sequence[ConfiguredCluster], answers: Sequence[ClusterAnswer]) -> list[NamedJob]:
    known: dict[tuple[str, float], NamedJob] = {}  # two profiles may lead to one cluster
    for cluster, answer in zip(clusters, answers, strict=True):
        for report in answer.reports:
            known.setdefault((report.id, report.submitted), NamedJob(report.id, cluster.engine, report))
    return sorted(known.values(), key=_submission, reverse=True)


def _submission(job: NamedJob) -> tuple[float, str]:
    assert job.report is not None
    return job.report.submitted or job.report.started, job.id


def choose(said: str, jobs: Sequence[NamedJob]) -> NamedJob | None:
    """Return the job of `jobs`, the newest first, that `said` means; None if it is none."""
    numbered = _NUMBERED.fullmatch(said)
    if said == LAST or numbered:
        place = int(numbered[1]) if numbered else 1
        return jobs[place - 1] if place <= len(jobs) else None
    whole = [job for job in jobs if job.id == said]
    named = [job for job in jobs if job.report is not None and job.report.name == said]
    parts = [job for job in jobs if len(said) >= MIN_LETTERS and _is_part(said, job.id)]
    if whole:
        return _only(said, whole)
    if named:
        living = [job for job in named if job.report is not None and not job.report.state.ended]
        return _only(said, living) if living else named[0]
    return _only(said, parts) if parts else None


def _is_part(said: str, job_id: str) -> bool:
    """Return whether an id begins or ends so, or begins so behind its engine's prefix."""
    return job_id.startswith(said) or job_id.endswith(said) or job_id.partition("-")[2].startswith(said)


def _only(said: str, jobs: Sequence[NamedJob]) -> NamedJob:
    if len(jobs) == 1:
        return jobs[0]
    named = ", ".join(_describe(job) for job in jobs[:MAX_NAMED])
    more = ", …" if len(jobs) > MAX_NAMED else ""
    raise InvalidRequest(f"{said!r} may be {len(jobs)} jobs: {named}{more}; give more of the id")


def _describe(job: NamedJob) -> str:
    report = job.report
    assert report is not None
    moment = time.strftime("%m-%d %H:%M:%S", time.localtime(report.submitted or report.started))
    return f"{job.id} ({report.name}, {report.state.value}, {moment})"


def _not_found(said: str, engine_name: str, answers: Sequence[ClusterAnswer]) -> HowdahError:
    silent = "; ".join(f"{answer.place}: {answer.error}" for answer in answers if answer.error is not None)
    if silent:
        return EngineUnavailable(f"no job {said!r} on the clusters that answer, and not all do: {silent}")
    if said.startswith("@"):
        count = sum(len(answer.reports) for answer in answers)
        return JobNotFound(f"no job {said}: you have {count}; `howdah list` shows them")
    if engine_name:
        return JobNotFound(f"no job {said} on engine {engine_name}; `howdah list` shows yours")
    return JobNotFound(f"no job has the name {said!r}, nor an id that begins or ends so; `howdah list` shows yours")
