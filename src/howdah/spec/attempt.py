"""What people read of a job afterwards: what became of each attempt, and what happened."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from howdah.spec.message import Sentence
from howdah.spec.task import Exit, TaskId
from howdah.spec.values import dataclass

MAX_MARKS = 2000
"""The most marks of one job; when there are more, the first half and the latest stay."""

MAX_ATTEMPTS = 50
"""The most attempts of one task: the latest."""


class JobMark(NamedTuple):
    """A moment in the life of a job that people look at."""

    time: float
    """The moment, in epoch seconds."""
    kind: str
    """One of `failed`, `lost`, `restarted`, `takeover`, `save` and `note`."""
    text: Sentence
    """What happened, for people."""
    task: Optional[TaskId] = None
    """The task that it happened to; None for the whole job."""


@dataclass
class AttemptView:
    """One attempt of a task. Moments are epoch seconds, 0 when not yet."""

    attempt: int
    """The number of the attempt."""
    container: str = ""
    """The engine's name for its container."""
    node: str = ""
    """The node of the container."""
    log_url: str = ""
    """Where people read the container's logs."""
    asked: float = 0.0
    """When the container was asked for."""
    allocated: float = 0.0
    """When the container was granted."""
    launched: float = 0.0
    """When the executor was started."""
    greeted: float = 0.0
    """When the executor sent its first status."""
    joined: float = 0.0
    """When the task's files were in place."""
    running: float = 0.0
    """When the program began to run."""
    finished: float = 0.0
    """When the program ended."""
    host: str = ""
    """The host that the executor names as its own."""
    pid: int = 0
    """The program's process id on that host."""
    gpus: Tuple[str, ...] = ()
    """The devices that the program was given, as CUDA_VISIBLE_DEVICES names them."""
    exit: Optional[Exit] = None
    """How the attempt ended; None while it runs."""
    first_try: int = 0
    """The number of the task's try that began with this container."""
    stopped: bool = False
    """The master told the program to stop: its exit is no failure."""
