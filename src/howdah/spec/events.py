"""The facts of a job's life. The event log is a file of these, one JSON object a line; it is the history.

The master's `step` takes events and records events: what it accepts and what it decides. `time` is epoch seconds,
read where the event was seen. A reader skips kinds it does not know.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Iterator, Mapping, Optional, Type

from howdah.spec.codec import decode, encode
from howdah.spec.job import JobSpec
from howdah.spec.world import Container, Exit, Outcome, TaskId


@dataclass(frozen=True)
class Event:
    """Base of all events."""

    time: float


@dataclass(frozen=True)
class JobStarted(Event):
    """The master runs. `epoch_base` is the master's own attempt, `python` what it runs under."""

    id: str
    engine: str
    user: str
    job: JobSpec
    host: str = ""
    python: str = ""


@dataclass(frozen=True)
class Asked(Event):
    """The allocator was asked: `count` containers of `role` are outstanding from now on."""

    role: str
    count: int


@dataclass(frozen=True)
class Allocated(Event):
    """The engine granted a container."""

    container: Container


@dataclass(frozen=True)
class Launched(Event):
    """An executor was started in the container for this attempt of the task."""

    task: TaskId
    attempt: int
    container: Container


@dataclass(frozen=True)
class Greeted(Event):
    """The executor spoke for the first time."""

    task: TaskId
    attempt: int
    host: str
    pid: int
    python: str = ""


@dataclass(frozen=True)
class Joined(Event):
    """The task's files are in place and its ports reserved. `data_bytes` were fetched in `data_seconds`."""

    task: TaskId
    attempt: int
    epoch: int
    host: str
    ports: Mapping[str, int] = field(default_factory=dict)
    data_files: int = 0
    data_bytes: int = 0
    data_seconds: float = 0.0


@dataclass(frozen=True)
class WorldFormed(Event):
    """All tasks have joined this epoch; every program is started now."""

    epoch: int


@dataclass(frozen=True)
class Started(Event):
    """The user's program runs."""

    task: TaskId
    attempt: int
    epoch: int
    pid: int
    python: str = ""


@dataclass(frozen=True)
class Used(Event):
    """A sample: resident memory (MiB) and CPU (cores) of the task's process tree, and its own progress (0..1)."""

    task: TaskId
    memory_mib: float = 0.0
    peak_mib: float = 0.0
    cpu: float = 0.0
    progress: Optional[float] = None


@dataclass(frozen=True)
class Ended(Event):
    """The task's process ended, or the task's container did. `counts` is false for one that was told to stop."""

    task: TaskId
    attempt: int
    epoch: int
    exit: Exit
    node: str = ""
    counts: bool = True


@dataclass(frozen=True)
class ContainerEnded(Event):
    """The engine says that a container is gone: `exit.cause` is `exit`, `memory`, `lost`, `preempted`, `stopped`, …"""

    container_id: str
    exit: Exit


@dataclass(frozen=True)
class CancelRequested(Event):
    """Somebody wants the job to end; `by` is who."""

    by: str


@dataclass(frozen=True)
class GangReleased(Event):
    """An incomplete gang gave its containers back; it asks again `retry_in` seconds later."""

    reason: str
    retry_in: float


@dataclass(frozen=True)
class GangRestarted(Event):
    """All programs are started again, as epoch `epoch`, because of `reason`."""

    epoch: int
    reason: str


@dataclass(frozen=True)
class Stopping(Event):
    """The outcome is decided; programs still running are asked to stop."""

    reason: str


@dataclass(frozen=True)
class Noted(Event):
    """Something people should know: a node was lost, a preemption announced, the cluster does not answer."""

    text: str


@dataclass(frozen=True)
class Committed(Event):
    """An output is in its place."""

    uri: str


@dataclass(frozen=True)
class JobFinished(Event):
    """The last event."""

    outcome: Outcome


KINDS: Dict[str, Type[Event]] = {
    kind.__name__: kind
    for kind in (
        JobStarted,
        Asked,
        Allocated,
        Launched,
        Greeted,
        Joined,
        WorldFormed,
        Started,
        Used,
        Ended,
        ContainerEnded,
        CancelRequested,
        GangReleased,
        GangRestarted,
        Stopping,
        Noted,
        Committed,
        JobFinished,
    )
}


def to_line(event: Event) -> str:
    """One line of the event log, with its line end."""
    return json.dumps({"kind": type(event).__name__, **encode(event)}, separators=(",", ":")) + "\n"


def from_record(record: Mapping[str, Any]) -> Optional[Event]:
    """The event of one JSON object; None for a kind this version does not know."""
    kind = KINDS.get(str(record.get("kind")))
    return None if kind is None else decode(kind, record)


def read_lines(lines: Iterable[str]) -> Iterator[Event]:
    """Events of a log; a line that is cut short or garbled is passed over, as a killed writer leaves one."""
    for line in lines:
        try:
            event = from_record(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
        if event is not None:
            yield event
