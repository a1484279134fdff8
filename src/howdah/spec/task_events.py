"""Events of one task: its executor starts, joins, runs the program, and ends. `howdah.spec.events` has all events.

`time` is in epoch seconds and is read where the event was seen.
"""

from __future__ import annotations

from dataclasses import field
from typing import Mapping, Optional, Tuple

from howdah.spec.codec import FLAT
from howdah.spec.message import Sentence
from howdah.spec.task import Container, Exit, TaskId
from howdah.spec.usage import Usage
from howdah.spec.values import dataclass


@dataclass(frozen=True)
class Event:
    """The base of all events."""

    time: float
    """When the event was seen, in epoch seconds of the master's clock."""


@dataclass(frozen=True)
class Launched(Event):
    """An executor was started in the container, or the container of another task was reassigned."""

    task: TaskId
    """The task that gets the container."""
    attempt: int
    """The number of the attempt that begins."""
    container: Container
    """The container in which the attempt runs."""
    giver: Optional[TaskId] = None
    """The task whose container was reassigned to this task; None when an executor was started."""


@dataclass(frozen=True)
class Greeted(Event):
    """The executor sent its first status."""

    task: TaskId
    """The task that the event is about."""
    attempt: int
    """The number of the task's attempt."""
    host: str
    """The host that the executor names as its own."""
    pid: int
    """The executor's process id on that host."""
    python: str = ""
    """Version and path of the Python interpreter that runs the executor."""


@dataclass(frozen=True)
class Joined(Event):
    """The task's files are in place and its ports are reserved."""

    task: TaskId
    """The task that the event is about."""
    attempt: int
    """The number of the task's attempt."""
    epoch: int
    """The epoch that the task has joined."""
    host: str
    """The host at which other tasks reach this one."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """The reserved ports, by name."""
    data_files: int = 0
    """The number of input files in place."""
    data_bytes: int = 0
    """Bytes of the input files in place."""
    data_seconds: float = 0.0
    """Seconds that fetching the input files took."""
    ip: str = ""
    """The host as a numeric address; "" when it is not known."""
    data_cached_bytes: int = 0
    """The bytes of data_bytes that were in the node's cache before."""
    pair_port: int = 0
    """The port at which other tasks try to exchange data during pre-flight; 0 for none."""


@dataclass(frozen=True)
class Checked(Event):
    """The task's container passed the checks that it makes alone, or has tried to exchange data with others."""

    task: TaskId
    """The task that the event is about."""
    attempt: int
    """The number of the task's attempt."""
    epoch: int
    """The epoch in which the task is to run."""
    seconds: float = 0.0
    """How long the checks took."""
    found: Tuple[Sentence, ...] = ()
    """Sentences about what is wrong; empty when the container passed."""
    left_out: Tuple[Sentence, ...] = ()
    """Sentences about what was not checked."""
    pairs: bool = False
    """True for the exchange of data with other tasks, False for the checks that the container makes alone."""
    passed: Tuple[str, ...] = ()
    """The tasks with which data was exchanged."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """The tasks with which data could not be exchanged, and why not."""


@dataclass(frozen=True)
class Started(Event):
    """The user's program runs."""

    task: TaskId
    """The task that the event is about."""
    attempt: int
    """The number of the task's attempt."""
    epoch: int
    """The epoch in which the program runs."""
    pid: int
    """The program's process id on its host."""
    python: str = ""
    """Version and path of the Python interpreter that the program finds."""
    gpus: Tuple[str, ...] = ()
    """The devices that the program was given, as CUDA_VISIBLE_DEVICES names them."""
    log_offset: Optional[int] = None
    """The offset at which this start's output begins, in bytes of both streams of the attempt together; None in logs of
    earlier versions."""


@dataclass(frozen=True)
class Used(Event):
    """A sample of what a task uses. Before the program runs, only `data_bytes` and `data_total_bytes` are sampled."""

    task: TaskId
    """The task that the event is about."""
    usage: Usage = field(default=Usage(), metadata={FLAT: True})
    """The sample, without rates per second (`read_mib_s` and its like)."""
    data_bytes: int = 0
    """Bytes of the input files that have been fetched; sampled only before the program runs."""
    data_total_bytes: int = 0
    """Bytes of all input files of the task; sampled only before the program runs."""


@dataclass(frozen=True)
class Measured(Event):
    """The task's program reported a point of one of its metrics."""

    task: TaskId
    """The task that the event is about."""
    name: str
    """The metric's name."""
    value: Optional[float] = None
    """The metric's value; None stands for a value that is no finite number."""
    step: Optional[int] = None
    """The training step of the value; None when the program names none."""


@dataclass(frozen=True)
class Yielded(Event):
    """The task has announced values for the roles that come after its own role."""

    task: TaskId
    """The task that the event is about."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The announced values, by variable."""


@dataclass(frozen=True)
class TrackerRunsFound(Event):
    """The task's program has printed the addresses of runs of experiment trackers."""

    task: TaskId
    """The task that the event is about."""
    urls: Tuple[str, ...] = ()
    """The addresses of the runs, as http or https URLs without secrets."""


@dataclass(frozen=True)
class Ended(Event):
    """The task's process ended, or the task's container did."""

    task: TaskId
    """The task that the event is about."""
    attempt: int
    """The number of the task's attempt."""
    epoch: int
    """The epoch in which the program ran."""
    exit: Exit
    """How the process or the container ended."""
    node: str = ""
    """The node on which the task ran."""
    counts: bool = True
    """True for a failure that the job has to react to; False for success and for a task that was told to stop."""
    lost: bool = False
    """True when the container ended, False when the process did."""
    uploaded: Tuple[str, ...] = ()
    """The outputs that the attempt has uploaded completely."""
    fenced_until: float = 0.0
    """Until this moment (epoch seconds) the program may still run; 0 when it has ended for certain."""


@dataclass(frozen=True)
class Straggling(Event):
    """A task is out of line with its role, or is in line again."""

    task: TaskId
    """The task that the event is about."""
    what: Sentence = ""
    """The measurement that is out of line; "" says that the task is in line again."""
    value: float = 0.0
    """The task's value of that measurement."""
    median: float = 0.0
    """The median of the role."""


@dataclass(frozen=True)
class TaskEntered(Event):
    """A user runs a command in the task's container, copies files, or reaches one of its ports."""

    task: TaskId
    """The task that the event is about."""
    by: str
    """The user, as the client names itself; it has the job's key."""
    address: str
    """The address from which the client has connected to the master."""
    access: str
    """`shell`, `command`, `copy` or `port`."""
    detail: str = ""
    """The first word of the command, the path in the task, or the port."""
