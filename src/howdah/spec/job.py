"""What a user asks for: a job is roles × replicas × resources × command, with its data and its environment.

Units are in the names. A JobSpec can be built wrong; `howdah.spec.check.mistakes` says everything that is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple, Union

# How people write a key, where it differs from the field: the unit is in their value ("2GiB", "10min").
ALIASES = {
    "memory_mib": "memory",
    "source": "from",
    "gang_s": "gang",
    "hold_s": "hold",
    "localise_s": "localise",
    "run_s": "run",
    "stop_s": "stop",
}


@dataclass(frozen=True)
class Resources:
    """What one container of a role gets."""

    memory_mib: int = 1024
    """Memory, as `2GiB`, `512MiB`, or a number of MiB."""
    vcores: int = 1
    """Virtual cores."""
    gpus: int = 0
    """Whole GPUs, each used by this container alone."""
    named: Mapping[str, int] = field(default_factory=dict)
    """Any other resource type the cluster knows, by its name: `{yarn.io/fpga: 1}`."""


@dataclass(frozen=True)
class Role:
    """One kind of task. `command` is a shell line (text) or an argument vector (list); it is kept byte for byte."""

    command: Union[str, Tuple[str, ...]] = ""
    """What each task runs: a shell line, or a list of arguments run without a shell."""
    replicas: int = 1
    """How many tasks of this role."""
    resources: Resources = field(default_factory=Resources)
    """Memory, cores, GPUs of each task."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of this role, over the job's."""
    node_label: str = ""
    """Run only on nodes that carry this label."""
    tracked: Optional[bool] = None
    """Whether the job waits for this role's tasks to end. Unset: as the framework says (a `ps` is not waited for)."""
    on_failure: str = ""
    """`fail` the job (or use up one of its retries), or `ignore`. Unset: as the framework says."""
    ports: Tuple[str, ...] = ()
    """Extra ports to reserve, by name: `tensorboard` arrives as HOWDAH_PORT_TENSORBOARD."""


@dataclass(frozen=True)
class Input:
    """Files each task finds below `to` in its working directory when it starts."""

    path: Union[str, Tuple[str, ...]]
    """Where the data is: files, directories, globs. On a cluster a path without scheme is on its file system;
    a relative one is looked for beside the job file first, and uploaded."""
    to: str = "input"
    """Directory in the task's working directory; several inputs may share one."""
    roles: Tuple[str, ...] = ()
    """The roles that get it. Empty: every role but those that hold no data (`ps`, `evaluator`)."""
    share: str = "split"
    """`split` deals the files to a role's tasks round-robin; `all` gives every task every file."""


@dataclass(frozen=True)
class Output:
    """A directory the tasks write, kept when the job succeeds: moved to `path` once, by one rename."""

    path: str
    """Where it goes. One that exists already is refused before anything starts, unless `overwrite`."""
    source: str = "output"
    """Directory in the task's working directory."""
    tasks: str = ""
    """`worker:0` or `chief` uploads alone, straight into `path`. Empty: every task, each below its own name."""
    overwrite: bool = False
    """Replace what is at `path`."""


@dataclass(frozen=True)
class Environment:
    """The Python (and more) the commands run in; at most one of the three, else the node's own."""

    python: str = ""
    """An interpreter that the nodes have, by path."""
    archive: str = ""
    """A packed venv, conda environment or pex: shipped, unpacked on each node once, put first on PATH."""
    requirements: str = ""
    """A requirements file: made into an environment once per content, here, and shipped where it must be."""


@dataclass(frozen=True)
class Timeouts:
    """Limits of the waits, in seconds; people write `30s`, `10min`, `2h`."""

    gang_s: float = 3600.0
    """All containers must be granted and joined within this."""
    hold_s: float = 60.0
    """An incomplete gang gives its containers back after this long without a new one, and asks again later."""
    localise_s: float = 1800.0
    """Files and data of a task must be in place within this."""
    run_s: float = 0.0
    """The job's whole running time; 0 means without limit."""
    stop_s: float = 10.0
    """Between asking a program to stop (TERM) and killing it."""


@dataclass(frozen=True)
class JobSpec:
    """A whole job."""

    roles: Mapping[str, Role]
    """The kinds of task, by name: ps, worker, chief, or any other."""
    name: str = "job"
    """What people call it."""
    framework: str = "generic"
    """Decides the variables a task gets: tensorflow, pytorch, generic."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of every task."""
    files: Tuple[str, ...] = ()
    """Files and directories from beside the job file, present in each working directory under their own name
    (`path#name` renames)."""
    archives: Tuple[str, ...] = ()
    """Archives (.zip, .tar.gz, .tgz, .tar) unpacked into a directory of their name (`path#name` renames)."""
    inputs: Tuple[Input, ...] = ()
    """Data in."""
    outputs: Tuple[Output, ...] = ()
    """Data out."""
    environment: Environment = field(default_factory=Environment)
    """The Python the commands run in."""
    success: str = "all"
    """The job has succeeded when: `all` tracked tasks, `any` one of them, or the `chief` ended well."""
    retries: int = 0
    """How often the whole gang is started again after a failure."""
    queue: str = ""
    """Queue; empty: the cluster's default."""
    priority: Optional[int] = None
    """Priority within the queue."""
    node_label: str = ""
    """Node label of every role that has none of its own."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Your own marks, shown with the job."""
    tags: Tuple[str, ...] = ()
    """Words to find the job by."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Variables whose values must not be seen, by reference: `env:NAME` or `file:/path`, read at submission."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    """Limits of the waits."""

    @property
    def task_count(self) -> int:
        """Containers the whole gang needs."""
        return sum(role.replicas for role in self.roles.values())
