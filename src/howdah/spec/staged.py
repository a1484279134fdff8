"""The values between a JobSpec and a running master: staged files, the plan, and an engine's report."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any, Mapping, Tuple

from howdah.spec.codec import WIRE_NAME
from howdah.spec.job import JobSpec
from howdah.spec.provenance import Submission
from howdah.spec.task import State
from howdah.spec.values import dataclass

PY_SPY = "howdah-py-spy"
"""The name of the program that dumps stacks, in a container's working directory."""
RUNTIME = "howdah-runtime"
"""The directory in a container that holds howdah itself, with what it needs."""
MODULES = "lib/python/site/packages"
"""The directory in it from which Python imports. A NodeManager lists five levels of a container's directory, twice,
before it starts anything. A thousand files deeper down cost no time at a start."""
IMPORT_PATH = f"{RUNTIME}/{MODULES}"
"""Where a container imports howdah from, as seen from its working directory."""

PAGE = "howdah-page"
"""The directory in the master's container that holds the files of its page."""
PYTHON_ARCHIVE = "howdah-python"
"""The directory in a container that holds the Python which runs howdah, where nodes have none."""
CONF_NAME = "howdah-conf/core-site.xml"
"""The file in a container that holds the configuration of the job's Hadoop."""
HOWDAHS_OWN = (PY_SPY, RUNTIME, PAGE, PYTHON_ARCHIVE, CONF_NAME.partition("/")[0])
"""The entries of a container's working directory that belong to howdah itself."""
HOWDAHS_FILES = re.compile(
    r"\.howdah-(started|layers|preflight-\d+|mpi|master-\w+|part-[0-9a-f]+|copy-[0-9a-f]+|before-.+|"
    r"mirror\.(json|tmp)|empty-directories\.json|unfinished|replacing|lease)"
)
"""The names of files that howdah itself makes among a program's files. Any other name with this beginning is the
program's."""


@dataclass(frozen=True)
class StagedFile:
    """A file that containers have in their working directory."""

    name: str
    """The name in the working directory."""
    uri: str
    """Where the containers get it from."""
    kind: str = "file"
    """`file`, `archive` (unpacked into a directory of that name), or `spread` (unpacked in the same way, then its
    content is copied by the executor into the working directory)."""
    source: str = ""
    """The path on the submitting machine; "" when the file is on the cluster already."""
    sha256: str = ""
    """The hash of the content; "" when it is not known."""
    size: int = 0
    """The size of the file at `uri`, in bytes; whoever uploads it fills it in."""
    modified_ms: int = 0
    """The time of the last change of the file at `uri`, in epoch milliseconds; whoever uploads it fills it in."""
    into: str = ""
    """The directory into which the content of a `spread` archive is copied; "" for the working directory itself."""
    roles: Tuple[str, ...] = ()
    """The roles whose containers have the file; empty for all."""


@dataclass(frozen=True)
class DataFile:
    """One file of an input."""

    uri: str
    """Where the file is."""
    name: str
    """Its path below the input's directory."""
    size: int = 0
    """Its size in bytes."""
    modified_ms: int = 0
    """When it last changed, in epoch milliseconds; 0 when not known."""
    etag: str = ""
    """The mark that an object store gives its content."""
    cuts: Tuple[int, ...] = ()
    """The offsets at which the second and later splits of a streamed file begin."""
    where: Tuple[Tuple[int, ...], ...] = ()
    """For each split of a streamed file the nodes that hold it, as positions in the input's `hosts`."""
    is_shipped: bool = False
    """One of the job's `files` puts this very file into the working directory under the same name."""


@dataclass(frozen=True)
class Fetch:
    """Files to have below `to` before the program starts."""

    to: str
    """The directory in the task's working directory."""
    files: Tuple[DataFile, ...]
    """The files."""
    cache: bool = False
    """The node keeps the files for the next task that needs them."""
    executable: bool = False
    """Whether the files may be executed, whatever their mode on HDFS is: files that YARN itself brings to a container
    may be."""
    empty: Tuple[str, ...] = ()
    """The names of empty directories."""


@dataclass(frozen=True)
class Split:
    """Bytes of a file for one task: the records that begin in them, as in Hadoop."""

    uri: str
    """Where the file is."""
    start: int
    """The offset of the first byte."""
    length: int
    """The number of bytes."""
    hosts: Tuple[str, ...] = ()
    """The nodes that hold these bytes."""
    size: int = -1
    """The size of the whole file in bytes; -1 when not known."""
    modified_ms: int = 0
    """When the file last changed, in epoch milliseconds; 0 when not known."""
    etag: str = ""
    """The mark that an object store gives the file's content; "" when not known."""


@dataclass(frozen=True)
class Feed:
    """An input that one task reads on its standard input."""

    number: int
    """The number of the input in the job."""
    splits: Tuple[Split, ...]
    """The splits that the task reads."""
    format: str = "text"
    """The input's record format."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options of the format."""
    epochs: int = 1
    """How often the task reads the input."""
    shuffle: bool = False
    """The records come in random order."""
    window: int = 0
    """The number of records among which a record is shuffled."""
    seed: int = 0
    """The seed of the random order."""


@dataclass(frozen=True)
class StagedInput:
    """An input whose files are known."""

    to: str
    """The directory in the task's working directory."""
    files: Tuple[DataFile, ...]
    """All files of the input."""
    roles: Tuple[str, ...] = ()
    """The roles that get the input; empty for all."""
    share: str = "split"
    """How the tasks of a role share the files; see `Input.share`."""
    uploads: Mapping[str, str] = field(default_factory=dict)
    """The path on the submitting machine of each file that must still be uploaded, by URI."""
    hosts: Tuple[str, ...] = ()
    """The nodes that hold blocks of files to be streamed."""
    empty: Tuple[str, ...] = ()
    """The names of empty directories of the input; each task gets them."""


@dataclass(frozen=True)
class StagedJob:
    """A job whose every file has a place. This, as JSON, is what the master starts from (`job.json`)."""

    job: JobSpec
    """The spec; its outputs hold absolute URIs."""
    home: str
    """The URI below which howdah keeps jobs and its cache."""
    files: Tuple[StagedFile, ...] = ()
    """The files that go to the containers."""
    inputs: Tuple[StagedInput, ...] = ()
    """The inputs, listed and checked: first the job's own, then directories of the cluster that its `files` name."""
    runtime: Tuple[StagedFile, ...] = ()
    """The files of howdah itself with what it needs; empty on this machine."""
    page: Tuple[StagedFile, ...] = ()
    """The files that only the master has: its page."""
    python: str = "python3"
    """The Python interpreter that runs master and executors."""
    program_path: Tuple[str, ...] = ()
    """Directories that come first on the programs' PATH."""
    user: str = ""
    """The user who submits the job."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The user's settings, by name."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where each setting came from, for people."""
    submission: Submission = Submission()
    """The submitter's record of the submission."""
    node_penalties: Mapping[str, float] = field(default_factory=dict, metadata={WIRE_NAME: "strikes"})
    """The penalty of each node for failures in earlier jobs (`howdah.engines.node_penalties`)."""

    def files_of(self, role: str) -> Tuple[StagedFile, ...]:
        """Return the entries of `files` that a container of this role has."""
        return tuple(file for file in self.files if not file.roles or role in file.roles)


@dataclass(frozen=True)
class Plan:
    """What `submit` will do, complete: printing it is the dry run."""

    engine: str
    """The name of the engine."""
    job: StagedJob
    """The job with all of its staged files."""
    request: Mapping[str, Any] = field(default_factory=dict)
    """The engine's own part, which can be written as JSON."""


@dataclass(frozen=True)
class JobReport:
    """A job as its engine sees it from outside. Moments are epoch seconds, 0 when not yet."""

    id: str
    """The job's id."""
    name: str
    """The job's name."""
    state: State
    """The job's state."""
    engine: str
    """The name of the engine."""
    user: str = ""
    """The user who submitted the job."""
    queue: str = ""
    """The queue in which it runs."""
    submitted: float = 0.0
    """When it was submitted."""
    started: float = 0.0
    """When its master started."""
    finished: float = 0.0
    """When it ended."""
    progress: float = 0.0
    """The job's progress, 0 to 1."""
    diagnostics: str = ""
    """An explanation of the job's state, for people."""
    master: str = ""
    """The base URL of the master's API; "" when there is none."""
    tracking_url: str = ""
    """The page that the engine shows for the job."""
    directory: str = ""
    """The URI of the job's own directory: `events.jsonl` (the event log), `job.json` and, where file modes protect it,
    `key`."""
    conf_dir: str = ""
    """The Hadoop configuration that knows the file system of the directory."""
    tags: Tuple[str, ...] = ()
    """The job's tags: those that people gave it later, else those of its job file as far as the engine knows them."""
    note: str = ""
    """The note that people gave the job."""
    archived: bool = False
    """Lists leave the job out unless they are asked for it."""
