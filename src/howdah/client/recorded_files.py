"""Reads files of a job's directory for this user, who may have more rights than the user who wrote them.

The rule: files that a job's directory or its event log names are read only below that directory, only if they belong to
one owner, and only up to a limit. Another user's log may name this user's keys, and a link beside it may lead to them.
"""

from __future__ import annotations

import json
import os

from howdah.api.kept_stacks import kept_stacks_uri
from howdah.api.recorded_log import LOG, RecordedLog
from howdah.errors import HowdahError, NotFound
from howdah.hadoop.conf import user_on
from howdah.spec import JobReport, JobSpec, StagedJob, uris
from howdah.spec.codec import decode
from howdah.storage.factory import filesystem
from howdah.storage.files_of_owner import NOBODY, FilesOfOwner
from howdah.storage.segmented_log import find_log

MAX_BYTES = 64 << 20
"""The most bytes that are read of a file; the stacks of thousands of tasks take many."""


def read_submitted_job(report: JobReport) -> bytes:
    """Return the submitted job as JSON. The file counts only if the owner of the job's directory has written it.

    Raises:
        NotFound, StagingError, EngineUnavailable: it can't be read.
    """
    entry = filesystem(report.directory, report.conf_dir).stat(report.directory)
    return _read(report, uris.join(report.directory, "job.json"), entry.owner if entry is not None else "")


def find_submitted_job(report: JobReport) -> JobSpec | None:
    """Return the job as it was submitted; None if it can't be read, or another version of howdah has written it."""
    try:
        return decode(StagedJob, json.loads(read_submitted_job(report))).job
    except (HowdahError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def read_kept_stacks(report: JobReport, uri: str) -> bytes:
    """Return the stacks that the job's master has kept at `uri`, as its event log says. Only the last two parts of
    `uri` are used: the directory below the job's own, and the file.

    Raises:
        NotFound, StagingError, EngineUnavailable: they can't be read there.
    """
    log = find_log(filesystem(report.directory, report.conf_dir), uris.join(report.directory, LOG))
    return _read(report, kept_stacks_uri(report.directory, uri), log.segments[0].owner if log is not None else "")


def shown_owner(log: RecordedLog, conf_dir: str) -> str:
    """Return the user whose files alone are shown of a job with this log, which has been read: the owner of the log; ""
    for a job of this user, of which all files are shown. The history server follows the same rule."""
    own = str(os.getuid()) if uris.split(log.directory)[0] == "file" else user_on(conf_dir)
    return "" if log.owner == own else log.owner or NOBODY


def _read(report: JobReport, uri: str, owner: str) -> bytes:
    files = FilesOfOwner(filesystem(uri, report.conf_dir), owner or NOBODY)
    entry = files.stat(uri)
    if entry is None or entry.is_dir:
        raise NotFound(f"{uri}: no such file")
    return files.head(uri, MAX_BYTES) if entry.size else b""  # a pipe, which has no size, may block
