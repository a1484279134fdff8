"""Recognises commands that start a training on several machines, which must learn from a framework who the others are.

Each task starts its launcher alone. Without a framework that tells them of each other, N tasks train N models.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from typing import Iterator, List, Optional, Sequence, Tuple, Union

from howdah.errors import Mistake
from howdah.spec.job import JobSpec
from howdah.spec.values import dataclass


@dataclass(frozen=True)
class TrainingLauncher:
    """A program that starts the processes of a training, and must find its like in the other tasks."""

    name: str
    """The name by which messages call it."""
    framework: str
    """The framework under which it, or the program that it starts, finds the other tasks."""
    starts_alone: bool
    """Whether the command stays as it is. Otherwise the framework starts the program itself."""
    options: str
    """A pattern of options by which the user connects the tasks himself."""


_TORCHRUN = TrainingLauncher("torchrun", "torchrun", True, r"--?(nnodes|rdzv|master|node[-_]rank|standalone)")
_ACCELERATE = TrainingLauncher(
    "accelerate launch", "torchrun", False, r"--(num_machines|machine_rank|main_process|config_file)"
)
_DEEPSPEED = TrainingLauncher(
    "deepspeed", "torchrun", False, r"--(hostfile|node_rank|num_nodes|master_addr|no_ssh|include)|-H"
)
_MPIRUN = TrainingLauncher("mpirun", "mpi", False, r"--?(hostfile|host|machinefile|hosts?|H|f)\b")
_HOROVODRUN = TrainingLauncher("horovodrun", "horovod", False, r"--?(hostfile|hosts?|H)\b")
_PROGRAMS = {
    "torchrun": _TORCHRUN,
    "accelerate": _ACCELERATE,
    "accelerate-launch": _ACCELERATE,
    "deepspeed": _DEEPSPEED,
    "mpirun": _MPIRUN,
    "mpiexec": _MPIRUN,
    "mpiexec.hydra": _MPIRUN,
    "mpirun.mpich": _MPIRUN,
    "horovodrun": _HOROVODRUN,
}
_MODULES = {
    "torch.distributed.run": _TORCHRUN,
    "torch.distributed.launch": _TORCHRUN,
    "accelerate.commands.launch": _ACCELERATE,
    "deepspeed.launcher.runner": _DEEPSPEED,
    "horovod.runner.launch": _HOROVODRUN,
}
_BUILT_IN = {"generic", "pytorch", "torchrun", "tensorflow", "jax", "mxnet", "mpi", "horovod"}
"""Frameworks of which it is known what they tell a launcher."""
_PYTHON = re.compile(r"(python|pypy)[0-9.]*")
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_PREFIXES = {"exec", "env", "nohup", "time", "nice", "command", "stdbuf", "numactl", "uv", "run", "poetry", "pipenv"}
"""Words that may stand before a program which they run; `uv run`, `poetry run`."""
_ENDS = {";", "&&", "||", "|", "&", "(", ")", "{", "}", "then", "do", "else", "!", "\n"}


def find_launcher(command: Union[str, Sequence[str]]) -> Optional[Tuple[TrainingLauncher, List[str]]]:
    """Return the launcher that a command runs, and its arguments; None if it runs none that is known."""
    for words in _simple_commands(command):
        while words and (words[0] in _PREFIXES or _ASSIGNMENT.fullmatch(words[0])):
            words = words[1:]
        if not words:
            continue
        program = posixpath.basename(words[0])
        if program in _PROGRAMS:
            return _PROGRAMS[program], words[1:]
        if _PYTHON.fullmatch(program) and "-m" in words[:-1]:
            at = words.index("-m")
            if words[at + 1] in _MODULES:
                return _MODULES[words[at + 1]], words[at + 2 :]
        if program in ("sh", "bash", "dash") and "-c" in words[:-1]:
            found = find_launcher(words[words.index("-c") + 1])
            if found:
                return found
    return None


def _simple_commands(command: Union[str, Sequence[str]]) -> Iterator[List[str]]:
    if not isinstance(command, str):
        yield list(command)
        return
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: List[str] = []
    try:
        for word in lexer:
            if word in _ENDS or (word and not word.strip(";&|()")):
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:  # a quotation without an end: the shell will say so
        pass
    yield words


def mistakes(job: JobSpec) -> Iterator[Mistake]:
    """Find launchers that would not find the other tasks."""
    found = {name: find_launcher(role.command) for name, role in job.roles.items()}
    for name, launch in found.items():
        if launch is None or job.framework not in _BUILT_IN:
            continue
        launcher, arguments = launch
        together = sum(job.roles[other].replicas for other, each in found.items() if each and each[0] == launcher)
        if together < 2:
            continue
        if launcher.starts_alone and job.framework == launcher.framework:
            continue
        if any(re.match(launcher.options, argument) for argument in arguments):
            continue
        if launcher.starts_alone:
            remedy = f"write `framework: {launcher.framework}` (`--framework {launcher.framework}`)"
        elif launcher.framework == "torchrun":
            remedy = f"write `torchrun PROGRAM …` in place of `{launcher.name} … PROGRAM …`, with `framework: torchrun`"
        else:
            remedy = f"write the program alone, with `framework: {launcher.framework}`, which starts it in each task"
        yield Mistake(
            f"roles.{name}.command",
            f"runs {launcher.name} in each of {together} tasks, which would not find each other with framework"
            f" {job.framework!r}: {remedy}",
        )
