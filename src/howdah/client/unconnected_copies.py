"""Finds tasks that are copies of each other and do not know each other, because nobody has named a framework."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from howdah.client.command_scripts import WorkingFiles, working_files
from howdah.spec import JobSpec
from howdah.spec.launchers import LauncherCall
from howdah.spec.message import Sentence, message
from howdah.spec.shell_commands import simple_commands

_MAX_FILES = 20
_KNOWS_OTHERS = re.compile(
    r"HOWDAH_|howdah\.(here|program)\b(?!\.run_function)|howdah import [^\n]*\b(here|program)\b|import howdah as"
    r"|\bMASTER_ADDR\b"
)
_TRAINS = re.compile(
    r"(?m)^\s*(?:import|from)\s+(?:torch|tensorflow|keras|jax|flax|accelerate|transformers|lightning|pytorch_lightning"
    r"|deepspeed|horovod|mxnet|xgboost|lightgbm|paddle|mindspore|ultralytics)\b|howdah\.program\.run_function\b"
)
"""Matches imports of libraries that train one model in all tasks, if the tasks know each other. A call of a function
matches, too; it is judged where the function is packed."""


_LAUNCHES = re.compile(r"(?<!\S)(?:-m *[\w.]+\.launch(?!\S)|--(?:nproc[_-]per[_-]node|nnodes)(?![^\s=]))")
"""Matches commands that run a launcher, even an unknown one: by its module, or by its options."""


def trains_alone(texts: Iterable[str], is_launcher: bool = False) -> bool:
    """Return whether programs train, as those of a launcher do, and never ask for the other tasks. This is judged by
    their texts and variables."""
    read = list(texts)
    return (is_launcher or any(map(_TRAINS.search, read))) and not any(map(_KNOWS_OTHERS.search, read))


def unconnected_copies(
    job: JobSpec, base_directory: Path, origins: Mapping[str, str], launches: Mapping[str, Sequence[LauncherCall]]
) -> Sentence | None:
    """Return a sentence about a role whose tasks start together, train, and do not know each other; None if that may be
    intended: somebody named the framework (see `origins`), a program asks howdah for the other tasks, it reads a stream
    of records, or it is started by a launcher, which is judged separately. Return None for a job without origins,
    too."""
    if not job.gang or job.framework != "generic" or "roles" not in origins or "framework" in origins:
        return None
    if any(each.strategy == "stream" for each in job.inputs):  # each task has its share of the records
        return None
    for name, role in job.roles.items():
        if role.replicas < 2 or launches.get(name):
            continue
        given = (f"{variable}={value}" for variable, value in {**job.env, **role.env}.items())
        texts = list(_texts(role.command, working_files(job, base_directory, name)))  # the command's text first
        if trains_alone([*given, *texts], bool(_LAUNCHES.search(texts[0]))):
            return message(
                "framework: generic, so the {count} tasks of {role} are copies that are not told of each other (naming"
                " any framework, also generic, ends this line)",
                count=role.replicas,
                role=name,
            )
    return None


def _texts(command: str | Sequence[str], files: WorkingFiles) -> Iterable[str]:
    """Yield the text of a command, of the files that it names, and of the files that scripts among these name."""
    yield command if isinstance(command, str) else " ".join(command)
    waiting, seen = [command], set[str]()
    while waiting:
        for words in simple_commands(waiting.pop(0)):
            for before, word in zip(("", *words), words, strict=False):
                path = f"{word.replace('.', '/')}.py" if before == "-m" else word
                if path in seen or len(seen) >= _MAX_FILES or not (text := files.text(path)):
                    continue
                seen.add(path)
                yield text
                waiting += [] if path.endswith(".py") else [text]
