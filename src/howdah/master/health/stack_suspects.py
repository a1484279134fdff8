"""Finds the task that the others wait for, by the stacks of all: the one that differs, and not one of those that wait
together.

This is a rule of thumb: users get the stacks of all tasks. `stacks` are texts as py-spy prints them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from howdah.spec import TaskId
from howdah.spec.message import message

_THREAD = re.compile(r"^Thread (?:0x[0-9A-Fa-f]+|\d+)[^\n]*\n((?:    .+\n?)*)", re.MULTILINE)
_FRAME = re.compile(r"^    (.+?) \((.*?)(?::(\d+))?\)\s*$", re.MULTILINE)
_COLLECTIVE = re.compile(
    r"all_?reduce|all_?gather|reduce_scatter|all_?to_?all|broadcast|barrier|distributed_c10d|_store_based_barrier"
    r"|horovod|mpi4py|collective|rendezvous|\bsynchronize\b|wait_at|ncclStream|gloo|recv_object|send_recv",
    re.IGNORECASE,
)
LEAD_S = 5.0
"""Executors report every two seconds: a smaller difference means nothing."""


class StackFrame(NamedTuple):
    """A frame of a stack."""

    function: str
    """The function's name."""
    file: str
    """The source file."""
    line: str
    """The line number; "" in native code."""

    def __str__(self) -> str:
        return f"{self.function} ({self.file}{':' + self.line if self.line else ''})"


class Suspect(NamedTuple):
    """The tasks that a stall points to, and why; none when `tasks` is empty."""

    tasks: tuple[TaskId, ...] = ()
    """The suspected tasks."""
    reason: str = ""
    """Why they are suspected, for people; "" when there is no suspicion."""


def find_suspect(stacks: Mapping[TaskId, str], quiet: Mapping[TaskId, float]) -> Suspect:
    """Return the suspects among tasks whose stacks are known, else among those without progress for `quiet` seconds."""
    known = {task: frames for task, text in stacks.items() if (frames := main_frames(text))}
    return _not_waiting(known) or _differs_from_majority(known) or _first_silent(quiet) or Suspect()


def main_frames(text: str) -> tuple[StackFrame, ...]:
    """Return the frames of the main thread, the innermost first, of the process with the deepest stack; () when there
    is none."""
    found: list[tuple[StackFrame, ...]] = []
    for part in re.split(r"^(?=Process \d+:)", text, flags=re.MULTILINE):
        threads = list(_THREAD.finditer(part))
        named = [one for one in threads if '"MainThread"' in one[0].split("\n", 1)[0]]
        main = (named or threads)[:1]
        frames = [StackFrame(each[1], each[2], each[3] or "") for one in main for each in _FRAME.finditer(one[1])]
        if frames:
            found.append(tuple(frames))
    return max(found, key=len, default=())


def _is_in_collective(frames: Sequence[StackFrame]) -> bool:
    return any(_COLLECTIVE.search(f"{frame.function} {frame.file}") for frame in frames)


def _not_waiting(known: Mapping[TaskId, tuple[StackFrame, ...]]) -> Suspect | None:
    waiting = [task for task, frames in known.items() if _is_in_collective(frames)]
    others = tuple(task for task in known if task not in waiting)
    if not waiting or not others or len(others) > len(waiting):
        return None
    place = next(frame for frame in known[waiting[0]] if _COLLECTIVE.search(f"{frame.function} {frame.file}"))
    template = "it is in {place}, while {count} wait in {where}"
    return Suspect(others, message(template, place=known[others[0]][0], count=len(waiting), where=place))


def _differs_from_majority(known: Mapping[TaskId, tuple[StackFrame, ...]]) -> Suspect | None:
    shapes = {task: tuple(frame[:2] for frame in frames) for task, frames in known.items()}
    common = Counter(shapes.values()).most_common(1)
    if not common or common[0][1] == len(known) or common[0][1] * 2 <= len(known):
        return None
    others = tuple(task for task, shape in shapes.items() if shape != common[0][0])
    like = next(frames for task, frames in known.items() if shapes[task] == common[0][0])
    template = "it is in {place}, while {count} are in {where}"
    return Suspect(others, message(template, place=known[others[0]][0], count=common[0][1], where=like[0]))


def _first_silent(quiet: Mapping[TaskId, float]) -> Suspect | None:
    if len(quiet) < 2:
        return Suspect(tuple(quiet)) if quiet else None
    first, second = sorted(quiet, key=lambda task: -quiet[task])[:2]
    lead = quiet[first] - quiet[second]
    if lead < LEAD_S:
        return None
    return Suspect((first,), message("it fell silent {seconds} s before any other", seconds=f"{lead:.0f}"))
