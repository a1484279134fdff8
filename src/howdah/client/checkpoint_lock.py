"""Before a submission: a directory of checkpoints that a job which has ended left taken is free."""

from __future__ import annotations

from howdah.checkpoints import directory_lock
from howdah.client.engine_registry import engine_of
from howdah.errors import HowdahError, StagingError
from howdah.spec import Plan
from howdah.storage.factory import filesystem


def release_stale_lock(plan: Plan, profile: str = "") -> None:
    """Take the lease from a job that has ended without giving it back.

    Raises:
        StagingError: the job that has it still runs, or nobody knows whether it does.
    """
    directory = plan.job.job.checkpoint.path
    if not directory:
        return
    fs = filesystem(directory, plan.job.settings.get("hadoop_conf_dir", ""))
    held = directory_lock.holder(fs, directory)
    if held is None:
        return
    if not _ended(held.job, profile):
        raise StagingError(directory_lock.refusal(directory, held))
    directory_lock.release(fs, directory, held.job)


def _ended(job_id: str, profile: str) -> bool:
    """Whether its engine says so. A ResourceManager that has forgotten an application does not run it any more; of a
    local job we know nothing when it isn't in our own directory."""
    try:
        found = engine_of(job_id, profile).describe(job_id)
    except HowdahError:
        return False
    return found[0].state.ended if found else job_id.startswith("application_")
