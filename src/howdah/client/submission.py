"""Submits a prepared job with all steps that belong to a submission: the one way for commands and programs."""

from __future__ import annotations

import time
from contextlib import nullcontext

from howdah.client.engine_registry import settings_for
from howdah.client.fresh_checkpoint import begin_fresh
from howdah.client.submit import PreparedJob
from howdah.client.token_expiry import may_outlive_tokens
from howdah.errors import HowdahError
from howdah.spec.message import message
from howdah.storage.progress import Notice, Progress, no_progress


def submit(prepared: PreparedJob, notice: Notice, progress: Progress = no_progress) -> str:
    """Submit a prepared job and return its id.

    `notice` is called with sentences for the user, and `progress` during uploads, which it may end by an error.

    Raises:
        StagingError: another job that runs writes the checkpoint.
        SpecError: the checkpoint can't be put aside.
        EngineRejected, EngineUnavailable: the engine takes no job, or does not answer.
    """
    job = prepared.plan.job.job
    if job.checkpoint.path:
        from howdah.client.checkpoint_lock import release_stale_lock

        release_stale_lock(prepared.plan)
    if job.board.show:
        _bring_tensorboard(prepared, notice)
    with begin_fresh(prepared.plan, notice) if prepared.fresh else nullcontext():
        job_id = prepared.engine.submit(prepared.plan, prepared.secrets, progress)
    end = prepared.engine.credentials_end
    if may_outlive_tokens(job.timeouts, end, time.time()):
        date = time.strftime("%Y-%m-%d %H:%M", time.localtime(end))
        template = (
            "the job's tokens for HDFS end on {date}, and it may run longer; then it loses HDFS: set timeouts.run"
        )
        notice(message(template, date=date))
    return job_id


def _bring_tensorboard(prepared: PreparedJob, notice: Notice) -> None:
    """Stage TensorBoard. A failure is no error, because the job's own environment may have TensorBoard."""
    from howdah.client.tensorboard_install import install

    try:
        install(prepared.engine, settings_for({"engine": prepared.engine.name, "profile": prepared.profile}), notice)
    except HowdahError as error:
        notice(message("no TensorBoard: {reason}", reason=str(error)))
