"""Recognises commands that start a training on several machines, and that need a framework to find the other machines.

Each task starts its launcher alone. Without a framework that connects them, N tasks train N models.
"""

from __future__ import annotations

import posixpath
import re
from typing import Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from howdah.errors import Mistake
from howdah.spec import plugins
from howdah.spec.job import JobSpec
from howdah.spec.message import Sentence, message
from howdah.spec.shell_commands import programs, runs_every_line, simple_commands
from howdah.spec.task import SIDE_ROLES
from howdah.spec.values import dataclass


@dataclass(frozen=True)
class TrainingLauncher:
    """A program that starts the processes of a training, and must find the same program in the other tasks."""

    name: str
    """The launcher's name in messages."""
    framework: str
    """The framework with which the launcher, or the program that it starts, finds the other tasks."""
    starts_alone: bool
    """Whether the launcher is run as the command says. Otherwise the framework starts the program itself."""
    counts: Tuple[str, ...] = ()
    """Its options for the number of machines. Without them it assumes one machine."""
    hosts: Tuple[str, ...] = ()
    """Its options that name the machines, or a file with their names."""
    files: Tuple[str, ...] = ()
    """Its options that name a file in which the number of machines may be set."""


@dataclass(frozen=True)
class LauncherCall:
    """A launcher that a role's command runs."""

    launcher: TrainingLauncher
    """The description of the launcher."""
    arguments: Tuple[str, ...]
    """The words after its name, including those of its program."""
    script: str = ""
    """The script that contains the call; "" for the command itself."""
    is_certain: bool = True
    """Whether the launcher runs each time; False if it may run in some cases only, or in a function that may never be
    called."""

    @property
    def shown(self) -> str:
        """Return its name and the script that contains the call: `torchrun (train.sh)`."""
        return f"{self.launcher.name} ({self.script})" if self.script else self.launcher.name


_TORCHRUN = TrainingLauncher("torchrun", "torchrun", starts_alone=True, counts=("nnodes",))
_ACCELERATE = TrainingLauncher(
    "accelerate launch",
    "torchrun",
    starts_alone=False,
    counts=("num_machines",),
    hosts=("deepspeed_hostfile",),
    files=("config_file",),
)
# Without a hostfile deepspeed runs on its own machine alone, whatever `--num_nodes` and `--include` say.
_DEEPSPEED = TrainingLauncher("deepspeed", "torchrun", starts_alone=False, hosts=("hostfile", "H"))
_HOSTS = ("hostfile", "host", "hosts", "H")
_MPIRUN = TrainingLauncher(
    "mpirun",
    "mpi",
    starts_alone=False,
    hosts=(*_HOSTS, "machinefile", "f", "default_hostfile", "rankfile", "rf"),
)
# Both start torchrun's agent on their own machine, whatever a framework tells them of the others.
_FABRIC = TrainingLauncher("fabric run", "torchrun", starts_alone=False, counts=("num_nodes",))
_COLOSSALAI = TrainingLauncher("colossalai run", "torchrun", starts_alone=False, hosts=("hostfile", "host"))
_HOROVODRUN = TrainingLauncher("horovodrun", "horovod", starts_alone=False, hosts=(*_HOSTS, "host_discovery_script"))
_PROGRAMS = {
    "torchrun": _TORCHRUN,
    "accelerate": _ACCELERATE,
    "accelerate-launch": _ACCELERATE,
    "deepspeed": _DEEPSPEED,
    "fabric": _FABRIC,
    "colossalai": _COLOSSALAI,
    "horovodrun": _HOROVODRUN,
    **dict.fromkeys(("mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra", "mpirun.mpich"), _MPIRUN),
    **dict.fromkeys(("mpiexec.mpich", "mpirun.openmpi", "mpiexec.openmpi"), _MPIRUN),
}
_MODULES = {
    "torch.distributed.run": _TORCHRUN,
    "torch.distributed.launch": _TORCHRUN,
    "accelerate.commands.launch": _ACCELERATE,
    "accelerate.commands.accelerate_cli": _ACCELERATE,
    "deepspeed": _DEEPSPEED,
    "deepspeed.launcher.runner": _DEEPSPEED,
    "horovod.runner": _HOROVODRUN,
    "horovod.runner.launch": _HOROVODRUN,
}
_KNOWN = plugins.BUILT_IN["howdah.frameworks"]
"""The frameworks whose effect on launchers is known: all of howdah's own, and none of other packages."""
_COMPAT = re.compile(r"(tony|submarine|xlearning)(-|$)")
_INDEPENDENT = {"tony", "submarine", "xlearning", "xlearning-tensorflow-single"}
"""Frameworks of other systems, in which tasks did not know each other: N separate trainings may be intended."""
_STATIC_GROUP = (
    "torchrun --nnodes=$WORLD_SIZE --node_rank=$RANK --master_addr=$MASTER_ADDR --master_port=$MASTER_PORT PROGRAM …"
)
_WITH_COMMAND = {
    **dict.fromkeys(("accelerate", "accelerate.commands.accelerate_cli"), "launch"),
    **dict.fromkeys(("fabric", "colossalai"), "run"),
}
"""Programs and modules that launch a training only with this subcommand."""
PYTHON = re.compile(r"(python|pypy)[0-9.]*")
_RUNS_MODULES = {"coverage", "cProfile", "trace", "pdb", "debugpy", "kernprof", "viztracer", "scalene"}
_HELP = {"--help", "-h", "--version", "-V"}
_TWO_VALUES = {"mca", "gmca", "omca", "prtemca", "pmixmca", "genv", "env"}
_FLAGS = {
    *("standalone", "multi_gpu", "use_deepspeed", "use_fsdp", "use_megatron_lm", "cpu", "tpu", "same_network", "debug"),
    *("no_local_rank", "run_path", "quiet", "force_multi", "no_ssh", "oversubscribe", "allow_run_as_root", "verbose"),
}
"""Options without a value, after which a variable may hold further options."""
_NO_VALUE = re.compile(r"-|.*\.py$|(.*/)?python[0-9.]*$|\./")
"""Matches the next option, or the program, but no value of an option."""
_LOCAL = {"localhost", "127.0.0.1", "::1", "[::1]", "ip6-localhost"}


def find_launches(
    command: Union[str, Sequence[str]],
    variables: Optional[Mapping[str, str]] = None,
    script: str = "",
    is_certain: bool = True,
) -> Iterator[LauncherCall]:
    """Yield the launchers that a command, or the text of a `script`, runs. `variables` are those of the job;
    `is_certain` says whether the script itself runs each time."""
    is_certain = is_certain and runs_every_line(command, bool(script))
    for words in simple_commands(command, variables, is_strict=True):
        words = without_redirections(words)
        for at in programs(words):
            found = _launcher_of(words[at:])
            if found and (at == 0 or len(found[1])) and not _HELP.intersection(found[1][:1]):
                yield LauncherCall(found[0], tuple(found[1]), script, is_certain)
                break


def without_redirections(words: Sequence[str]) -> List[str]:
    """Return the words of a simple command without `> file`, `2>&1` and the like."""
    kept: List[str] = []
    skip = False
    for number, word in enumerate(words):
        following = words[number + 1 : number + 2]
        if skip:
            skip = False
        elif word and not word.strip("<>&|"):
            skip = True
        elif not (word.isdigit() and following and following[0][:1] in ("<", ">")):
            kept.append(word)
    return kept


def _launcher_of(words: Sequence[str]) -> Optional[Tuple[TrainingLauncher, List[str]]]:
    """Return the launcher that the program `words[0]` is, or runs as a module."""
    program, arguments = posixpath.basename(words[0]), list(words[1:])
    table = _PROGRAMS
    if program not in table:
        at = next((number for number, word in enumerate(arguments) if word.startswith("-m")), len(arguments))
        if PYTHON.fullmatch(program):
            script = next((number for number, word in enumerate(arguments) if not word.startswith("-")), len(arguments))
            if script < at and posixpath.basename(arguments[script]) in table:  # `python /usr/bin/torchrun`
                return _launcher_of(arguments[script:])
        elif program not in _RUNS_MODULES:
            return None
        run = [word for word in ("".join(arguments[at : at + 1])[2:], *arguments[at + 1 :]) if word]
        if not run:
            return None
        program, arguments, table = run[0], run[1:], _MODULES
        if program in _RUNS_MODULES:
            return _launcher_of([program, *arguments])
    if program not in table:
        return None
    task = next((word for word in arguments if not word.startswith("-")), "")
    return None if task != _WITH_COMMAND.get(program, task) else (table[program], arguments)


def own_options(launch: LauncherCall) -> Iterator[Tuple[str, str]]:
    """Yield the launcher's options and their values, without those of its program: names without dashes, and with `_`
    for `-`. A word that is a variable of unknown value has the name "$"."""
    words = list(launch.arguments)
    if words[:1] and words[0] in _WITH_COMMAND.values():
        words = words[1:]
    while words:
        word = words.pop(0)
        if word.startswith("$"):
            yield "$", word
        elif not word.startswith("-") or word in ("-m", "--module", "--no-python", "--no_python", "--"):
            return
        else:
            name, is_given, value = word.lstrip("-").partition("=")
            name = name.replace("-", "_")
            if name[:1] == "H" and len(name) > 1:  # `-Hlocalhost:2`
                name, is_given, value = "H", "=", word[2:]
            if name in _TWO_VALUES:
                del words[:2]
            elif name not in _FLAGS and not is_given and words and not _NO_VALUE.match(words[0]):
                value = words.pop(0)
            yield name, value


def is_connected(launch: LauncherCall, variables: Mapping[str, str]) -> Optional[bool]:
    """Return whether the options of a launcher connect it with those of other tasks; None if that can't be known.
    torchrun also takes some of the job's `variables` as options."""
    known = None if any(name == "$" for name, _ in own_options(launch)) else False
    given = {name[4:].lower(): value for name, value in variables.items() if name.startswith("PET_")}
    options = {**(given if launch.launcher == _TORCHRUN else {}), **dict(own_options(launch))}
    for name in launch.launcher.counts:
        if name in options:
            least, _, most = options[name].partition(":")
            if least != "1":
                return True
            return most not in ("", "1") and not _is_local(options.get("rdzv_endpoint", "localhost"))
    if any(not _is_local(options[name]) for name in launch.launcher.hosts if name in options):
        return True
    return None if any(name in options for name in launch.launcher.files) else known


def _is_local(hosts: str) -> bool:
    """Return whether a list of hosts, each with `:slots` or a port, names no other machine."""
    return all(re.sub(r"(?<=[\w\]]):\d*$", "", host.strip()) in _LOCAL for host in hosts.split(","))


def option_alone(launch: LauncherCall) -> str:
    """Return the option that makes torchrun run alone, even if a framework tells it about the other tasks; "" if there
    is none."""
    for name, value in own_options(launch):
        if launch.launcher == _TORCHRUN and (
            name == "standalone"
            or (name == "nnodes" and value in ("1", "1:1"))
            or (name == "rdzv_endpoint" and _is_local(value))
        ):
            return f"--{name}={value}" if name != "standalone" else "--standalone"
    return ""


def mistakes(job: JobSpec) -> Iterator[Mistake]:
    """Find launchers that would not find the other tasks."""
    found = {name: list(find_launches(role.command, {**job.env, **role.env})) for name, role in job.roles.items()}
    yield from (wrong for wrong in unconnected(job, found) if isinstance(wrong, Mistake))


def unconnected(job: JobSpec, launches: Mapping[str, Sequence[LauncherCall]]) -> Iterator[Union[Mistake, Sentence]]:
    """Yield the mistakes about launchers that would not find the other tasks, and sentences for the user where only a
    run can tell. `launches` are the launchers of each role."""
    if not job.gang or job.framework not in _KNOWN:
        return
    if job.framework == "ray" and len(job.roles) == 1:  # its first task alone runs the command
        return
    for name, of_role in launches.items():
        for launcher in dict.fromkeys(launch.launcher for launch in of_role):
            together = sum(
                job.roles[other].replicas
                for other, each in launches.items()
                if any(launch.launcher == launcher for launch in each)
            )
            alike = [launch for launch in of_role if launch.launcher == launcher]
            if together > 1 and (wrong := _wrong(job, name, alike, together)):
                yield wrong


def _wrong(job: JobSpec, role: str, launches: Sequence[LauncherCall], together: int) -> Union[Mistake, Sentence, None]:
    """Return the mistake in the launches of one launcher in a role. If some of them are right, the script decides at
    run time which one a task runs. A launch that may never run is no mistake."""
    launcher = launches[0].launcher
    is_told = launcher.starts_alone and job.framework == launcher.framework
    states: List[Tuple[LauncherCall, Optional[bool]]]
    if is_told:
        together = job.roles[role].replicas
        if role in SIDE_ROLES or together == 1:
            return None
        states = [(launch, not option_alone(launch)) for launch in launches]
    else:
        # A user who writes `--standalone` wants separate launchers.
        apart = [launch for launch in launches if "standalone" not in dict(own_options(launch))]
        variables = {**job.env, **job.roles[role].env}
        states = [(launch, is_connected(launch, variables)) for launch in apart]
    wrong = [launch for launch, state in states if state is False]
    alone = next((launch for launch in wrong if launch.is_certain), None)
    doubtful = next((launch for launch, state in states if not state), None)
    if doubtful is None:
        return None
    is_mixed = any(state for _, state in states)
    if wrong and alone is None and not is_mixed:
        return message(
            "{role} may run {launcher} in each of {count} tasks, which would not find each other, and each would train"
            " a model of its own",
            role=role,
            launcher=wrong[0].shown,
            count=together,
        )
    if alone is None or is_mixed or _may_work_there(launcher, job.framework):
        return message(
            "{role} runs {launcher} in each of {count} tasks, perhaps with options by which they do not find each"
            " other, and each trains a model of its own",
            role=role,
            launcher=doubtful.shown,
            count=together,
        )
    if job.framework in _INDEPENDENT:
        return message(
            "{role} runs {launcher} in each of {count} tasks, which are not told of each other with framework"
            " {framework}: each trains a model of its own",
            role=role,
            launcher=alone.shown,
            count=together,
            framework=job.framework,
        )
    option = option_alone(alone)
    place = f"roles.{role}.command"
    if is_told:
        return Mistake(
            place,
            f"runs {alone.shown} with `{option}` in each of {together} tasks, which would not find each other: leave it"
            " out, or write `gang: false` if each is to train alone",
        )
    return Mistake(
        place,
        f"runs {alone.shown} in each of {together} tasks, which would not find each other with framework"
        f" {job.framework!r}: {_remedy(launcher, option, job.framework)}",
    )


def _may_work_there(launcher: TrainingLauncher, framework: str) -> bool:
    """Return whether a launcher may have worked as its user wanted under a framework of another system: it started
    processes on its own machine, or passed on the group's variables. torchrun and deepspeed surely started a group of
    their own."""
    is_own = framework.endswith(f"-{launcher.framework}")
    return bool(_COMPAT.match(framework)) and not is_own and launcher not in (_TORCHRUN, _DEEPSPEED)


def _remedy(launcher: TrainingLauncher, option: str, framework: str) -> str:
    if _COMPAT.match(framework):
        if launcher.framework == "torchrun":
            return f"write `{_STATIC_GROUP}`, under PyTorch's framework"
        if framework.endswith(f"-{launcher.framework}"):
            return "write the program alone, which the framework connects in each task"
    if launcher.starts_alone:
        without = f", without `{option}`" if option else ""
        return f"write `framework: torchrun` (`--framework torchrun`){without}"
    if launcher.framework == "torchrun":
        return f"write `torchrun PROGRAM …` in place of `{launcher.name} … PROGRAM …`, with `framework: torchrun`"
    return f"write the program alone, with `framework: {launcher.framework}`, which starts it in each task"
