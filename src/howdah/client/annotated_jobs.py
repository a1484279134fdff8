"""Reads and writes the notes, tags and archive marks of the user's jobs in the home of the jobs, without a server."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from howdah.api import job_annotations
from howdah.api.job_annotations import Annotation
from howdah.client.clusters import engine_of
from howdah.client.engine_registry import settings_for
from howdah.client.job_list import ListedJob
from howdah.client.recorded_events import recorded_events
from howdah.engines import Engine
from howdah.engines.info import name_of_id
from howdah.errors import HowdahError, JobNotFound, StagingError
from howdah.spec import JobReport, State, uris
from howdah.spec.events import JobStarted
from howdah.storage.factory import filesystem


def with_annotations(
    jobs: Iterable[ListedJob], report_unread: Callable[[HowdahError], None] = lambda _: None
) -> Iterator[ListedJob]:
    """Yield the jobs with the annotations that people have added. Each home is listed once, and a file is read only for
    a job that has one; a file that can't be read counts as none. `report_unread` is called once for each home that
    can't be read."""
    listings: dict[str, frozenset[str]] = {}
    for job in jobs:
        report = job.report
        home = job_annotations.home_of(report.directory) if report.directory else ""
        try:
            if home and home not in listings:
                listings[home] = frozenset()
                listings[home] = _annotated_jobs(home, report.conf_dir)
            if report.id in listings.get(home, ()):
                job = replace(job, report=_annotated(report, _read_or_none(home, report)))
        except HowdahError as error:
            listings[home] = frozenset()
            report_unread(error)
        yield job


def is_left_out(report: JobReport) -> bool:
    """Return whether lists leave a job out unless they are asked for it: archived, and not running any more."""
    return report.archived and report.state.ended


def _read_or_none(home: str, report: JobReport) -> Annotation:
    try:
        return job_annotations.read(filesystem(home, report.conf_dir), home, report.id)
    except (StagingError, ValueError, ArithmeticError):
        return job_annotations.NONE


def _annotated_jobs(home: str, conf_dir: str) -> frozenset[str]:
    directory, files = uris.join(home, job_annotations.DIRECTORY), filesystem(home, conf_dir)
    entries = files.children(directory) if files.exists(directory) else []
    return frozenset(job_annotations.job_of_file(entry.uri) for entry in entries)


def _annotated(report: JobReport, found: Annotation) -> JobReport:
    tags = report.tags if found.tags is None else found.tags
    return replace(report, tags=tags, note=found.note, archived=found.archived)


def locate(engine: Engine, job_id: str) -> JobReport:
    """Return the engine's report of a job; if the engine has forgotten the job, return a report that says where the job
    is.

    Raises:
        JobNotFound: there is no such job.
    """
    found = next(iter(engine.describe(job_id)), None)
    if found is not None and found.directory:
        return found
    directory, conf_dir = (
        uris.join(engine.home, "jobs", job_id),
        settings_for({"engine": engine.name})["hadoop_conf_dir"],
    )
    if not filesystem(directory, conf_dir).exists(directory):
        raise JobNotFound(f"no job {job_id} on engine {engine.name}; `howdah list` shows yours")
    user = getpass.getuser()
    return JobReport(job_id, "", State.PENDING, engine.name, user, directory=directory, conf_dir=conf_dir)


def keep_tags(engine: Engine, job_id: str, tags: Sequence[str]) -> None:
    """Write a job's own tags into its annotation if the engine's report lacks them, so that lists show them.

    Raises:
        JobNotFound: there is no such job. InvalidRequest, NotPermitted, EngineUnavailable: as of `change_annotation`.
    """
    report = locate(engine, job_id)
    if not set(tags) <= set(report.tags):
        change_annotation(report, {"tags": list(tags)}, present_tags=len(tags))


def engine_of_forgotten(job_id: str, profile: str = "") -> Engine | None:
    """Return the engine whose jobs have ids of this form; None if this is no complete id."""
    return engine_of(job_id, profile) if name_of_id(job_id) else None


def read_annotation(report: JobReport) -> Annotation:
    """Return the annotation of a job. Its tags are those of the job file, unless somebody has given it others.

    Raises:
        StagingError, EngineUnavailable: it can't be read.
    """
    home = job_annotations.home_of(report.directory)
    found = job_annotations.read(filesystem(home, report.conf_dir), home, report.id)
    return found if found.tags is not None else replace(found, tags=report.tags or _recorded_tags(report))


def _recorded_tags(report: JobReport) -> tuple[str, ...]:
    try:
        return next((event.job.tags for event in recorded_events(report) if isinstance(event, JobStarted)), ())
    except StagingError:  # it has not started
        return ()


def change_annotation(
    report: JobReport,
    changes: Mapping[str, Any],
    present_tags: int = 0,
    edit_tags: job_annotations.EditTags | None = None,
) -> Annotation:
    """Change fields of the job's annotation, and return it. `present_tags` is the number of tags that the job has now.

    Raises:
        InvalidRequest, NotPermitted, EngineUnavailable: as of `job_annotations.change`.
    """
    home, files = job_annotations.home_of(report.directory), filesystem(report.directory, report.conf_dir)
    changed = job_annotations.change(
        files, home, report.id, changes, getpass.getuser(), time.time(), report.conf_dir, present_tags, edit_tags
    )
    return changed if changed.tags is not None else replace(changed, tags=read_annotation(report).tags)
