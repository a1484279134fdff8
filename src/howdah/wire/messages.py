"""What master and executor tell each other: an executor posts its `Status`, the master answers with `Orders`.

Both describe what *is* and what *should be*, whole, never a change: a message lost or sent twice does no harm, and a
master that starts anew learns everything from the next beat. `epoch` is in both; an older one is not obeyed.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple, Union

from howdah.spec.staged import Fetch
from howdah.spec.world import Exit


class Phase(str, enum.Enum):
    """Where an executor is. A new epoch leads from any later phase back to JOINED."""

    HELLO = "hello"
    LOCALISING = "localising"
    JOINED = "joined"
    RUNNING = "running"
    UPLOADING = "uploading"
    ENDED = "ended"


class Goal(str, enum.Enum):
    """Where the master wants it: JOIN the epoch, RUN its program, STOP it (end, and say so), or LEAVE (exit)."""

    JOIN = "join"
    RUN = "run"
    STOP = "stop"
    LEAVE = "leave"


@dataclass(frozen=True)
class Usage:
    """Of the program's process tree, now: memory in MiB (and its peak), CPU in cores, own progress 0..1."""

    memory_mib: float = 0.0
    peak_mib: float = 0.0
    cpu: float = 0.0
    progress: Optional[float] = None


@dataclass(frozen=True)
class LogChunk:
    """Bytes of a stream (latin-1 text, any byte travels) from `offset`; `size` is the length so far."""

    request: int
    offset: int
    size: int
    text: str = ""


@dataclass(frozen=True)
class Status:
    """An executor, whole. `sequence` grows with each message: the master ignores one that is older than it knows.

    `told` is the mark of the orders it had last: while they stand, a long poll waits. `exit` is set when phase is
    ENDED; `uploaded` names the outputs that lie complete under this attempt's name.
    """

    task: str
    attempt: int
    epoch: int
    sequence: int
    phase: Phase
    host: str
    pid: int
    python: str = ""
    ports: Mapping[str, int] = field(default_factory=dict)
    data_files: int = 0
    data_bytes: int = 0
    data_seconds: float = 0.0
    program_pid: int = 0
    program_python: str = ""
    usage: Usage = field(default_factory=Usage)
    exit: Optional[Exit] = None
    uploaded: Tuple[str, ...] = ()
    chunks: Tuple[LogChunk, ...] = ()
    told: str = ""


@dataclass(frozen=True)
class LogRequest:
    """Send up to `limit` bytes of `stream` (`stdout`, `stderr`) from `offset`; a negative one counts from the end."""

    request: int
    stream: str
    offset: int
    limit: int


@dataclass(frozen=True)
class Upload:
    """After the program ended well, copy directory `source` to `uri` (this attempt's own place, not yet the output).

    `required`: it is a failure when the program made no such directory.
    """

    source: str
    uri: str
    required: bool = False


@dataclass(frozen=True)
class Assignment:
    """What an executor does in this container, the same for all its epochs.

    `environment` are variables known beforehand (job's and role's); those of the world come with the order to run.
    `program_path` goes first on PATH. `hold_ports`: keep the reserved sockets open while the program runs
    (it sets SO_REUSEADDR or SO_REUSEPORT), else let them go right before it starts. `helper_python` runs
    `python -m howdah.data.transfer` where a scheme needs a library. `secrets` are names of variables whose values are
    in the credentials. `memory_mib` is the limit the container lives under, for messages.
    """

    command: Union[str, Tuple[str, ...]]
    environment: Mapping[str, str] = field(default_factory=dict)
    fetches: Tuple[Fetch, ...] = ()
    uploads: Tuple[Upload, ...] = ()
    ports: Tuple[str, ...] = ("main",)
    hold_ports: bool = False
    program_path: Tuple[str, ...] = ()
    secrets: Tuple[str, ...] = ()
    memory_mib: int = 0
    gpus: int = 0
    localise_s: float = 1800.0
    stop_s: float = 10.0


@dataclass(frozen=True)
class Orders:
    """The master's answer. `assignment` comes while the executor's phase is HELLO, `environment` with RUN.

    `lease_s`: an executor that hears nothing from the master for this long stops its program and exits.
    """

    epoch: int
    goal: Goal
    assignment: Optional[Assignment] = None
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_s: float = 10.0
    lease_s: float = 30.0
    log_requests: Tuple[LogRequest, ...] = ()

    @property
    def mark(self) -> str:
        """What an executor repeats in its status to say that it has these orders."""
        return f"{self.epoch}/{self.goal.value}"
