"""What a user asks for: a job is roles × replicas × resources × command, with its data and its environment.

Units are in the names. A JobSpec can be built wrong; `howdah.spec.validation.find_mistakes` says everything that is.
"""

from __future__ import annotations

from dataclasses import field
from typing import List, Mapping, Optional, Set, Tuple, Union

from howdah.spec.values import dataclass

# How people write a key, where it differs from the field: the unit is in their value ("2GiB", "10min").
ALIASES = {
    "memory_mib": "memory",
    "disk_mib": "disk",
    "source": "from",
    "gang_s": "gang",
    "hold_s": "hold",
    "localise_s": "localise",
    "stall_s": "stall",
    "run_s": "run",
    "total_s": "total",
    "stop_s": "stop",
    "grace_s": "grace",
    "within_s": "within",
    "every_s": "every",
    "backoff_s": "backoff",
    "limit_s": "limit",
}

# A plain text (or a list, where the field is one) in place of one of these records is this field of it.
SHORT_FORMS = {"Preemption": "signal", "Checkpoint": "path", "Board": "path", "Preflight": "checks"}


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
    growth: float = 0.0
    """Share of the memory that is added each time the gang starts again: 0.5 asks for 2, then 3, then 4 GiB."""


@dataclass(frozen=True)
class Placement:
    """On which nodes the tasks of a role should run."""

    prefer: Tuple[str, ...] = ()
    """Hosts to take if they have room within a short while."""
    avoid: Tuple[str, ...] = ()
    """Hosts never to take."""
    spread: bool = False
    """At most one task of the role on each host."""
    constraint: str = ""
    """Placement in the cluster's own words; on YARN a placement constraint, such as `notin,node,worker`."""
    tags: Tuple[str, ...] = ()
    """Allocation tags of the role's containers, which constraints speak of; without any a role that is spoken of
    carries its name."""


@dataclass(frozen=True)
class Deadline:
    """When tasks that are not needed any more must have ended."""

    after: Tuple[str, ...] = ()
    """Counted from the moment when all tasks of these roles have ended."""
    within_s: float = 0.0
    """How long they may still take; 0 is without limit."""
    then: str = "fail"
    """What happens to those still running: `fail` the job, `stop` them, which does not count as a failure, or `untrack`
    them: they run on, but the job waits for them no more; should one fail while it runs, that fails the job."""


@dataclass(frozen=True)
class Preemption:
    """What a program is told when the cluster announces that it will take its container away."""

    signal: str = "URG"
    """Sent to the program's process group: URG, USR1, USR2, TERM, INT, HUP, CONT, or `none`. A program that has no
    handler ignores URG and CONT; the others end it."""
    grace_s: float = 15.0
    """How long the program is told that it has, where the cluster does not say."""


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
    """`fail` the job (or use up one of its retries), `ignore`, `restart` the task alone, or `restart-role`: all tasks
    of the role. Unset: as the framework says."""
    restarts: int = 3
    """How often `restart` starts a task again, and `restart-role` the role, before the job fails."""
    backoff_s: float = 1.0
    """Wait before a restart; it doubles with each, up to five minutes."""
    causes: Mapping[str, str] = field(default_factory=dict)
    """What a failure is, by exit status (`75`) or by a regular expression found in the last lines: `user` is never
    tried again, `node` and `preempted` use up no retry, `transient` and `memory` do."""
    min_replicas: int = 0
    """Elastic: when no container comes within `timeouts.hold` the gang goes on with fewer, down to this many; with a
    checkpoint it grows back when there is room. 0 is never fewer."""
    spares: int = 0
    """Containers held ready beside the tasks: one takes the place of a container that is lost."""
    ports: Tuple[str, ...] = ()
    """Extra ports to reserve, by name: `tensorboard` arrives as HOWDAH_PORT_TENSORBOARD."""
    after: Tuple[str, ...] = ()
    """Roles that must have ended well before this one gets its containers: prepare, then train."""
    deadline: Deadline = field(default_factory=Deadline)
    """A limit for tasks that others no longer need, such as an evaluator after the workers."""
    placement: Placement = field(default_factory=Placement)
    """Where its tasks run."""
    image: str = ""
    """Container image of this role, over the environment's."""
    mounts: Tuple[str, ...] = ()
    """Directories of the node that containers of this role see, beside those of the environment, as
    `source:target:ro`."""
    yields: Mapping[str, str] = field(default_factory=dict)
    """Variables for the roles that come after this one, each by the words that announce it: the value is what follows
    them, on the first line of standard output that has them."""
    preemption: Preemption = field(default_factory=Preemption)
    """How the program is told that its container, or its node, will be taken away; a text is the signal."""
    on_stall: str = ""
    """What follows when a task shows no sign of progress for `timeouts.stall`: `report` it with the stacks of all
    tasks (also when unset), `restart`, as after a failure of the task, `fail` the job, or `ignore` it."""
    files: Tuple[str, ...] = ()
    """Files and directories that tasks of this role alone have, written as the job's."""
    archives: Tuple[str, ...] = ()
    """Archives that tasks of this role alone have, written as the job's."""


@dataclass(frozen=True)
class Input:
    """Files each task finds below `to` in its working directory when it starts."""

    path: Union[str, Tuple[str, ...]]
    """Where the data is: files, directories, globs. On a cluster a path without scheme is on its file system;
    a relative one is looked for beside the job file first, and uploaded. `path#name` is short for `to: name`."""
    to: str = "input"
    """Directory in the task's working directory; several inputs may share one."""
    roles: Tuple[str, ...] = ()
    """The roles that get it. Empty: every role but those that hold no data (`ps`, `evaluator`)."""
    share: str = "split"
    """`split` deals the files to a role's tasks round-robin, `bytes` so that all get about the same number of bytes;
    `all` gives every task every file."""
    strategy: str = "download"
    """How the data reaches the program: `download` as files below `to`; `placeholder` as a list of URIs in
    INPUT_FILE_LIST; `stream` as records on the program's standard input."""
    chief: Optional[int] = None
    """How many of the files the first of the tasks gets; the others share the rest. Unset: as many as any other."""
    allow_empty: bool = False
    """Tasks may be left without a file. Otherwise a job with more tasks than files is refused."""
    fewer_tasks: bool = False
    """Where there are more tasks than files, the job starts with fewer tasks: one for each file, but at least one of
    each role."""
    flat: bool = False
    """All files lie directly in `to`, without the directories that they are in where they come from. Of two files with
    one name the second becomes `a-2.csv`."""
    cache: bool = False
    """Keep downloaded files on the node: a restart, or another task there, does not fetch them again."""
    format: str = "text"
    """Records of a stream: text, whole, csv, jsonl, sequencefile, tfrecord, parquet, orc, avro, or your own reader as
    `module:function`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What the format's reader takes."""
    epochs: int = 1
    """How often a stream is repeated; 0 is without end."""
    shuffle: bool = False
    """Stream the splits in another order each epoch, the same in each run with the same `seed`."""
    window: int = 0
    """Shuffle records of a stream, too, among this many; 0 leaves them in order."""
    seed: int = 0
    """Of the shuffling."""


@dataclass(frozen=True)
class Save:
    """Copies of an output while the program still runs."""

    every_s: float = 0.0
    """Time between two copies; 0 copies only when somebody asks: `howdah save`, or the program itself."""
    to: str = ""
    """What a copy's name begins with, before its time. Empty: `<path>.saved/`."""
    keep: int = 0
    """How many complete copies are kept; 0 keeps all."""
    incremental: bool = False
    """Copy only files that have changed since the last copy, which the new one then refers to."""
    limit_s: float = 3600.0
    """How long a copy may take; one that takes longer is given up, and the programs go on."""


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
    strategy: str = "upload"
    """`upload` the directory `from` after the program has ended well, or `stream` what it prints to standard output."""
    format: str = "text"
    """Of a stream: text, gzip, sequencefile, tfrecord, parquet, or your own writer as `module:function`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What the format's writer takes."""
    keep_failed: bool = False
    """When the job fails, what the tasks made is kept, too: at `<path>.failed`, instead of what is there."""
    save: Save = field(default_factory=Save)
    """Copies while the program runs."""
    optional: bool = False
    """The job may succeed although no task made the directory `from`; otherwise it fails then."""


@dataclass(frozen=True)
class Checkpoint:
    """A directory on the shared file system in which programs keep what they need to go on after a restart."""

    path: str = ""
    """The directory; HOWDAH_CHECKPOINT_DIR names it. It stays when the job ends."""
    local: str = ""
    """Directory in the working directory to mirror it in, both ways, for programs that cannot reach `path`."""
    every_s: float = 30.0
    """How often the mirror is brought up to date."""
    tasks: str = "chief"
    """Whose local directory is stored: `chief`, a role, a task, or `all`, in which case the files that a task stored
    are replaced by itself and the chief only."""
    valid: str = ""
    """What makes a checkpoint complete: `tensorflow`, `torch`, `marker:NAME` or `glob:PATTERN`. Empty: found out."""


@dataclass(frozen=True)
class Board:
    """Where the programs' event files are: curves and TensorBoard show what is there."""

    path: str = ""
    """A directory on the shared file system, which HOWDAH_BOARD_DIR names; `{job}` in it is the job's id. Empty, with
    `local`: in the job's own directory. Empty, without: event files are looked for in checkpoints and outputs."""
    local: str = ""
    """Directory in the working directory that is copied there while the program writes it: straight into `path` by a
    single task, else each below its own name."""
    every_s: float = 10.0
    """How often the copy is brought up to date."""
    tasks: str = ""
    """Whose `local` is copied: `chief`, a role, or a task like `worker:0`. Empty: every task's."""
    show: bool = False
    """Start TensorBoard with the job. Otherwise `howdah tensorboard` and the job's page do."""


@dataclass(frozen=True)
class Environment:
    """The Python (and more) the commands run in; at most one of the three, else the node's own."""

    python: str = ""
    """An interpreter that the nodes have, by path."""
    archive: str = ""
    """A packed venv, conda environment or pex: shipped, unpacked on each node once, put first on PATH."""
    requirements: str = ""
    """A requirements file: made into an environment once per content, here, and shipped where it must be."""
    image: str = ""
    """Container image that the cluster runs the tasks in, beside any of the others."""
    mounts: Tuple[str, ...] = ()
    """Directories of the node that a container sees, as `source:target:ro`."""


@dataclass(frozen=True)
class Master:
    """The process that runs the job: it needs little, whatever the job needs."""

    memory_mib: int = 0
    """Memory of its container; 0 leaves it to the engine."""
    vcores: int = 0
    """Its virtual cores; 0 leaves it to the engine."""
    node_label: str = ""
    """Run it only on nodes that carry this label."""
    attempts: int = 0
    """How often the cluster may start it; 0 leaves it to the engine."""


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
    grace_s: float = 0.0
    """How long the other tasks may go on when `success: chief` is reached; then they are stopped."""
    stall_s: float = 3600.0
    """How long a program may show no sign of progress (its role's `on_stall` says what follows), leave its input stream
    unread, or an output's file system what the program prints; 0 means without limit."""
    total_s: float = 0.0
    """The job's whole time since its master began, waiting for containers included; 0 means without limit."""


@dataclass(frozen=True)
class Preflight:
    """What is checked in each container before programs start there: a node that fails is left for another."""

    checks: Tuple[str, ...] = ()
    """`disk`: room in the working directory, and a small file is written, synced and read; `memory`: the container may
    use what was asked for; `gpu`: the GPUs are there; `matmul`: each multiplies correctly, by the job's torch (named
    without GPUs: the CPU does); `all-reduce`: tasks exchange data in pairs, in two rounds. `all` is all of them."""
    disk_mib: int = 1024
    """Room that the working directory must have, as `10GiB`."""
    limit_s: float = 120.0
    """The checks of a container must be done within this, and so must the exchange in pairs."""


@dataclass(frozen=True)
class JobSpec:
    """A whole job."""

    roles: Mapping[str, Role]
    """The kinds of task, by name: ps, worker, chief, or any other."""
    name: str = "job"
    """What people call it."""
    framework: str = "generic"
    """Decides the variables a task gets, and whether the job waits for it: tensorflow, pytorch, jax, xgboost, lightgbm,
    mxnet, generic, or another."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of every task."""
    extend: Mapping[str, str] = field(default_factory=dict)
    """Variables that hold lists, such as PATH: this is joined by `:` behind what the node has."""
    files: Tuple[str, ...] = ()
    """Files and directories from beside the job file, present in each working directory under their own name
    (`path#name` renames; `directory#.` puts what is in it straight into the working directory)."""
    directories: Tuple[str, ...] = ()
    """Directories that each task finds in its working directory, empty, when its program starts."""
    archives: Tuple[str, ...] = ()
    """Archives (.zip, .tar.gz, .tgz, .tar) unpacked into a directory of their name (`path#name` renames; `path#.`
    unpacks straight into the working directory)."""
    inputs: Tuple[Input, ...] = ()
    """Data in."""
    outputs: Tuple[Output, ...] = ()
    """Data out."""
    environment: Environment = field(default_factory=Environment)
    """The Python the commands run in."""
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    """Where programs keep what they go on from; a text is its path."""
    board: Board = field(default_factory=Board)
    """Where the programs' event files are; a text is its path."""
    success: str = "all"
    """The job has succeeded when: `all` tracked tasks, `any` one of them, a share (`50%`, `99.5%`) or the `chief` ended
    well."""
    gang: bool = True
    """All tasks start together, or not at all, and know each other. `false`: each starts as soon as it can, alone."""
    retries: int = 0
    """How often the whole gang is started again after a failure. With 0 no program starts a second time, whatever
    happens to its node, unless a role says so."""
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
    preflight: Preflight = field(default_factory=Preflight)
    """Checks of the nodes before the programs start; a text or a list are the checks."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Addresses to show with the job, by label; `{worker:0}` stands for that task's host,
    `{worker:0:main}` for its port of that name."""
    application_type: str = ""
    """What the cluster lists the job as; empty: HOWDAH."""
    master: Master = field(default_factory=Master)
    """The process that runs the job."""
    port_range: str = ""
    """Where the ports that are reserved for its tasks, and the master's, are taken from: `20000-30000`. Empty: your
    setting, else the system chooses."""

    @property
    def task_count(self) -> int:
        """Containers the whole gang needs."""
        return sum(role.replicas for role in self.roles.values())

    @property
    def waves(self) -> Tuple[Tuple[str, ...], ...]:
        """Roles that may run at the same time, stage by stage."""
        found: List[Tuple[str, ...]] = []
        done: Set[str] = set()
        while True:
            wave = tuple(name for name, role in self.roles.items() if name not in done and done.issuperset(role.after))
            if not wave:
                return tuple(found)
            found.append(wave)
            done.update(wave)
