"""The history of a job as people read it afterwards: how each try of a task went, and what happened."""

from __future__ import annotations

from dataclasses import field
from typing import Mapping, NamedTuple, Optional, Tuple

from howdah.spec.message import Sentence
from howdah.spec.task import Exit, TaskId
from howdah.spec.values import dataclass

MAX_MARKS = 2000
"""The most marks of one job; of more marks, the first half and the latest are kept."""

MAX_ATTEMPTS, MAX_TRIES = 50, 20
"""The most tries of one task that are kept when it gets a new container, and the most tries in one container; the
latest are kept."""


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
    """One try of a task: a start of its program, in a container of its own or in that of the try before. Moments are
    epoch seconds, 0 when not yet."""

    attempt: int
    """The number of the attempt whose container it is."""
    container: str = ""
    """The engine's name for its container."""
    node: str = ""
    """The node of the container."""
    log_url: str = ""
    """The address at which people read the container's logs."""
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
    log_offset: Optional[int] = None
    """The offset at which this try's output begins, in bytes of both streams of the attempt together; None when that is
    not known."""
    exit: Optional[Exit] = None
    """How the try ended; None while it runs."""
    try_number: int = 0
    """The number of the try: what people see as the task's attempt."""
    stopped: bool = False
    """The master told the program to stop: its exit is no failure."""
    engine_facts: Mapping[str, str] = field(default_factory=dict)
    """Where in the engine its container is: Container.engine_facts."""
