"""Releases the lock of a checkpoint directory that an ended job has left behind, before another job is submitted."""

from __future__ import annotations

from howdah.checkpoints import directory_lock
from howdah.client.engine_registry import engine_of
from howdah.errors import HowdahError, StagingError
from howdah.spec import Plan
from howdah.storage.factory import filesystem


def release_stale_lock(plan: Plan, profile: str = "") -> None:
    """Release the lock of the plan's checkpoint directory if the job that holds it has ended.

    Raises:
        StagingError: the job that holds the lock still runs, or its engine does not say.
    """
    directory = plan.job.job.checkpoint.path
    if not directory:
        return
    fs = filesystem(directory, plan.job.settings.get("hadoop_conf_dir", ""))
    held = directory_lock.read_lock(fs, directory)
    if held is None:
        return
    if not _ended(held.job, profile):
        raise StagingError(directory_lock.explain_lock(directory, held))
    directory_lock.release(fs, directory, held.job)


def _ended(job_id: str, profile: str) -> bool:
    """Return whether the engine says that the job has ended. A ResourceManager does not run an application that it has
    forgotten; nothing is known of a local job that is not in our own directory."""
    try:
        found = engine_of(job_id, profile).describe(job_id)
    except HowdahError:
        return False
    return found[0].state.ended if found else job_id.startswith("application_")
