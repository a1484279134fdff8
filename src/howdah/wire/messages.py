"""What master and executor tell each other: an executor posts its `Status`, the master answers with `Orders`.

Both describe what *is* and what *should be*, whole, never a change: a message lost or sent twice does no harm, and a
master that starts anew learns everything from the next beat. `epoch` is in both; an older one is not obeyed.
"""

from __future__ import annotations

import enum
from dataclasses import field
from typing import Mapping, Optional, Tuple, Union

from howdah.spec.gpu import Gpu
from howdah.spec.staged import Feed, Fetch
from howdah.spec.task import Exit
from howdah.spec.values import dataclass

SEARCH, PROCESSES = "search", "processes"
NOT_HEARD, NOT_WANTED = 75, 76
"""Exit statuses of an executor: it has not heard its master for the lease, or that does not want it."""


class Phase(str, enum.Enum):
    """Where an executor is. A new epoch leads from any later phase back to JOINED."""

    HELLO = "hello"
    LOCALISING = "localising"
    JOINED = "joined"
    RUNNING = "running"
    UPLOADING = "uploading"
    ENDED = "ended"


class Goal(str, enum.Enum):
    """Where the master wants it: JOIN the epoch, RUN its program, STOP it (end, and say so), LEAVE (exit), or BECOME
    the executor of another attempt."""

    JOIN = "join"
    RUN = "run"
    STOP = "stop"
    LEAVE = "leave"
    REASSIGN = "become"


@dataclass(frozen=True)
class Usage:
    """Of the program's process tree, now: memory in MiB (and its peak), CPU in cores, own progress 0..1.

    `streamed_bytes` of its input streams it was given so far, of which `local_bytes` lie on this node; `log_bytes` is
    what it has printed. `cpu_s`, `read_mib` and so on are since it began, those with `_s` at the end a second, now.
    `waits` is the share (0..1) of its samples in which one of its processes waited for a disk. What was received and
    sent is of the network namespace: `network` says whether that is the task's own (`task`) or its node's (`node`).
    For `starved_s` it waited for its input streams. The program's first progress was `first_progress`, told at
    `first_at` (epoch seconds).
    """

    memory_mib: float = 0.0
    peak_mib: float = 0.0
    cpu: float = 0.0
    progress: Optional[float] = None
    streamed_bytes: int = 0
    local_bytes: int = 0
    log_bytes: int = 0
    cpu_s: float = 0.0
    waits: float = 0.0
    read_mib: float = 0.0
    written_mib: float = 0.0
    received_mib: float = 0.0
    sent_mib: float = 0.0
    read_mib_s: float = 0.0
    written_mib_s: float = 0.0
    received_mib_s: float = 0.0
    sent_mib_s: float = 0.0
    network: str = ""
    gpus: Tuple[Gpu, ...] = ()
    gpu_mean: Optional[float] = None
    starved_s: float = 0.0
    first_progress: float = 0.0
    first_at: float = 0.0


@dataclass(frozen=True)
class LogChunk:
    """Bytes of a stream (latin-1 text, any byte travels) from `offset`; `size` is the length so far."""

    request: int
    offset: int
    size: int
    text: str = ""


@dataclass(frozen=True)
class SaveReport:
    """How far a wanted copy is: `files` and `bytes` copied, `total` those in it; `problem` says why there is none.
    `skipped` are sentences about files left out."""

    number: int
    done: bool = False
    problem: str = ""
    files: int = 0
    bytes: int = 0
    total: int = 0
    skipped: Tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckReport:
    """What was found by the checks of this container alone (`epoch` 0), or by those in pairs of an epoch: `found` and
    `left_out` are sentences, `passed` the tasks with which it exchanged data, `failed` those with which it could not,
    and why."""

    epoch: int = 0
    seconds: float = 0.0
    found: Tuple[str, ...] = ()
    left_out: Tuple[str, ...] = ()
    passed: Tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Status:
    """An executor, whole. `sequence` grows with each message: the master ignores one that is older than it knows.

    Of `data_total_bytes` of its input files `data_bytes` are here; `data_cached_bytes` of them were on the node before.
    `told` is the mark of the orders it had last: while they stand, a long poll waits. `exit` is set when phase is
    ENDED; `uploaded` names the outputs that lie complete under this attempt's name; `kept` that those of a failed job
    were tried, as told. `yields` are the values that the program has announced for later roles; `ip` is `host` in
    numbers, known with the ports. `saves` are the copies in the orders, `asked_saves` counts how often this executor's
    programs have asked for one.
    `pair_port` is where it is tried by others, `checks` what pre-flight has found.
    `container` is the engine's name for where it runs. For `quiet_s` seconds the program has shown no sign of progress.
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
    ip: str = ""
    data_files: int = 0
    data_bytes: int = 0
    data_seconds: float = 0.0
    data_total_bytes: int = 0
    data_cached_bytes: int = 0
    program_pid: int = 0
    program_python: str = ""
    program_gpus: Tuple[str, ...] = ()
    """The devices that the program was given, as CUDA_VISIBLE_DEVICES names them."""
    usage: Usage = field(default_factory=Usage)
    exit: Optional[Exit] = None
    uploaded: Tuple[str, ...] = ()
    kept: bool = False
    chunks: Tuple[LogChunk, ...] = ()
    told: str = ""
    yields: Mapping[str, str] = field(default_factory=dict)
    saves: Tuple[SaveReport, ...] = ()
    asked_saves: int = 0
    container: str = ""
    quiet_s: float = 0.0
    pair_port: int = 0
    checks: Tuple[CheckReport, ...] = ()


@dataclass(frozen=True)
class LogRequest:
    """Send up to `limit` bytes of `stream` from `offset`; a negative one counts from the end. `stdout`, `stderr`,
    `both` (as they came), `times` (howdah.logs.stream_index); for `search` the lines that the JSON in it wishes for;
    for `processes` the pids of the program's tree.
    `stacks` and `stacks-native` are taken of the program when they are asked for."""

    request: int
    stream: str
    offset: int
    limit: int
    search: str = ""


@dataclass(frozen=True)
class Upload:
    """After the program ended well, copy directory `source` to `uri` (this attempt's own place, not yet the output).

    `required`: it is a failure when the program made no such directory. `keep_failed`: copy it also when the job has
    failed and the orders say `keep`.
    """

    source: str
    uri: str
    required: bool = False
    keep_failed: bool = False


@dataclass(frozen=True)
class SaveOrder:
    """Copy directory `source` as it is at one moment to `uri`, beside the program, within `limit_s`; `final` is where
    the copy will be seen, `previous` where this task's part of an earlier one is ("": copy everything)."""

    number: int
    source: str
    uri: str
    final: str
    previous: str = ""
    limit_s: float = 3600.0


@dataclass(frozen=True)
class StdoutOutput:
    """What the program prints to its standard output is written to part files in directory `uri` (this attempt's own
    place), whose names begin with `name`; `output` is the output that they are for, for messages."""

    uri: str
    name: str
    output: str
    format: str = "text"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckpointSyncOrder:
    """Checkpoints of the program: local directory `path`, kept alike `uri`; fetched before it starts, and if `writes`
    stored every `every_s`. Without `replaces` files that other tasks have stored are left alone. `valid` as in the
    spec."""

    path: str
    uri: str
    every_s: float = 30.0
    writes: bool = True
    replaces: bool = True
    valid: str = ""


@dataclass(frozen=True)
class EventFileSyncOrder:
    """What the program writes to local directory `path` is sent to `uri` every `every_s`; "" sends it nowhere."""

    path: str
    uri: str = ""
    every_s: float = 10.0


@dataclass(frozen=True)
class CheckOrder:
    """What is checked in the container before it joins, within `limit_s`: `checks` of howdah.spec.preflight. `pairs`:
    others will want to exchange data with it."""

    checks: Tuple[str, ...] = ()
    disk_mib: int = 0
    limit_s: float = 120.0
    pairs: bool = False


@dataclass(frozen=True)
class Partner:
    """With whom to exchange data: a task that `listens` is called, of another a call is awaited."""

    task: str
    host: str
    port: int
    listens: bool


@dataclass(frozen=True)
class PairOrder:
    """Exchange data with `rounds`, one after the other (None: nobody in that round), all within `limit_s`."""

    epoch: int
    rounds: Tuple[Optional[Partner], ...]
    limit_s: float = 120.0


@dataclass(frozen=True)
class Assignment:
    """What an executor does in this container, the same for all its epochs.

    `listed` are the URIs that the program reads by itself, by the name of their input.
    `environment` are variables known beforehand (job's and role's); those of the world come with the order to run.
    `program_path` goes first on PATH. `hold_ports`: keep the reserved sockets open while the program runs
    (it sets SO_REUSEADDR or SO_REUSEPORT), else let them go right before it starts. `helper_python` runs
    `python -m howdah.inputs.transfer` where a scheme needs a library. `secrets` are names of variables whose values are
    in the credentials. `memory_mib` is the limit the container lives under, for messages. `spread` names directories
    whose content is copied into the working directory. `yields` are words by variable: what follows them on a line of
    standard output is its value. `extend` are lists such as PATH, joined behind what the variable holds already.
    `port_range` is where its ports are taken from, as in the spec.
    """

    command: Union[str, Tuple[str, ...]]
    environment: Mapping[str, str] = field(default_factory=dict)
    fetches: Tuple[Fetch, ...] = ()
    directories: Tuple[str, ...] = ()
    """Made in the working directory before the program starts, where they are not there yet."""
    listed: Mapping[str, Tuple[str, ...]] = field(default_factory=dict)
    uploads: Tuple[Upload, ...] = ()
    feeds: Tuple[Feed, ...] = ()
    capture: Optional[StdoutOutput] = None
    ports: Tuple[str, ...] = ("main",)
    hold_ports: bool = False
    program_path: Tuple[str, ...] = ()
    secrets: Tuple[str, ...] = ()
    memory_mib: int = 0
    gpus: int = 0
    localise_s: float = 1800.0
    stall_s: float = 3600.0
    spread: Mapping[str, str] = field(default_factory=dict)
    yields: Mapping[str, str] = field(default_factory=dict)
    extend: Mapping[str, str] = field(default_factory=dict)
    mirror: Optional[CheckpointSyncOrder] = None
    board: Optional[EventFileSyncOrder] = None
    checks: CheckOrder = CheckOrder()
    port_range: str = ""


@dataclass(frozen=True)
class PreemptionNotice:
    """The container will be taken away: tell the program, once for each `number`, by `signal` (`URG`, `none`) and a
    file. `kind` is `preemption`, `decommission` or `unhealthy`; it has `within_s` seconds from now, 0: nobody knows."""

    number: int
    kind: str
    within_s: float
    text: str
    signal: str = "URG"


@dataclass(frozen=True)
class Orders:
    """The master's answer. `assignment` comes while the executor's phase is HELLO, `environment` and `files` with RUN.

    `<LOG_DIR>` in a variable of `environment` stands for the task's log directory, as YARN writes it; `files` are
    texts to have in the working directory, by name, when the program starts.

    `lease_s`: an executor that hears nothing from the master for this long stops its program and exits. `saves` are
    copies to make now; one that is not there any more is given up. `pairs` are to be tried before programs start.
    `keep`: the job has failed; upload what is to be kept then. `become` is whose executor it is from now on:
    `worker:3/2`, the second attempt of worker:3.
    """

    epoch: int
    goal: Goal
    assignment: Optional[Assignment] = None
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    stop_s: float = 10.0
    lease_s: float = 30.0
    log_requests: Tuple[LogRequest, ...] = ()
    saves: Tuple[SaveOrder, ...] = ()
    keep: bool = False
    become: str = ""
    notice: Optional[PreemptionNotice] = None
    pairs: Optional[PairOrder] = None

    @property
    def mark(self) -> str:
        """What an executor repeats in its status to say that it has these orders."""
        keep = (*(("keep",) if self.keep else ()), *((f"notice{self.notice.number}",) if self.notice else ()))
        pairs = ("pairs",) if self.pairs else ()
        return "/".join((str(self.epoch), self.goal.value, *keep, *pairs, *(str(save.number) for save in self.saves)))
