"""What lies between a JobSpec and a running master: staged files, the plan, and an engine's report."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Mapping, Tuple

from howdah.spec.job import JobSpec
from howdah.spec.provenance import Submission
from howdah.spec.task import State
from howdah.spec.values import dataclass

PY_SPY = "howdah-py-spy"
"""The program that takes stacks, in a container's working directory."""
RUNTIME = "howdah-runtime"
"""Directory in a container in which howdah itself is, with what it needs."""

PAGE = "howdah-page"
"""Directory in the master's container in which the files of its page are."""


@dataclass(frozen=True)
class StagedFile:
    """A file that every container has in its working directory as `name`.

    `source` is the path on the submitting machine ("" when it is on the cluster already), `uri` where the
    containers get it from. `kind` is `file`, `archive` (unpacked into a directory of that name), or `spread` (an
    archive, unpacked so, whose content the executor then copies into the working directory, or its directory `into`).
    `size` (bytes) and `modified_ms` (epoch milliseconds) describe what is at `uri`; who uploads fills them in. `roles`
    are those whose containers have it, all where it is empty.
    """

    name: str
    uri: str
    kind: str = "file"
    source: str = ""
    sha256: str = ""
    size: int = 0
    modified_ms: int = 0
    into: str = ""
    roles: Tuple[str, ...] = ()


@dataclass(frozen=True)
class DataFile:
    """One file of an input: where it is, its path below the input's directory, its size in bytes, the time of its last
    change (epoch milliseconds, 0: not known) and the mark an object store gives its content.

    Of a file to be streamed also `cuts`, the offsets at which its second and later splits begin, and `where`: for each
    split the nodes that hold it, by their place in the input's `hosts`.
    """

    uri: str
    name: str
    size: int = 0
    modified_ms: int = 0
    etag: str = ""
    cuts: Tuple[int, ...] = ()
    where: Tuple[Tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Fetch:
    """Files to have below `to` before the program starts."""

    to: str
    """Directory in the task's working directory."""
    files: Tuple[DataFile, ...]
    cache: bool = False
    """The node keeps them for whoever is next."""
    executable: bool = False
    """They may be executed, as what YARN itself brings to a container may be, whatever their mode on HDFS is."""


@dataclass(frozen=True)
class Split:
    """Bytes of a file for one task: the records that begin in them, as Hadoop has it. `hosts` hold them.

    `size`, `modified_ms` and `etag` are the whole file's, as those of `DataFile`; -1, 0 and "" when not known.
    """

    uri: str
    start: int
    length: int
    hosts: Tuple[str, ...] = ()
    size: int = -1
    modified_ms: int = 0
    etag: str = ""


@dataclass(frozen=True)
class Feed:
    """An input that one task reads on its standard input; the fields are those of `Input`, which is the job's
    `number`th."""

    number: int
    splits: Tuple[Split, ...]
    format: str = "text"
    options: Mapping[str, str] = field(default_factory=dict)
    epochs: int = 1
    shuffle: bool = False
    window: int = 0
    seed: int = 0


@dataclass(frozen=True)
class StagedInput:
    """An input whose files are known. `source` of a file still to be uploaded is in `uploads` (source path by URI);
    `hosts` are nodes that hold blocks of files to be streamed."""

    to: str
    files: Tuple[DataFile, ...]
    roles: Tuple[str, ...] = ()
    share: str = "split"
    uploads: Mapping[str, str] = field(default_factory=dict)
    hosts: Tuple[str, ...] = ()


@dataclass(frozen=True)
class StagedJob:
    """A job whose every file has a place. This, as JSON, is what the master starts from (`job.json`).

    `inputs` are listed and checked; the outputs of `job` hold absolute URIs. `files` go to the containers, `runtime`
    is howdah itself with what it needs (empty on this machine), `page` what the master alone has besides. `home` is the
    URI below which howdah keeps jobs and its cache. `strikes` is what is held against nodes
    (`howdah.engines.node_penalties`). Behind the job's own `inputs` come the directories of the cluster that its
    `files` name. `python` is the interpreter that runs master and executors, `program_path` what is put first on the
    programs' PATH. `sources` says where each setting came from, for people.
    """

    job: JobSpec
    home: str
    files: Tuple[StagedFile, ...] = ()
    inputs: Tuple[StagedInput, ...] = ()
    runtime: Tuple[StagedFile, ...] = ()
    page: Tuple[StagedFile, ...] = ()
    python: str = "python3"
    program_path: Tuple[str, ...] = ()
    user: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    submission: Submission = field(default_factory=Submission)
    strikes: Mapping[str, float] = field(default_factory=dict)

    def files_of(self, role: str) -> Tuple[StagedFile, ...]:
        """What a container of this role has of `files`."""
        return tuple(file for file in self.files if not file.roles or role in file.roles)


@dataclass(frozen=True)
class Plan:
    """What `submit` will do, complete: printing it is the dry run. `request` is the engine's own part, JSON-ready."""

    engine: str
    job: StagedJob
    request: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobReport:
    """What an engine knows of a job from outside. Times are epoch seconds, 0 when not yet.

    `master` is the base URL of the master's API ("" when there is none), `directory` the URI of the job's own
    directory: `events.jsonl` (the event log), `key` (0600), `job.json`; `conf_dir` the Hadoop configuration that knows
    its file system.
    """

    id: str
    name: str
    state: State
    engine: str
    user: str = ""
    queue: str = ""
    submitted: float = 0.0
    started: float = 0.0
    finished: float = 0.0
    progress: float = 0.0
    diagnostics: str = ""
    master: str = ""
    tracking_url: str = ""
    directory: str = ""
    conf_dir: str = ""
