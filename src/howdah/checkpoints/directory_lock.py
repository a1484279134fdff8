"""Locks a directory of checkpoints for one job, because two jobs would overwrite each other's checkpoints.

A file in the directory names the job from its submission to its end. This module cannot know whether a job whose master
was killed still runs: `howdah.client.checkpoint_lock` asks the job's engine before the next job is submitted.
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
    """The lock of one directory."""

    job: str
    """Id of the job that holds the lock."""
    user: str = ""
    """The user who submitted the job."""
    since: float = 0.0
    """When the job was submitted, in epoch seconds; 0 when the file does not tell."""


def read_lock(fs: FileSystem, directory: str) -> DirectoryLock | None:
    """Return the lock of a directory; None when no job holds it.

    Raises:
        StagingError, EngineUnavailable: the file can't be read.
    """
    uri = uris.join(directory, NAME)
    if not fs.exists(uri):
        return None
    try:
        found = json.loads(fs.read_bytes(uri))
        return DirectoryLock(str(found["job"]), str(found.get("user", "")), float(found.get("since", 0.0)))
    except (ValueError, TypeError, KeyError):
        return DirectoryLock("another job")


def acquire(fs: FileSystem, directory: str, job_id: str) -> None:
    """Lock a directory for a job; the directory is made if it does not exist.

    Raises:
        StagingError: another job holds the lock, or there is no permission.
    """
    fs.mkdirs(directory)
    lock = DirectoryLock(job_id, getpass.getuser(), time.time())
    held = read_lock(fs, directory)
    if held is None:
        fs.create_new(uris.join(directory, NAME), json.dumps(asdict(lock)).encode(), 0o644)
        held = read_lock(fs, directory) or lock
    if held.job != job_id:
        raise StagingError(explain_lock(directory, held))


def explain_lock(directory: str, held: DirectoryLock) -> str:
    """Explain which job uses a directory, and what to do."""
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(held.since)) if held.since else "an unknown time"
    user = held.user or "an unknown user"
    return (
        f"{directory} is used by {held.job} of {user} since {since}; two jobs "
        f"would overwrite each other's checkpoints. Cancel that one, choose another path, or if it is gone remove "
        f"{uris.join(directory, NAME)}"
    )


def release(fs: FileSystem, directory: str, job_id: str) -> None:
    """Release the job's lock; a lock of another job stays."""
    held = read_lock(fs, directory)
    if held is not None and held.job == job_id:
        fs.delete(uris.join(directory, NAME))
