"""Moves a job's checkpoint aside, so that the job begins anew and the checkpoints of earlier jobs are kept."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from howdah.errors import HowdahError, StagingError
from howdah.spec import Plan, uris
from howdah.spec.message import message
from howdah.staging.replacement import display_uri
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Entry, FileSystem
from howdah.storage.progress import Notice


@contextmanager
def begin_fresh(plan: Plan, notice: Notice) -> Iterator[None]:
    """Rename the directory of the plan's checkpoint to `<path>.before-<time>`, and rename it back if the submission
    fails. If the directory is a link, its target is renamed, and an empty directory takes the target's place: the link
    chooses the disk.

    The caller must have checked the lock of a running job before, and `howdah.staging.stage` must have been asked
    whether the directory may be renamed.

    Raises:
        StagingError, EngineUnavailable: the file system does not rename it.
    """
    directory, conf_dir = plan.job.job.checkpoint.path.rstrip("/"), plan.job.settings.get("hadoop_conf_dir", "")
    fs = filesystem(directory, conf_dir)
    found = fs.stat(directory)
    if found is None:
        yield
        return
    ending = f".before-{time.strftime('%Y-%m-%d_%H-%M-%S')}"
    renamed = _rename(fs, directory, found, ending)
    try:
        if renamed != directory:
            fs.mkdirs(renamed, found.mode & 0o7777)
        yield
    except BaseException:
        with suppress(HowdahError):
            if fs.exists(renamed) and not fs.children(renamed):
                fs.delete(renamed)
            fs.rename(renamed + ending, renamed)
        raise
    template = "the checkpoint of earlier jobs is kept at {directory}"
    notice(message(template, directory=display_uri(renamed + ending)))


def _rename(fs: FileSystem, directory: str, found: Entry, ending: str) -> str:
    """Rename a directory, or the target of a link; return the old path of the renamed directory."""
    if found.is_dir and uris.split(directory)[0] == "file" and os.path.islink(uris.path(directory)):  # noqa: PTH114
        with suppress(StagingError):  # a mount, or in a directory of another user: then rename the link
            target = fs.resolve(directory)
            fs.rename(target, target + ending)
            return target
    fs.rename(directory, directory + ending)
    return directory
