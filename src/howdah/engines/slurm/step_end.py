"""Derives from the messages of srun how a step has ended."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from howdah.engines import GONE
from howdah.engines.exit_status import exit_of_status
from howdah.spec import Exit
from howdah.spec.message import message

TIME_LIMIT = Exit("withdrawn", detail="Slurm's time limit was reached")
_MEMORY = Exit("memory", signal=9, detail="killed for using more memory than it asked for")
LOST = Exit("lost", detail="its node was lost")
JOB_GONE = Exit("withdrawn", detail="Slurm has ended the job that had its room")
PREEMPTED = Exit("preempted", detail="preempted: Slurm gave the room to another job")
_NOT_STARTED = Exit("lost", detail="Slurm did not start its step there: the node may be down")
ALLOCATION_ENDS = {
    "due to node failure": LOST,
    "due to preemption": PREEMPTED,
    "due to job requeue": Exit("withdrawn", detail="Slurm put the job back into the queue"),
    "due to time limit": TIME_LIMIT,
}
"""Texts that Slurm prints, in small letters, about a step that it ends together with the whole job."""
_STEP_ENDS = {
    "oom-kill": _MEMORY,
    "out of memory": _MEMORY,
    **ALLOCATION_ENDS,
    "node failure on": LOST,
    "unable to contact": Exit("withdrawn", detail="Slurm's controller did not answer when its step was to start"),
    "expired or invalid job": JOB_GONE,
    "unable to create step": _NOT_STARTED,
    "task launch for": _NOT_STARTED,
    "application launch failed": _NOT_STARTED,
    "aborting, io error": LOST,
    "not in this allocation": _NOT_STARTED,
}
"""Texts that srun prints, in small letters; the first match decides."""


def find_end(text: str, ends: Mapping[str, Exit]) -> Exit | None:
    """Return the first of `ends` whose words are in a text."""
    return next((exit for words, exit in ends.items() if words in text.lower()), None)


def end_of_step(directory: Path, status: int | None, released: bool) -> Exit:
    """Return the end of a step whose files are in `directory`; `status` is srun's, None if nobody has recorded it."""
    if released:
        return Exit("stopped", detail=message("its container was given back"))
    said = _lines(directory / "srun.log")
    if status != 0 and (found := find_end("\n".join(said), _STEP_ENDS)):
        return found
    if status is None:
        return Exit("withdrawn", detail=GONE)
    return exit_of_status(
        status, next(reversed(_lines(directory / "executor.log") or said), message("it said nothing"))
    )


def _lines(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    return []
