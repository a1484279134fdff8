"""Requests to the helper processes beside an executor, and their replies (see `howdah.wire.helper_main`).

Requests that only a master sends are declared in the module that answers them.
"""

from __future__ import annotations

from dataclasses import field
from typing import List, Mapping, Optional, Tuple

from howdah.spec.message import Sentence
from howdah.spec.prepared_directories import PreparedDirectories
from howdah.spec.staged import Feed
from howdah.spec.values import dataclass
from howdah.wire.messages import StdoutOutput

# howdah.inputs.transfer


@dataclass(frozen=True)
class FileCopy:
    """One file that is downloaded or uploaded."""

    path: str
    """Path on this machine."""
    uri: str
    """URI on the other file system."""
    size: int = -1
    """Bytes the remote file must have; -1 allows any size."""
    modified_ms: int = 0
    """Modification time the remote file must have, in epoch milliseconds; 0 allows any."""
    etag: str = ""
    """Entity tag the remote file must have; "" allows any."""
    cache: bool = False
    """The node keeps the file in its cache."""


@dataclass(frozen=True)
class DownloadRequest:
    """Download files."""

    items: Tuple[FileCopy, ...]
    """The files."""


@dataclass(frozen=True)
class DownloadReply:
    """The result of a download."""

    files: int
    """Number of files that are in place."""
    bytes: int
    """Size of these files in bytes."""
    cached: int = 0
    """The part of `bytes` that was in the node's cache."""


@dataclass(frozen=True)
class UploadItem:
    """One directory that is uploaded."""

    path: str
    """The directory on this machine."""
    uri: str
    """The directory on the other file system."""
    root: str = ""
    """The task's working directory; no link may lead out of it."""
    inputs: Tuple[str, ...] = ()
    """Files outside of `root` to which links may lead nevertheless: the task's inputs."""
    since_ns: int = 0
    """A time of the file system; only files that have changed since then are uploaded. 0: all files are."""
    others: Tuple[str, ...] = ()
    """Names in `path` that are not the program's."""
    prepared: PreparedDirectories = PreparedDirectories()
    """Directories in `path` that were there before the program."""


@dataclass(frozen=True)
class UploadRequest:
    """Upload directories."""

    items: Tuple[UploadItem, ...]
    """The directories."""


@dataclass(frozen=True)
class UploadReply:
    """The result of an upload."""

    files: int
    """Number of files."""
    bytes: int
    """Size of these files in bytes."""
    empty: List[str]
    """Directories in which there was no file."""
    left_out: List[str]
    """A line for each file that was not uploaded, and why."""


# howdah.outputs.snapshot


@dataclass(frozen=True)
class CopyPartRequest:
    """Copy one task's part of an output while its program runs."""

    path: str
    """The directory that is copied."""
    uri: str
    """Where the snapshot is written."""
    final: str
    """The URI of the snapshot once all tasks' parts are complete."""
    root: str = ""
    """The task's working directory; no link may lead out of it."""
    previous: str = ""
    """This part in an earlier snapshot, whose unchanged files are not copied again; "" copies everything."""
    settle_s: Optional[float] = None
    """Seconds for which a file must not have changed; None stands for the default."""


@dataclass(frozen=True)
class CopyPartReply:
    """The result of copying a part."""

    files: int
    """Number of files copied."""
    bytes: int
    """Size of these files in bytes."""
    kept: int
    """Number of files in the snapshot, including those of earlier snapshots."""
    skipped: List[str]
    """A line for each file that was not copied, and why."""


# howdah.checkpoints.directory_sync


@dataclass(frozen=True)
class FetchCheckpointRequest:
    """Fetch a checkpoint from the shared file system before a program starts."""

    path: str
    """The directory of checkpoints on this machine."""
    uri: str
    """The directory of checkpoints on the shared file system."""
    root: str = ""
    """The task's working directory; no link may lead out of it."""
    resume: str = ""
    """URI of the checkpoint; "" when there is none."""
    valid: str = ""
    """The job's rule for valid checkpoints (`checkpoint.valid`)."""


@dataclass(frozen=True)
class StoreCheckpointsRequest:
    """Store what a program has written to its directory of checkpoints since the last time."""

    path: str
    """The directory of checkpoints on this machine."""
    uri: str
    """The directory of checkpoints on the shared file system."""
    root: str = ""
    """The task's working directory; no link may lead out of it."""
    replace: bool = True
    """Replace and remove files on the shared file system that this task has not written."""
    is_alone: bool = True
    """No other task stores checkpoints there, so this task has all files of each checkpoint."""
    settle_s: float = 5.0
    """Seconds for which a file must not have changed."""
    last: bool = False
    """The program has ended: store at full speed."""
    valid: str = ""
    """The rule for valid checkpoints, as in the job."""


@dataclass(frozen=True)
class DirectorySyncReply:
    """The result of fetching or storing a directory."""

    files: int
    """Number of files."""
    bytes: int
    """Size of these files in bytes."""
    skipped: List[str]
    """A line for each file that was left alone, and why."""
    is_unfinished: bool = False
    """The last copy to the directory that was fetched had broken off."""
    told: Tuple[Sentence, ...] = ()
    """Sentences about files that could not be fetched, and about files that were replaced and are kept."""


# howdah.checkpoints.event_file_sync


@dataclass(frozen=True)
class EventFileSyncRequest:
    """Send what a program has written to its event files since the last time."""

    path: str
    """The directory of event files on this machine."""
    uri: str
    """The directory on the shared file system."""
    sent: Mapping[str, List[int]] = field(default_factory=dict)
    """Size and modification time (ns) of each file that was sent before, by its name below `path`."""
    last: bool = False
    """The program has ended: send at full speed."""
    job: str = ""
    """The job's id, under which a file is kept that the job did not write and now replaces; "" keeps none."""
    since_ms: int = 0
    """When the job was submitted, in epoch milliseconds: only older files are kept; 0 when not known."""


@dataclass(frozen=True)
class EventFileSyncReply:
    """The files that have been sent by now."""

    sent: Mapping[str, List[int]]
    """As in the request, brought up to date."""
    error: str = ""
    """Why not everything was sent; "" when everything was."""
    told: Sentence = ""
    """A sentence about files that were replaced and are kept; "" when there are none."""


# howdah.inputs.streaming.stdin_feeder


@dataclass(frozen=True)
class FeedRequest:
    """Write the records of a task's splits into its program's stdin."""

    feeds: Tuple[Feed, ...]
    """The splits and their format."""
    to: int
    """Descriptor of the pipe that is the program's stdin."""
    task: str
    """The task, for messages."""
    host: str
    """The names of this machine in block locations."""
    directory: str
    """The program's directory, from which record readers of users are imported."""
    stall_s: float
    """Seconds after which a program that reads nothing has stalled; 0 waits forever."""


@dataclass(frozen=True)
class FeedReply:
    """The position in the program's input."""

    bytes: int
    """Bytes of input that were given to the program."""
    local: int
    """The part of `bytes` that was read from this machine's disks."""
    progress: Optional[float]
    """Share of the input (0..1); None for input without end."""
    starved_s: float
    """Seconds for which the pipe was empty."""
    closed: bool = False
    """The program closed its stdin before the end."""


# howdah.outputs.stdout_writer


@dataclass(frozen=True)
class StdoutWriterRequest:
    """Write the program's standard output to a part file of an output."""

    output: StdoutOutput
    """The part file."""
    source: int
    """Descriptor from which the program's stdout is read."""
    verdict: int
    """Descriptor from which one byte comes when the program has ended well."""
    directory: str
    """The program's directory, from which record writers of users are imported."""
    stall_s: float
    """Seconds after which a file system that takes nothing has stalled; 0 waits forever."""


@dataclass(frozen=True)
class StdoutWriterReply:
    """The standard output of the program."""

    bytes: int
    """Number of bytes."""
    tail: str
    """The last bytes, in latin-1."""
    error: str = ""
    """Why the bytes are in no part file; "" when they are."""


# howdah.executor.gpu.sampler


@dataclass(frozen=True)
class GpuSamplerRequest:
    """Sample GPUs until killed."""

    ids: Tuple[str, ...]
    """Numbers or UUIDs of the GPUs; () stands for all."""
    period_s: float = 2.0
    """Seconds between two samples."""


# howdah.executor.diagnostics.stack_dump


@dataclass(frozen=True)
class StackDumpRequest:
    """Dump the stacks of a program's processes."""

    pids: Tuple[int, ...]
    """The processes."""
    tool: str
    """Path of py-spy; "" where there is none."""
    native: bool
    """Dump native frames as well."""
    secrets: Tuple[str, ...]
    """Texts that the dump must not show."""


@dataclass(frozen=True)
class StackDumpReply:
    """The stacks of the processes."""

    text: str
    """A paragraph for each process."""


# howdah.executor.image_fetch


@dataclass(frozen=True)
class ImageFetchRequest:
    """Bring a container image to this node."""

    tool: str
    """Path of podman, docker or apptainer."""
    image: str
    """The image as the job names it."""
    path: str
    """Path of an image that is a file or directory of this node; "" for one that has a name."""


@dataclass(frozen=True)
class ImageFetchReply:
    """What the node's tool needs to run the image."""

    words: Tuple[str, ...]
    """The words that name the image to the tool."""
    rootless: bool
    """Whether the tool is a Docker without root rights, in which root is this user."""


# howdah.executor.relay.relay_process


@dataclass(frozen=True)
class RelayRequest:
    """Serve the relay of one attempt of a task until nothing has used it for a while."""

    principal: str
    """The name by which the executor signs."""
    key: str
    """The executor's key in hexadecimal."""
    host: str
    """The name by which others reach this node."""
    context_fd: int
    """The open file, inherited, in which the executor keeps the CommandContext as JSON."""


@dataclass(frozen=True)
class CommandContext:
    """The address of the master, and how a command is run in the same way as the task's program."""

    master: str
    """The host and the port of the master."""
    variables: Mapping[str, str]
    """The program's variables."""
    directory: str
    """The program's working directory."""
    image_words: Tuple[str, ...] = ()
    """The words that run a command in the container of the program's image; () for a program without an image."""
    terminal_option: str = ""
    """The option for a terminal, which is inserted after the first two of `image_words`; "" for none."""
    image_variables: Mapping[str, str] = field(default_factory=dict)
    """The variables of the tool that runs the image."""
    private: str = ""
    """A directory that only this user may read, and that has the same path in the container."""
