"""Who uses a directory of checkpoints: one job at a time, or they overwrite each other's work.

A file in it names the job from its submission to its end. Whether a job whose master was killed still runs is not known
here: who submits the next one asks its engine, and takes the lease from a job that has ended.
"""

from __future__ import annotations

import getpass
import json
import time
from dataclasses import asdict

from howdah.errors import StagingError
from howdah.spec import uris
from howdah.spec.values import dataclass
from howdah.storage.filesystem import FileSystem

NAME = ".howdah-lease"


@dataclass(frozen=True)
class DirectoryLock:
    """`since` in epoch seconds."""

    job: str
    user: str = ""
    since: float = 0.0


def holder(fs: FileSystem, directory: str) -> DirectoryLock | None:
    """Who has it.

    Raises:
        StagingError, EngineUnavailable: it can't be read.
    """
    uri = uris.join(directory, NAME)
    if not fs.exists(uri):
        return None
    try:
        found = json.loads(fs.read_bytes(uri))
        return DirectoryLock(str(found["job"]), str(found.get("user", "")), float(found.get("since", 0.0)))
    except (ValueError, TypeError, KeyError):
        return DirectoryLock("somebody")


def acquire(fs: FileSystem, directory: str, job_id: str) -> None:
    """Take it for a job; the directory is made if it isn't there.

    Raises:
        StagingError: another job has it, or there is no permission.
    """
    fs.mkdirs(directory)
    ours = DirectoryLock(job_id, getpass.getuser(), time.time())
    there = holder(fs, directory)
    if there is None:
        with fs.writing(uris.join(directory, NAME), replace=False) as sink:
            sink.write(json.dumps(asdict(ours)).encode())
        there = holder(fs, directory) or ours
    if there.job != job_id:
        raise StagingError(refusal(directory, there))


def refusal(directory: str, lease: DirectoryLock) -> str:
    """Why a directory can't be had, and what to do."""
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(lease.since)) if lease.since else "an unknown time"
    return (
        f"checkpoint.path: {directory} is used by {lease.job} of {lease.user or 'somebody'} since {since}; two jobs "
        f"would overwrite each other's checkpoints. Cancel that one, choose another path, or if it is gone remove "
        f"{uris.join(directory, NAME)}"
    )


def release(fs: FileSystem, directory: str, job_id: str) -> None:
    """Give it back; another's is left alone."""
    there = holder(fs, directory)
    if there is not None and there.job == job_id:
        fs.delete(uris.join(directory, NAME))
