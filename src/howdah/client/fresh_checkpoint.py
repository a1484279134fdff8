"""Puts a job's checkpoint aside, so that the job begins anew, and what earlier jobs have trained stays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from howdah.errors import HowdahError, SpecError
from howdah.spec import Plan, uris
from howdah.spec.message import message
from howdah.staging.replacement import KeptPath, display_uri, personal_paths, why_not_replace
from howdah.storage.factory import filesystem
from howdah.storage.progress import Notice


def refuse_wrong(plan: Plan) -> None:
    """Raise SpecError if the checkpoint of the plan can't be put aside."""
    job, conf_dir = plan.job.job, plan.job.settings.get("hadoop_conf_dir", "")
    directory = job.checkpoint.path.rstrip("/")
    if not directory:
        raise SpecError.at("--fresh", "the job has no checkpoint.path")
    kept = [
        *personal_paths(Path.cwd()),
        *(KeptPath(f"inputs.{number}", uri) for number, uri in _directories_of_inputs(plan)),
        *(KeptPath(f"outputs.{number}", output.path) for number, output in enumerate(job.outputs)),
    ]
    if problem := why_not_replace(directory, kept, conf_dir):
        raise SpecError.at("--fresh", problem)


@contextmanager
def begin_fresh(plan: Plan, notice: Notice) -> Iterator[None]:
    """Rename the directory of the plan's checkpoint to `<path>.before-<time>`, and back if the submission fails. The
    lock of a job that runs must have been looked at before.

    Raises:
        SpecError: the job has no checkpoint, or its directory holds what must stay where it is.
        StagingError, EngineUnavailable: the file system does not rename it.
    """
    refuse_wrong(plan)
    directory, conf_dir = plan.job.job.checkpoint.path.rstrip("/"), plan.job.settings.get("hadoop_conf_dir", "")
    fs = filesystem(directory, conf_dir)
    if fs.stat(directory) is None:
        yield
        return
    aside = f"{directory}.before-{time.strftime('%Y-%m-%d_%H-%M-%S')}"
    fs.rename(directory, aside)
    try:
        yield
    except BaseException:
        with suppress(HowdahError):
            if not fs.children(directory):
                fs.delete(directory)
            fs.rename(aside, directory)
        raise
    template = "the checkpoint of earlier jobs is kept at {directory}"
    notice(message(template, directory=display_uri(aside)))


def _directories_of_inputs(plan: Plan) -> Iterator[tuple[int, str]]:
    for number, entry in enumerate(plan.job.inputs):
        for directory in {uris.parent(file.uri) for file in entry.files}:
            yield number, directory
