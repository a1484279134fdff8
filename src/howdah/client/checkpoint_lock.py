"""Releases the lock of a checkpoint directory that an ended job has left behind, before another job is submitted."""

from __future__ import annotations

import getpass

from howdah.checkpoints import directory_lock
from howdah.client.clusters import describe_clusters, find_clusters
from howdah.client.engine_registry import engine_info
from howdah.engines.info import name_of_id
from howdah.errors import HowdahError, StagingError
from howdah.spec import Plan
from howdah.storage.factory import filesystem


def release_stale_lock(plan: Plan) -> None:
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
    if not _ended(held):
        raise StagingError(f"checkpoint.path: {directory_lock.explain_lock(directory, held)}")
    directory_lock.release(fs, directory, held.job)


def _ended(held: directory_lock.DirectoryLock) -> bool:
    """Return whether an engine says that the job has ended. All clusters of the user's profiles are asked, because the
    job need not be on the cluster of the profile in use.

    A job of this user has also ended if its engine forgets jobs and all clusters say that they do not know it. A job of
    another user may be on a cluster that is in none of these profiles."""
    name = name_of_id(held.job)
    unusable: list[HowdahError] = []
    try:
        clusters = find_clusters(name, report_unusable=lambda *problem: unusable.append(problem[-1]))
        answers = list(describe_clusters(clusters, held.job))
    except HowdahError:
        return False
    reports = [report for answer in answers for report in answer.reports]
    if reports:
        return all(report.state.ended for report in reports)
    if not name or unusable or any(answer.error for answer in answers):
        return False
    return engine_info(name).forgets_jobs and held.user == getpass.getuser()
