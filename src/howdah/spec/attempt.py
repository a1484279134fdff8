"""The moments of a job's life that people look at afterwards: what became of each attempt, and what happened."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from howdah.spec.task import Exit, TaskId
from howdah.spec.values import dataclass

MOST_MARKS = 2000
"""Of one job; when there are more, the first half and the latest stay."""

MOST_ATTEMPTS = 50
"""Of one task: the latest."""


class JobMark(NamedTuple):
    """A moment: `kind` is failed, lost, restarted, takeover, save or note, `task` the one it is about."""

    time: float
    kind: str
    text: str
    task: Optional[TaskId] = None


@dataclass
class AttemptView:
    """One attempt of a task, with the moments (epoch seconds, 0 when not yet) at which its container was asked for,
    granted and started, its executor spoke, its files were there, its program ran and ended."""

    attempt: int
    container: str = ""
    node: str = ""
    log_url: str = ""
    asked: float = 0.0
    allocated: float = 0.0
    launched: float = 0.0
    greeted: float = 0.0
    joined: float = 0.0
    running: float = 0.0
    finished: float = 0.0
    host: str = ""
    pid: int = 0
    """Its program's, on that host."""
    gpus: Tuple[str, ...] = ()
    """The devices that its program was given, as CUDA_VISIBLE_DEVICES names them."""
    exit: Optional[Exit] = None
    first_try: int = 0
    """The number of the task's try that began with this container."""
    stopped: bool = False
    """It was told to stop: its exit is no failure."""
