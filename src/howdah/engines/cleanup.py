"""Cleans up after a master that was killed: removes the job's staged files, and records how the job ended.

A master that completes its job removes the job's key last. A key that still exists after the job has ended shows that
its master did not complete it. The next submission cleans up after a few such jobs.
"""

from __future__ import annotations

import contextlib
import json
import re
import time

from howdah.errors import StagingError
from howdah.outputs.commit import abandon
from howdah.spec import JobReport, Outcome, StagedJob, uris
from howdah.spec.codec import decode
from howdah.spec.event_lines import read_lines, to_line
from howdah.spec.events import JobFinished
from howdah.storage.filesystem import FileSystem
from howdah.storage.segmented_log import append_to_log, find_log

MAX_JOBS = 20
"""The number of newest jobs that are examined."""


def list_unfinished_jobs(files: FileSystem, home: str) -> list[str]:
    """Return the ids of this user's newest jobs whose key is still there: they run, or their master was killed."""
    jobs = uris.join(home, "jobs")
    if not files.exists(jobs):
        return []
    names = sorted((uris.name(entry.uri) for entry in files.children(jobs)), key=_natural_order, reverse=True)
    return [job_id for job_id in names[:MAX_JOBS] if _has_key(files, uris.join(jobs, job_id))]


def _has_key(files: FileSystem, directory: str) -> bool:
    with contextlib.suppress(StagingError):  # another user's job, whose directory only that user may enter
        return files.exists(uris.join(directory, "key"))
    return False


def _natural_order(name: str) -> list[tuple[int, str]]:
    """Return a key by which job 1000 comes after job 999."""
    return [(int(digits or 0), text) for text, digits in re.findall(r"([^0-9]*)([0-9]*)", name)]


def finish_ended_job(files: FileSystem, report: JobReport, conf_dir: str) -> None:
    """Complete an ended job in place of its master.

    Raises:
        StagingError, EngineUnavailable: the file system refuses, or does not answer.
    """
    staged = _read_staged_job(files, uris.join(report.directory, "job.json"))
    abandon(staged.job, report.id, conf_dir)
    _write_end(files, report)
    for secret in ("credentials", "key"):
        files.delete(uris.join(report.directory, secret))


def _write_end(files: FileSystem, report: JobReport) -> None:
    """Record how the job ended, unless its master has done so: the engine may have reported the end before the key was
    removed."""
    log = uris.join(report.directory, "events.jsonl")
    found = find_log(files, log)
    text = found.read() if found is not None else b""
    if not any(isinstance(event, JobFinished) for event in read_lines(text.decode("utf-8", "replace").splitlines())):
        end = JobFinished(report.finished or time.time(), Outcome(report.state, report.diagnostics))
        cut_short = text and not text.endswith(b"\n")
        append_to_log(files, log, (b"\n" if cut_short else b"") + to_line(end).encode())


def _read_staged_job(files: FileSystem, uri: str) -> StagedJob:
    text = files.read_bytes(uri)
    try:
        return decode(StagedJob, json.loads(text))
    except (ValueError, TypeError, KeyError) as error:
        raise StagingError(f"{uri}: is not a job as this howdah writes them: {error}") from error
