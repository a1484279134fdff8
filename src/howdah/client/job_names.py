"""Finds the job that a user means: by its id, its name, the beginning or end of its id, or its place in the list."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from howdah.client.clusters import (
    LIMIT_S,
    ClusterAnswer,
    ConfiguredCluster,
    ReportUnusable,
    describe_clusters,
    engine_of,
    find_clusters,
)
from howdah.engines import Engine
from howdah.engines.info import known, name_of_id
from howdah.errors import EngineUnavailable, HowdahError, InvalidRequest, JobNotFound
from howdah.spec import JobReport
from howdah.spec.values import dataclass

LAST = "@last"
MIN_LETTERS = 3
"""The least length of a part of an id: a shorter part could match another job tomorrow."""
MAX_NAMED = 5
"""The most jobs that an error names if several are possible."""
_NUMBERED = re.compile(r"@-([1-9]\d{0,5})")
_TASK = re.compile(r"[A-Za-z][\w.-]*:\d[\d,-]*")


@dataclass(frozen=True)
class NamedJob:
    """The job that a user means."""

    id: str
    """The job's whole id."""
    engine: Engine
    """The engine that has the job, with the settings that lead to its cluster."""
    report: JobReport | None
    """The engine's report of the job; None if the user gave the whole id."""
    profile: str = ""
    """The profile that leads to its cluster."""


def find_job(
    wanted: str,
    profile: str = "",
    report_silent: ReportUnusable = lambda *_: None,
    *,
    must_hear_all: bool = False,
    limit_s: float = LIMIT_S,
) -> NamedJob:
    """Return the job that `wanted` means: its id; its name; a part of the id, at its beginning or end; `@last` for the
    job that was submitted last, `@-2` for the one before it.

    If several jobs have the name, it means the only one that has not ended, else the last one. Each cluster has
    `limit_s` seconds to answer. `report_silent` is called for each cluster that does not answer, and its jobs are
    ignored. With `must_hear_all` a silent cluster is an error, unless the whole id is given: it may have the job that
    is meant.

    Raises:
        JobNotFound: no job is meant. InvalidRequest: several are. SpecError, EngineUnavailable: as of `engine_of`.
    """
    engine_name = name_of_id(wanted)
    if engine_name:
        engine = engine_of(wanted, profile)
        if engine.describe(wanted):
            return NamedJob(wanted, engine, None, profile)
    elif not wanted.strip(" ."):
        raise JobNotFound(f"no job {wanted!r}; `howdah list` shows yours")
    clusters = find_clusters("", profile, report_silent)
    answers = list(describe_clusters(clusters, limit_s=limit_s))
    silent = [answer for answer in answers if answer.error is not None]
    for answer in silent if not must_hear_all else ():
        assert answer.error is not None
        report_silent(answer.engine, answer.profile, answer.error)
    found = choose(wanted, _newest_first(clusters, answers))
    if found is None and engine_name:  # its clusters have answered
        raise _not_found(wanted, engine_name, answers)
    if silent and (must_hear_all or found is None):
        reasons = "; ".join(f"{answer.place}: {answer.error}" for answer in silent)
        raise EngineUnavailable(
            f"{wanted} may be a job of a cluster that does not answer; give the whole id ({reasons})"
        )
    if found is None:
        raise _not_found(wanted, engine_name, answers)
    return found


def _newest_first(clusters: Sequence[ConfiguredCluster], answers: Sequence[ClusterAnswer]) -> list[NamedJob]:
    found: dict[tuple[str, float], NamedJob] = {}  # two profiles may lead to one cluster
    for cluster, answer in zip(clusters, answers, strict=True):
        for report in answer.reports:
            found.setdefault(
                (report.id, report.submitted), NamedJob(report.id, cluster.engine, report, cluster.profile)
            )
    return sorted(found.values(), key=_submission, reverse=True)


def _submission(job: NamedJob) -> tuple[float, list[int]]:
    """Return the time of a job's submission, and the numbers in its id: a cluster whose times are whole seconds also
    numbers its jobs."""
    assert job.report is not None
    return job.report.submitted or job.report.started, [int(digits) for digits in re.findall(r"\d+", job.id)]


def choose(wanted: str, jobs: Sequence[NamedJob]) -> NamedJob | None:
    """Return the job of `jobs`, the newest first, that `wanted` means; None if it means no job.

    Raises:
        InvalidRequest: `wanted` may mean several jobs.
    """
    numbered = _NUMBERED.fullmatch(wanted)
    if wanted == LAST or numbered:
        place = int(numbered[1]) if numbered else 1
        return jobs[place - 1] if place <= len(jobs) else None
    whole = [job for job in jobs if job.id == wanted]
    named = [job for job in jobs if job.report is not None and job.report.name == wanted]
    if whole:
        return _only(wanted, whole)
    if named:
        living = [job for job in named if job.report is not None and not job.report.state.ended]
        return _only(wanted, living) if living else named[0]
    parts = [job for job in jobs if _is_part(wanted, job.id)]
    return _only(wanted, parts) if parts else None


def _is_part(wanted: str, job_id: str) -> bool:
    """Return whether an id begins or ends with `wanted`, with or without its engine's prefix. A part of a number does
    not count: of the jobs 721 and 7212 a cluster may have forgotten the first."""
    prefixes = {info.id_prefix for _, info in known()}
    if len(wanted) < MIN_LETTERS or wanted in prefixes or not any(char.isdigit() for char in wanted):
        return False
    starts = (0, *(len(prefix) for prefix in prefixes if job_id.startswith(prefix)))
    begins = [start + len(wanted) for start in starts if job_id.startswith(wanted, start)]
    ends = [len(job_id) - len(wanted)] if job_id.endswith(wanted) else []
    return any(not _cuts_number(job_id, place) for place in (*begins, *ends))


def _cuts_number(text: str, place: int) -> bool:
    return 0 < place < len(text) and text[place - 1].isdigit() and text[place].isdigit()


def _only(wanted: str, jobs: Sequence[NamedJob]) -> NamedJob:
    if len(jobs) == 1:
        return jobs[0]
    names = ", ".join(_describe(job) for job in jobs[:MAX_NAMED])
    more = ", …" if len(jobs) > MAX_NAMED else ""
    raise InvalidRequest(f"{wanted!r} may be {len(jobs)} jobs: {names}{more}; give more of the id")


def _describe(job: NamedJob) -> str:
    report = job.report
    assert report is not None
    moment = time.strftime("%m-%d %H:%M:%S", time.localtime(report.submitted or report.started))
    return f"{job.id} ({report.name}, {report.state.value}, {moment})"


def _not_found(wanted: str, engine_name: str, answers: Sequence[ClusterAnswer]) -> HowdahError:
    if wanted.startswith("@"):
        count = sum(len(answer.reports) for answer in answers)
        return JobNotFound(f"no job {wanted}: you have {count}; `howdah list` shows them")
    if engine_name:
        return JobNotFound(f"no job {wanted} on engine {engine_name}; `howdah list` shows yours")
    if _TASK.fullmatch(wanted):
        return JobNotFound(f"no job has the name {wanted!r}: write the job before the task, such as {LAST}")
    return JobNotFound(f"no job has the name {wanted!r}, nor an id that begins or ends so; `howdah list` shows yours")
