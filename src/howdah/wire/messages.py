"""The messages between master and executor: an executor posts its `Status`, the master answers with `Orders`.

Both describe a whole state, never a change: a message lost or sent twice does no harm, and a master that starts anew
learns everything from the next heartbeat. `epoch` is in both; orders of an older epoch are not obeyed. Messages are
built by keyword.
"""

from __future__ import annotations

import enum
from dataclasses import field
from typing import Mapping, Optional, Tuple, Union

from howdah.spec.codec import WIRE_NAME
from howdah.spec.message import Sentence
from howdah.spec.staged import Feed, Fetch
from howdah.spec.task import Exit
from howdah.spec.usage import Usage
from howdah.spec.values import dataclass

SEARCH, PROCESSES = "search", "processes"
"""Streams of a `LogRequest` that are not logs."""
NOT_HEARD, NOT_WANTED = 75, 76
"""Exit statuses of an executor that heard nothing from its master for the time of its lease, and of one that its master
does not want."""


class Phase(str, enum.Enum):
    """The progress of an executor. A new epoch leads from any later phase back to JOINED."""

    HELLO = "hello"
    LOCALISING = "localising"
    JOINED = "joined"
    RUNNING = "running"
    UPLOADING = "uploading"
    ENDED = "ended"


class Goal(str, enum.Enum):
    """What the master wants an executor to do."""

    JOIN = "join"
    """Join the epoch."""
    RUN = "run"
    """Run the program."""
    STOP = "stop"
    """End the program, and report its end."""
    LEAVE = "leave"
    """Exit."""
    REASSIGN = "become"
    """Become the executor of another attempt."""


@dataclass(frozen=True)
class LogChunk:
    """A piece of a stream, as the answer to a `LogRequest`."""

    request: int
    """Number of the request."""
    offset: int
    """Where the piece begins in the stream."""
    size: int
    """Length of the stream so far."""
    text: str = ""
    """The bytes as latin-1 text, so that any byte travels."""


@dataclass(frozen=True)
class SnapshotReport:
    """The progress of an ordered snapshot."""

    number: int
    """Number of the `SnapshotOrder`."""
    done: bool = False
    """The snapshot is complete, or there will be none."""
    problem: Sentence = ""
    """Why there is no snapshot."""
    files: int = 0
    """Files copied so far."""
    bytes: int = 0
    """Bytes copied so far."""
    total: int = 0
    """Bytes in the complete snapshot."""
    skipped: Tuple[Sentence, ...] = ()
    """Sentences about files that are left out."""


@dataclass(frozen=True)
class CheckReport:
    """What the pre-flight checks of a container have found."""

    epoch: int = 0
    """0 for the checks that the container makes alone; the epoch of an exchange in pairs."""
    seconds: float = 0.0
    """How long the checks took."""
    found: Tuple[Sentence, ...] = ()
    """Sentences about what was measured."""
    left_out: Tuple[Sentence, ...] = ()
    """Sentences about checks that could not be made."""
    passed: Tuple[str, ...] = ()
    """Tasks with which data was exchanged."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Tasks with which data could not be exchanged, and why."""


@dataclass(frozen=True)
class Status:
    """The whole state of an executor."""

    task: str
    """`worker:1`."""
    attempt: int
    """Which attempt of the task this is."""
    epoch: int
    """The epoch in which the executor is."""
    sequence: int
    """Grows with each message: the master ignores a status that is older than the one it has."""
    phase: Phase
    """How far the executor is."""
    host: str
    """The name by which others reach this node."""
    pid: int
    """The executor's own process."""
    python: str = ""
    """The executor's interpreter and its version."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """The reserved ports by name, once the executor has joined."""
    ip: str = ""
    """`host` in numbers; known with the ports."""
    data_files: int = 0
    """Input files that are here."""
    data_bytes: int = 0
    """Bytes of input files that are here."""
    data_seconds: float = 0.0
    """How long the input files took."""
    data_total_bytes: int = 0
    """Bytes of all input files of the task."""
    data_cached_bytes: int = 0
    """Bytes of input files that the node had before."""
    program_pid: int = 0
    """The program's process; 0 when there was none."""
    program_python: str = ""
    """The interpreter to which the program's `python3` leads."""
    program_gpus: Tuple[str, ...] = ()
    """The devices that the program was given, as CUDA_VISIBLE_DEVICES names them."""
    log_offset: Optional[int] = None
    """Bytes of both streams that had been printed when the program was started; None when there was no program."""
    usage: Usage = Usage()
    """What the program uses."""
    exit: Optional[Exit] = None
    """How the program ended; set when the phase is ENDED."""
    uploaded: Tuple[str, ...] = ()
    """URIs of the outputs that lie complete under this attempt's name."""
    kept: bool = False
    """The outputs of a failed job were uploaded as the orders ask by `keep`, or the upload was tried."""
    chunks: Tuple[LogChunk, ...] = ()
    """Answers to log requests."""
    orders_digest: str = field(default="", metadata={WIRE_NAME: "told"})
    """`Orders.digest` of the last orders that the executor has: while the orders stay the same, a long poll waits."""
    yields: Mapping[str, str] = field(default_factory=dict)
    """Values that the program has announced for later roles, by variable."""
    tracker_runs: Tuple[str, ...] = ()
    """Addresses of runs of experiment trackers that the program has printed."""
    snapshots: Tuple[SnapshotReport, ...] = field(default=(), metadata={WIRE_NAME: "saves"})
    """How far the ordered snapshots are."""
    requested_snapshots: int = field(default=0, metadata={WIRE_NAME: "asked_saves"})
    """How often this executor's programs have asked for a snapshot."""
    container: str = ""
    """The engine's name for the container."""
    idle_s: float = field(default=0.0, metadata={WIRE_NAME: "quiet_s"})
    """For how many seconds the program has shown no sign of progress."""
    pair_port: int = 0
    """The port at which other tasks exchange data with this one before programs start."""
    checks: Tuple[CheckReport, ...] = ()
    """What the pre-flight checks have found."""
    warnings: Tuple[Sentence, ...] = ()
    """Warnings about files of the program that could not be kept, and why."""


@dataclass(frozen=True)
class LogRequest:
    """A piece of the program's output, or something else about the program, that the master wants."""

    request: int
    """Number of the request; each is answered once."""
    stream: str
    """`stdout`, `stderr`, `both` (as they came), `times` (howdah.logs.stream_index); `search`; `processes` for the
    pids of the program's tree; `stacks` and `stacks-native`, which are taken when they are asked for."""
    offset: int
    """Where to begin; a negative one counts from the end."""
    limit: int
    """Bytes at most."""
    search: str = ""
    """For `search`: the query as JSON."""


@dataclass(frozen=True)
class Upload:
    """A directory to copy after the program has ended well."""

    source: str
    """The directory, below the working directory."""
    uri: str
    """Where it is uploaded: a directory of this attempt's own, not yet the output."""
    required: bool = False
    """Whether the job fails when the program made no such directory."""
    keep_failed: bool = False
    """Copy it also when the job has failed and the orders say `keep`."""


@dataclass(frozen=True)
class SnapshotOrder:
    """A snapshot to make beside the running program."""

    number: int
    """Counts the snapshots of the job."""
    source: str
    """The directory that the snapshot copies."""
    uri: str
    """Where the snapshot is written."""
    final: str
    """The URI of the finished snapshot."""
    previous: str = ""
    """Where this task's part of an earlier snapshot is; with "" everything is copied."""
    limit_s: float = 3600.0
    """Limit in seconds."""


@dataclass(frozen=True)
class StdoutOutput:
    """An output made of what the program prints to its standard output."""

    uri: str
    """The directory of part files, this attempt's own."""
    name: str
    """The beginning of the names of the part files."""
    output: str
    """The output that the part files are for; for messages."""
    format: str = "text"
    """How the records are written."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the format."""


@dataclass(frozen=True)
class CheckpointSyncOrder:
    """A local directory of checkpoints, fetched before the program starts and stored while it runs."""

    path: str
    """The local directory, below the working directory."""
    uri: str
    """The directory on the shared file system."""
    every_s: float = 30.0
    """Seconds between two copies."""
    writes: bool = True
    """This task stores checkpoints."""
    replaces: bool = True
    """This task may replace files that other tasks have stored."""
    is_alone: bool = True
    """No other task stores checkpoints there."""
    valid: str = ""
    """The rule for valid checkpoints, as in the job."""


@dataclass(frozen=True)
class EventFileSyncOrder:
    """A local directory of event files, stored while the program writes them."""

    path: str
    """The local directory, below the working directory."""
    uri: str = ""
    """Where the files go; "" sends them nowhere."""
    every_s: float = 10.0
    """Seconds between two copies."""
    job: str = ""
    """The job's id, under which earlier files are kept; "" keeps nothing."""
    since_ms: int = 0
    """When the job was submitted, in epoch milliseconds: only older files are kept; 0 when not known."""


@dataclass(frozen=True)
class CheckOrder:
    """The checks that a container makes before it joins."""

    checks: Tuple[str, ...] = ()
    """Names of checks (howdah.spec.preflight)."""
    disk_mib: int = 0
    """Free disk that is wanted."""
    limit_s: float = 120.0
    """Limit in seconds."""
    pairs: bool = False
    """Other tasks will want to exchange data with this one."""


@dataclass(frozen=True)
class Partner:
    """A task to exchange data with."""

    task: str
    """`worker:1`."""
    host: str
    """The partner's host."""
    port: int
    """The port at which the partner listens."""
    listens: bool
    """The partner listens, and this task connects; otherwise the other way round."""


@dataclass(frozen=True)
class PairOrder:
    """An exchange of data with one partner after another."""

    epoch: int
    """The epoch of the exchange."""
    rounds: Tuple[Optional[Partner], ...]
    """The partner of each round; None for a round without one."""
    limit_s: float = 120.0
    """Limit in seconds for all rounds together."""


@dataclass(frozen=True)
class ImageCheck:
    """The signs by which an executor finds out whether its engine runs it in the image."""

    mounted: Tuple[str, ...]
    """Variables with directories, separated by commas: in a container one of them is mounted, or the working directory
    is; on the node itself none is."""
    outside: str
    """A word in the command line of a process that is an ancestor of the executor on the node itself."""
    not_used: Sentence
    """The sentence for an image that is not used."""
    unknown: Sentence
    """The sentence for the case that no sign decides it."""


@dataclass(frozen=True)
class ImageOrder:
    """The container image of a task."""

    image: str
    """The name of the image, or its path on the node when it begins with `/` or `.`."""
    mounts: Tuple[str, ...] = ()
    """Mounts of the container: `/on/the/node:/in/the/container:ro`."""
    tool: str = ""
    """`podman`, `docker` or `apptainer`; with "" the first of them that the node has."""
    check: Optional[ImageCheck] = None
    """Set if the engine runs the executor itself in the image; otherwise the executor runs its program in it."""


@dataclass(frozen=True)
class Assignment:
    """What an executor does in this container, the same for all its epochs."""

    command: Union[str, Tuple[str, ...]]
    """A line for a shell, or the words of a command."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables known beforehand (the job's and the role's); the variables of the world come with the order to run."""
    fetches: Tuple[Fetch, ...] = ()
    """Input files."""
    directories: Tuple[str, ...] = ()
    """Directories to make in the working directory, unless they exist."""
    placeholder_uris: Mapping[str, Tuple[str, ...]] = field(default_factory=dict, metadata={WIRE_NAME: "listed"})
    """URIs that the program reads by itself, by the name of their input."""
    uploads: Tuple[Upload, ...] = ()
    """Outputs."""
    feeds: Tuple[Feed, ...] = ()
    """Input streams."""
    stdout_output: Optional[StdoutOutput] = field(default=None, metadata={WIRE_NAME: "capture"})
    """The output that is made of the program's standard output."""
    ports: Tuple[str, ...] = ("main",)
    """Names of the ports to reserve."""
    hold_ports: bool = False
    """Keep the reserved sockets open while the program runs (it sets SO_REUSEADDR or SO_REUSEPORT); otherwise release
    them right before it starts."""
    program_path: Tuple[str, ...] = ()
    """Directories that go first on PATH."""
    secrets: Tuple[str, ...] = ()
    """Names of variables whose values are in the credentials."""
    memory_mib: int = 0
    """The container's memory limit."""
    gpus: int = 0
    """GPUs of the task."""
    localise_s: float = 1800.0
    """Limit for moving files in and out."""
    stall_s: float = 3600.0
    """Limit for an input or output stream on which nothing moves."""
    unpack_into_workdir: Mapping[str, str] = field(default_factory=dict, metadata={WIRE_NAME: "spread"})
    """Directories whose content is copied into the working directory, each with its target there."""
    yields: Mapping[str, str] = field(default_factory=dict)
    """Words by variable: the text after the words on a line of standard output is the variable's value."""
    extend: Mapping[str, str] = field(default_factory=dict)
    """Lists such as PATH that are appended to the present value of the variable."""
    checkpoint_sync: Optional[CheckpointSyncOrder] = field(default=None, metadata={WIRE_NAME: "mirror"})
    """How the program's checkpoints are fetched and stored."""
    event_file_sync: Optional[EventFileSyncOrder] = field(default=None, metadata={WIRE_NAME: "board"})
    """How the program's event files are stored."""
    checks: CheckOrder = CheckOrder()
    """The checks before the executor joins."""
    port_range: str = ""
    """Where the ports are taken from, as in the job."""
    image: Optional[ImageOrder] = None
    """The image that the task runs in; None: it runs in none."""

    def synced_directories(self) -> list[str]:
        """Return the directories, in the working directory, of checkpoints and event files."""
        return [sync.path for sync in (self.checkpoint_sync, self.event_file_sync) if sync is not None]


@dataclass(frozen=True)
class PreemptionNotice:
    """A warning for the program that its container will be taken away."""

    number: int
    """Counts the notices; the program gets each number once."""
    kind: str
    """`preemption`, `decommission` or `unhealthy`."""
    within_s: float
    """Seconds from now until the container goes; 0 when this is not known."""
    text: Sentence
    """A sentence for people."""
    signal: str = "URG"
    """The signal that notifies the program; `none` sends no signal."""


@dataclass(frozen=True)
class Orders:
    """Everything that the master wants of an executor."""

    epoch: int
    """The job's epoch."""
    goal: Goal
    """What the executor is to do."""
    assignment: Optional[Assignment] = None
    """What the executor does in this container; sent while its phase is HELLO."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the world, sent with RUN. `<LOG_DIR>` in a value stands for the task's log directory, as YARN
    writes it."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts by file name, to write to the working directory before the program starts; sent with RUN."""
    stop_s: float = 10.0
    """Seconds between TERM and KILL."""
    lease_s: float = 30.0
    """Seconds without an answer from the master after which the executor stops its program and exits."""
    log_requests: Tuple[LogRequest, ...] = ()
    """Pieces of logs to send."""
    snapshots: Tuple[SnapshotOrder, ...] = field(default=(), metadata={WIRE_NAME: "saves"})
    """Snapshots to make now; a snapshot that is no longer in the orders is given up."""
    keep: bool = False
    """The job has failed: upload the outputs that are kept in this case."""
    reassign_to: str = field(default="", metadata={WIRE_NAME: "become"})
    """With REASSIGN, the attempt whose executor this one becomes; `worker:3/2` is the second attempt of worker:3."""
    notice: Optional[PreemptionNotice] = None
    """A warning to pass on to the program."""
    pairs: Optional[PairOrder] = None
    """Exchange data with these tasks before programs start."""
    relay: int = 0
    """The number of the latest request for a relay process; it only grows. 0: there was none."""

    @property
    def digest(self) -> str:
        """Return the digest that an executor repeats in its status to show that it has these orders."""
        keep = (*(("keep",) if self.keep else ()), *((f"notice{self.notice.number}",) if self.notice else ()))
        pairs = (*(("pairs",) if self.pairs else ()), *((f"relay{self.relay}",) if self.relay else ()))
        return "/".join(
            (str(self.epoch), self.goal.value, *keep, *pairs, *(str(save.number) for save in self.snapshots))
        )
