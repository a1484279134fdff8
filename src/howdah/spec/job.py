"""The specification of a job as users write it: roles × replicas × resources × command, with its data and its
environment.

Units are in the names. A JobSpec can be built wrong; `howdah.spec.validation.find_mistakes` lists every mistake in it.
"""

from __future__ import annotations

from dataclasses import field, replace
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

STOP_MARGIN_S, LAST_COPY_MARGIN_S = 5.0, 65.0
"""Seconds until the end of a program is known; and until the files that it left here are stored, if there are any to
store."""

# A plain text (or a list, where the field is one) in place of one of these records is this field of it.
SHORT_FORMS = {"Preemption": "signal", "Checkpoint": "path", "Board": "path", "Preflight": "checks"}

SUCCESS = "_SUCCESS"
"""The file in an output that a job has published, as Hadoop's jobs leave it."""


@dataclass(frozen=True)
class Resources:
    """The resources of one container of a role."""

    memory_mib: int = 1024
    """Memory of the task and all its processes, as `2GiB`, `512MiB`, or a number of MiB."""
    vcores: int = 1
    """Number of virtual cores."""
    gpus: int = 0
    """Number of whole GPUs, each used by this container alone."""
    named: Mapping[str, int] = field(default_factory=dict)
    """Amounts of other resource types that the cluster knows, by name: `{yarn.io/fpga: 1}`."""
    growth: float = 0.0
    """Share of the memory that is added each time the gang restarts: with 0.5, 2 GiB become 3 GiB, then 4 GiB. 0: the
    memory stays the same."""


@dataclass(frozen=True)
class Placement:
    """On which nodes the tasks of a role should run."""

    prefer: Tuple[str, ...] = ()
    """Hosts to use if they have room within a short time."""
    avoid: Tuple[str, ...] = ()
    """Hosts never to use."""
    spread: bool = False
    """Whether each host runs at most one task of the role."""
    constraint: str = ""
    """Placement in the cluster's own language; on YARN a placement constraint, such as `notin,node,worker`. Empty: no
    constraint."""
    tags: Tuple[str, ...] = ()
    """Allocation tags of the role's containers, to which constraints refer; default: the role's name."""


@dataclass(frozen=True)
class Deadline:
    """When tasks that the others no longer need must have ended."""

    after: Tuple[str, ...] = ()
    """Roles whose end starts the clock: the time is counted from the moment when all their tasks have ended. Empty: no
    deadline."""
    within_s: float = 0.0
    """Seconds that this role's tasks may still take. 0: no limit."""
    then: str = "fail"
    """What happens to the tasks that still run: `fail` fails the job; `stop` stops them, which does not count as a
    failure; `untrack` lets them run on: the job does not wait for them, but fails if one of them fails before it
    ends."""


@dataclass(frozen=True)
class Preemption:
    """What a program gets when the cluster announces that it will take its container away."""

    signal: str = "URG"
    """Signal to the program's process group: URG, USR1, USR2, TERM, INT, HUP, CONT, or `none`. A program without a
    handler ignores URG and CONT; the others end it."""
    grace_s: float = 15.0
    """Seconds announced to the program if the cluster gives no deadline."""


@dataclass(frozen=True)
class Role:
    """One kind of task. `command` is a shell line (text) or an argument vector (list); it is kept byte for byte."""

    command: Union[str, Tuple[str, ...]] = ""
    """What each task runs: a shell line, or a list of arguments that is run without a shell."""
    replicas: int = 1
    """Number of tasks of this role."""
    resources: Resources = Resources()
    """Memory, cores and GPUs of each task."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of this role's tasks; they override the job's."""
    node_label: str = ""
    """Node label: the tasks run only on nodes that carry it. Empty: the job's `node_label`."""
    tracked: Optional[bool] = None
    """Whether the job waits for this role's tasks to end. Unset: the framework decides (the job does not wait for a
    `ps`)."""
    on_failure: str = ""
    """What follows from a task's failure: `fail` fails the job (or uses up one of its retries), `ignore` does nothing,
    `restart` restarts this task alone, `restart-role` restarts all tasks of the role. Empty: the framework decides."""
    restarts: int = 3
    """How often `restart` restarts a task, and `restart-role` the role, before the job fails."""
    backoff_s: float = 1.0
    """Seconds to wait before the first restart; the wait doubles with each restart, up to five minutes."""
    causes: Mapping[str, str] = field(default_factory=dict)
    """What a failure is, by exit status (`75`) or by a regular expression found in the last lines: `user` is never
    tried again, `node` and `preempted` use up no retry, `transient` and `memory` do."""
    min_replicas: int = 0
    """Least number of tasks of an elastic role: when no container comes within `timeouts.hold`, the gang goes on with
    fewer tasks, down to this number; with a checkpoint it grows back when there is room. 0: not elastic."""
    spares: int = 0
    """Number of containers that wait beside the tasks: one takes the place of a container that is lost."""
    ports: Tuple[str, ...] = ()
    """Names of extra ports to reserve: `tensorboard` arrives as HOWDAH_PORT_TENSORBOARD."""
    after: Tuple[str, ...] = ()
    """Roles that must have succeeded before this role gets its containers: prepare, then train."""
    deadline: Deadline = Deadline()
    """Time limit for tasks that the others no longer need, such as an evaluator after the workers."""
    placement: Placement = Placement()
    """On which nodes the tasks run."""
    image: str = ""
    """Container image of this role. Empty: the image of `environment`."""
    mounts: Tuple[str, ...] = ()
    """Directories of the node that containers of this role see, in addition to those of `environment`, as
    `source:target:ro`."""
    yields: Mapping[str, str] = field(default_factory=dict)
    """Variables for the roles that come after this role, each with the words that announce its value: the value is the
    rest of the first line of standard output that has these words."""
    preemption: Preemption = Preemption()
    """How the program learns that its container, or its node, will be taken away; a text is the signal."""
    on_stall: str = ""
    """What follows when a task shows no sign of progress for `timeouts.stall`: `report` reports it with the stacks of
    all tasks, `restart` treats it as a failure of the task, `fail` fails the job, `ignore` does nothing. Empty:
    `report`."""
    files: Tuple[str, ...] = ()
    """Files and directories that only this role's tasks have, written as the job's `files`."""
    archives: Tuple[str, ...] = ()
    """Archives that only this role's tasks have, written as the job's `archives`."""

    def grown(self, restarts: int) -> Role:
        """Return the role with the memory that it asks for after this many restarts, by `resources.growth`."""
        memory = self.resources.memory_mib
        more = int(memory * self.resources.growth * restarts)
        return replace(self, resources=replace(self.resources, memory_mib=memory + more)) if more else self


@dataclass(frozen=True)
class Input:
    """Files that each task finds below `to` in its working directory when it starts."""

    path: Union[str, Tuple[str, ...]]
    """Where the data is: files, directories, globs. On a cluster a path without a scheme is on the cluster's file
    system; a relative path is looked for beside the job file first, and uploaded. `path#name` is short for `to:
    name`."""
    to: str = "input"
    """Directory of the files in the task's working directory; several inputs may share one."""
    roles: Tuple[str, ...] = ()
    """Roles whose tasks get the files. Empty: every role but those that hold no data (`ps`, `evaluator`)."""
    share: str = "split"
    """How a role's tasks share the files: `split` deals them out in turn, `bytes` gives each task about the same number
    of bytes, `all` gives every task every file."""
    strategy: str = "download"
    """How the data reaches the program: `download` as files below `to`; `placeholder` as a list of URIs in
    INPUT_FILE_LIST; `stream` as records on the program's standard input."""
    chief: Optional[int] = None
    """Number of files for the first task; the other tasks share the rest. Unset: the first task gets as many as any
    other."""
    allow_empty: bool = False
    """Whether some tasks may be left without a file. Otherwise a job with more tasks than files is refused."""
    fewer_tasks: bool = False
    """Whether a job with more tasks than files starts with fewer tasks: one for each file, but at least one of each
    role."""
    flat: bool = False
    """Whether all files lie directly in `to`, without the directories of their source. Of two files with one name the
    second becomes `a-2.csv`."""
    cache: bool = False
    """Whether downloaded files stay on the node, so that a restart, or another task there, need not fetch them
    again."""
    format: str = "text"
    """Format of the records of a stream: text, whole, csv, jsonl, sequencefile, tfrecord, parquet, orc, avro, or your
    own reader as `module:function`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the format's reader."""
    epochs: int = 1
    """How often a stream is repeated. 0: without end."""
    shuffle: bool = False
    """Whether each epoch streams the splits in another order. The same `seed` gives the same orders."""
    window: int = 0
    """Number of records of a stream among which records are shuffled, too. 0: records stay in order."""
    seed: int = 0
    """Seed of the shuffling: the same seed gives the same order."""


@dataclass(frozen=True)
class Save:
    """Snapshots of an output, taken while the program still runs."""

    every_s: float = 0.0
    """Seconds between two snapshots. 0: only on request, by `howdah save` or by the program itself."""
    to: str = ""
    """Beginning of a snapshot's name, which its time follows. Empty: `<path>.saved/`."""
    keep: int = 0
    """Number of complete snapshots that are kept. 0: all."""
    incremental: bool = False
    """Whether to copy only files that have changed since the last snapshot, to which the new snapshot then refers."""
    limit_s: float = 3600.0
    """Seconds that a snapshot may take; a snapshot that takes longer is given up, and the programs go on."""


@dataclass(frozen=True)
class Output:
    """A directory, or a file, that tasks write. When the job succeeds, one rename moves it to `path`."""

    path: str
    """Where the output appears. A path that exists already is refused before anything starts, unless `overwrite` is
    true."""
    source: str = "output"
    """Directory of the output in the task's working directory; or a single file there, which appears in the directory
    `path` under its own name; or `.`, whatever the program makes or changes in the working directory."""
    tasks: str = ""
    """Which tasks write the output: `chief`, a role, or a task like `worker:0`. A single task writes straight into
    `path`, several tasks each below their own name. Empty: every tracked task."""
    overwrite: bool = False
    """Whether to replace what is at `path`."""
    strategy: str = "upload"
    """How the output is stored: `upload` stores `from` after the program has succeeded, `stream` stores
    what the program prints to standard output."""
    format: str = "text"
    """Format of a stream: text, gzip, sequencefile, tfrecord, parquet, or your own writer as `module:function`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the format's writer."""
    keep_failed: bool = False
    """Whether the tasks' output is kept when the job fails: at `<path>.failed`, where it replaces what is there."""
    save: Save = Save()
    """Snapshots that are taken while the program runs."""
    optional: bool = False
    """Whether the job may succeed although no task made `from`. Otherwise the job fails then."""


@dataclass(frozen=True)
class Checkpoint:
    """A directory on the shared file system in which programs keep what they need to go on after a restart."""

    path: str = ""
    """The directory, a path or URI; HOWDAH_CHECKPOINT_DIR names it. It stays when the job ends. Empty: the job has no
    checkpoint."""
    local: str = ""
    """Directory in the working directory that is mirrored in both ways with `path`, for programs that cannot reach
    `path`. Empty: no mirror."""
    every_s: float = 30.0
    """Seconds between two updates of the mirror."""
    tasks: str = "chief"
    """Tasks whose local directory is stored: `chief`, a role, a task, or `all`. With `all`, a file that a task has
    stored is replaced only by this task or the chief."""
    valid: str = ""
    """What makes a checkpoint complete: `tensorflow`, `torch`, `marker:NAME` or `glob:PATTERN`; with `all` the
    directory with all its files is one. Empty: detected from the files."""


@dataclass(frozen=True)
class Board:
    """Where the programs' event files are: curves and TensorBoard show what is there."""

    path: str = ""
    """Directory on the shared file system, which HOWDAH_BOARD_DIR names; `{job}` in it is the job's id. Empty: with
    `local` a directory of the job itself; without `local` event files are looked for in checkpoints and outputs."""
    local: str = ""
    """Directory in the working directory that is copied to `path` while the program writes it: straight into `path` by
    a single task, else each task's below its own name. Empty: nothing is copied."""
    every_s: float = 10.0
    """Seconds between two updates of the copy."""
    tasks: str = ""
    """Tasks whose `local` is copied: `chief`, a role, or a task like `worker:0`. Empty: every task."""
    show: bool = False
    """Whether TensorBoard starts with the job. Otherwise `howdah tensorboard` and the job's page start it."""
    port: int = 0
    """Port of TensorBoard on its node. 0: one of `port_range`, else the system chooses."""


@dataclass(frozen=True)
class Environment:
    """The Python (and more) in which the commands run: at most one of `python`, `archive`, `requirements` and `conda`.
    Without any of them, commands run in the node's own environment."""

    python: str = ""
    """Path of an interpreter that the nodes have."""
    archive: str = ""
    """A packed venv, conda environment or pex: sent to the nodes, unpacked on each node once, put first on PATH. The
    name after `#` is the directory in it that has `bin`, which is found by itself in a file of this machine."""
    requirements: str = ""
    """A requirements file, or a project's pyproject.toml, uv.lock or pylock.toml, which uv reads. At submission it is
    made into an environment, once per content, which is sent to the nodes."""
    conda: str = ""
    """A conda environment of this machine, by its name or directory: packed by conda-pack, and sent to nodes that do
    not have it."""
    image: str = ""
    """Container image in which the tasks run; it may be combined with any of the other keys."""
    mounts: Tuple[str, ...] = ()
    """Directories of the node that a container sees, as `source:target:ro`."""

    @property
    def given(self) -> Tuple[str, ...]:
        """Return the keys that name a Python."""
        return tuple(name for name in ("python", "archive", "requirements", "conda") if getattr(self, name))


@dataclass(frozen=True)
class Master:
    """Resources of the master, the process that runs the job; independent of the job's size."""

    memory_mib: int = 0
    """Memory of the master's container, as `2GiB`, `512MiB`, or a number of MiB. 0: the engine's default."""
    vcores: int = 0
    """Number of the master's virtual cores. 0: the engine's default."""
    node_label: str = ""
    """Node label: the master runs only on nodes that carry it. Empty: any node."""
    attempts: int = 0
    """How many attempts of the master the cluster may start. 0: the engine's default."""


@dataclass(frozen=True)
class Timeouts:
    """Time limits in seconds; people write `30s`, `10min`, `2h`."""

    gang_s: float = 3600.0
    """Seconds until all containers must be granted and all tasks must have joined. 0: no limit."""
    hold_s: float = 60.0
    """Seconds that an incomplete gang keeps its containers without getting another one; then it gives them back, and
    asks again later."""
    localise_s: float = 1800.0
    """Seconds until a task's files and data must be in place. 0: no limit."""
    run_s: float = 0.0
    """Seconds that the job may run. 0: no limit."""
    stop_s: float = 10.0
    """Seconds between TERM and KILL."""
    grace_s: float = 0.0
    """Seconds that the other tasks may go on after `success: chief` is reached; then they are stopped. 0: they are
    stopped at once."""
    stall_s: float = 3600.0
    """Seconds that a program may show no sign of progress (`on_stall` of its role decides what follows) or may leave
    its input stream unread, and that an output's file system may accept no data. 0: no limit."""
    total_s: float = 0.0
    """Seconds from the start of the job's master to the job's end, waiting for containers included. 0: no limit."""


@dataclass(frozen=True)
class Preflight:
    """What is checked in each container before programs start there: a node that fails is replaced by another."""

    checks: Tuple[str, ...] = ()
    """Checks to make. `disk`: the working directory has room, and a small file is written, synced and read; `memory`:
    the container may use the memory that was requested; `gpu`: the GPUs are there; `matmul`: each GPU multiplies
    correctly, by the job's torch (named without GPUs: the CPU does); `all-reduce`: tasks exchange data in pairs, in two
    rounds; `all`: all of these. Empty: no checks."""
    disk_mib: int = 1024
    """Free space that the working directory must have, as `10GiB`, `512MiB`, or a number of MiB."""
    limit_s: float = 120.0
    """Seconds that the checks of a container may take, and that the exchange in pairs may take."""


@dataclass(frozen=True)
class JobSpec:
    """A whole job."""

    roles: Mapping[str, Role]
    """The kinds of task, by name: ps, worker, chief, or any other name."""
    name: str = "job"
    """The job's name; it need not be unique."""
    framework: str = "generic"
    """Framework of the programs: tensorflow, pytorch, jax, xgboost, lightgbm, mxnet, generic, or another. It decides
    which variables a task gets, and whether the job waits for the task."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of every task."""
    extend: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that hold lists, such as PATH: each value is appended to the node's value with `:` between
    them. In `/opt/tool/bin:$PATH` the node's value stands where `$PATH` does."""
    files: Tuple[str, ...] = ()
    """Files and directories from beside the job file. Each working directory has them under their own name (`path#name`
    renames; `directory#.` puts the directory's content straight into the working directory)."""
    directories: Tuple[str, ...] = ()
    """Directories that each task finds in its working directory, empty, when its program starts."""
    archives: Tuple[str, ...] = ()
    """Archives (.zip, .tar, .tar.gz, .tar.bz2, .tar.xz) that are unpacked into a directory of their name (`path#name`
    renames; `path#.` unpacks straight into the working directory)."""
    inputs: Tuple[Input, ...] = ()
    """Files that tasks read."""
    outputs: Tuple[Output, ...] = ()
    """Directories that tasks write."""
    environment: Environment = Environment()
    """The Python in which the commands run."""
    checkpoint: Checkpoint = Checkpoint()
    """Directory from which programs go on after a restart; a text is its path."""
    board: Board = Board()
    """Where the programs' event files are; a text is their path."""
    success: str = "all"
    """When the job has succeeded: when `all` tracked tasks, `any` of them, a share of them (`50%`, `99.5%`) or the
    `chief` ended with status 0."""
    gang: bool = True
    """Whether all tasks start together, or not at all, and know each other. `false`: each task starts alone, as soon as
    it can."""
    retries: int = 0
    """How often the whole gang restarts after a failure. 0: no program starts a second time, whatever happens to its
    node, unless a role allows it."""
    queue: str = ""
    """Queue of the cluster. Empty: the cluster's default."""
    priority: Optional[int] = None
    """Priority within the queue. Unset: the queue's default."""
    node_label: str = ""
    """Node label of every role that has none of its own."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of your own, by name, which are shown with the job."""
    tags: Tuple[str, ...] = ()
    """Words by which to find the job."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Environment variables whose values must not be seen, by reference: `env:NAME` or `file:/path`, read at
    submission."""
    timeouts: Timeouts = Timeouts()
    """Time limits of the job."""
    preflight: Preflight = Preflight()
    """Checks of the nodes before the programs start; a text or a list are the checks."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Addresses to show with the job, by label; `{worker:0}` stands for that task's host, `{worker:0:main}` for its
    port of that name."""
    notify: Tuple[str, ...] = ()
    """Addresses that are told how the job ended, by a POST of JSON: each is an `https://…`, or the name of one of the
    `secrets` whose value is one."""
    application_type: str = ""
    """Application type under which the cluster lists the job. Empty: HOWDAH."""
    master: Master = Master()
    """Resources of the process that runs the job."""
    port_range: str = ""
    """Range from which the ports of the tasks and of the master are taken: `20000-30000`. Empty: your setting, else the
    system chooses."""
    engines: Mapping[str, Mapping[str, Union[str, Tuple[str, ...]]]] = field(default_factory=dict)
    """Options for engines, by the engine's name: `{slurm: {account: research}}`. Only those for the engine that runs
    the job have an effect. An option wins over your setting of the same name (`slurm.account`)."""

    @property
    def task_count(self) -> int:
        """Return the number of containers that the whole gang needs."""
        return sum(role.replicas for role in self.roles.values())

    @property
    def last_copy_s(self) -> float:
        """Return the seconds after a program's end by which its last checkpoints and event files are stored."""
        return LAST_COPY_MARGIN_S if self.checkpoint.local or self.board.local else 0.0

    @property
    def stop_limit_s(self) -> float:
        """Return the seconds after which all tasks that were told to stop have ended."""
        return self.timeouts.stop_s + STOP_MARGIN_S + self.last_copy_s

    @property
    def waves(self) -> Tuple[Tuple[str, ...], ...]:
        """Return the roles that may run at the same time, stage by stage."""
        found: List[Tuple[str, ...]] = []
        done: Set[str] = set()
        while True:
            wave = tuple(name for name, role in self.roles.items() if name not in done and done.issuperset(role.after))
            if not wave:
                return tuple(found)
            found.append(wave)
            done.update(wave)
