"""Reads the stacks that a job's master has kept in the job's directory, task by task.

The rule: of what the event log names, the last two parts count, below the job's directory, and files of one owner.
"""

from __future__ import annotations

import re

from howdah.api.curve_schemas import KeptStacks
from howdah.api.sources import JobSource
from howdah.errors import HowdahError, NotFound, RequestRefused
from howdah.spec import uris
from howdah.storage.files_of_owner import files_of

MAX_BYTES = 4 << 20
"""The most bytes that are read: the stacks of hundreds of tasks."""
_TASK = re.compile(r"^==> (.{1,200}) <==\n", re.MULTILINE)


def kept_stacks_uri(directory: str, uri: str) -> str:
    """Return where in the job's `directory` the stacks lie that its event log calls `uri`.

    Raises:
        StagingError: the name leads out of the directory.
    """
    name = uris.check_inner_name("/".join(uris.path(uri).split("/")[-2:]), directory)
    return uris.join(directory, name)


def read_last_stacks(job: JobSource) -> KeptStacks:
    """Return the stacks of the job that were kept last.

    Raises:
        NotFound: none were kept, or they can't be read there.
    """
    kept = job.view.stacks
    if not kept:
        raise NotFound("no stacks were kept while the job ran")
    try:
        uri = kept_stacks_uri(job.directory, kept[-1])
        files = files_of(job.shown_owner, uri, job.conf_dir)
        entry = files.stat(uri)
        if entry is None or entry.is_dir:
            raise NotFound(f"{uri}: no such file")
        data = files.head(uri, MAX_BYTES) if entry.size else b""  # a pipe, which has no size, may block
    except RequestRefused:
        raise
    except HowdahError as error:
        raise NotFound(str(error)) from error
    text = data.decode("utf-8", "replace")
    return {"stacks": split_by_task(text), "uri": kept[-1], "complete": entry.size <= MAX_BYTES}


def split_by_task(text: str) -> dict[str, str]:
    """Return the stacks of each task in a file that holds those of all."""
    _, *parts = _TASK.split(text)
    return {task: stack.rstrip("\n") + "\n" for task, stack in zip(parts[::2], parts[1::2], strict=True)}
