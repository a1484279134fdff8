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
_SHELLS = ("sh", "bash", "dash", "zsh")
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_SHELL_LINE = re.compile(r"-[a-z]*c")
_COMMENT = re.compile(r"""('[^']*'|"(?:[^"\\]|\\.)*"|\\.)|(?<![^\s;&|()])#[^\n]*""", re.DOTALL)
_PREFIXES = {
    *("exec", "env", "nohup", "time", "nice", "ionice", "command", "stdbuf", "numactl", "taskset", "timeout", "setsid"),
    *("uv", "poetry", "pipenv", "conda", "mamba", "micromamba", "srun", "xvfb-run", "nsys", "sudo"),
}
"""Programs that run another one, which their options and values stand before: `timeout 100`, `uv run --with x`."""
_ENDS = {";", "&&", "||", "|", "&", "(", ")", "{", "}", "then", "do", "else", "!", "\n"}


def find_launcher(command: Union[str, Sequence[str]]) -> Optional[Tuple[TrainingLauncher, List[str]]]:
    """Return the launcher that a command runs, and its arguments; None if it runs none that is known."""
    for words in simple_commands(command):
        if found := _launcher_of(_without_prefixes(words)):
            return found
    return None


def _without_prefixes(words: List[str]) -> List[str]:
    while words and _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    if not words or posixpath.basename(words[0]) not in _PREFIXES:
        return words
    programs = (number for number, word in enumerate(words) if number and _may_launch(posixpath.basename(word)))
    return words[next(programs, len(words)) :]


def _may_launch(program: str) -> bool:
    return program in _PROGRAMS or program in _SHELLS or _PYTHON.fullmatch(program) is not None


def _launcher_of(words: List[str]) -> Optional[Tuple[TrainingLauncher, List[str]]]:
    program = posixpath.basename(words[0]) if words else ""
    if program in _PROGRAMS:
        task = next((word for word in words[1:] if not word.startswith("-")), "")
        return None if program == "accelerate" and task != "launch" else (_PROGRAMS[program], words[1:])
    if _PYTHON.fullmatch(program):
        at = next((number for number, word in enumerate(words) if word.startswith("-m")), len(words))
        run = [word for word in ("".join(words[at : at + 1])[2:], *words[at + 1 :]) if word]
        if run and run[0] in _MODULES:
            return _MODULES[run[0]], run[1:]
    return None


def simple_commands(command: Union[str, Sequence[str]]) -> Iterator[List[str]]:
    """Yield the words of each program that a command runs, in shell lines also those between `;`, `|` and the like, and
    those of a line that is given to a shell by `-c`."""
    for words in [list(command)] if not isinstance(command, str) else _commands_of_line(command):
        yield words
        for at in range(len(words) - 2):
            if posixpath.basename(words[at]) in _SHELLS and _SHELL_LINE.fullmatch(words[at + 1]):
                yield from simple_commands(words[at + 2])


def _commands_of_line(line: str) -> Iterator[List[str]]:
    plain = _COMMENT.sub(lambda found: found[1] or "", line)
    lexer = shlex.shlex(plain.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: List[str] = []
    try:
        for word in lexer:
            if word in _ENDS or (word and not word.strip(";&|()")):
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:  # a quotation without an end: the shell will say so
        words = plain.split()
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
