"""Finds tasks that are copies of each other and not told of each other, because nobody has named a framework."""

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
_KNOWS_OTHERS = re.compile(r"HOWDAH_|howdah(\.| import )(here|program)\b(?!\.run_function)|\bMASTER_ADDR=")


def knows_others(texts: Iterable[str]) -> bool:
    """Return whether a program asks howdah for the other tasks, or a shell says where they meet, by its texts."""
    return any(_KNOWS_OTHERS.search(text) for text in texts)


def unconnected_copies(
    job: JobSpec, base_directory: Path, origins: Mapping[str, str], launches: Mapping[str, Sequence[LauncherCall]]
) -> Sentence | None:
    """Return a sentence about a role whose tasks start together and are not told of each other; None if somebody may
    mean that: who named the framework, as `origins` tells, a program that asks howdah for the others, a stream of
    records, or a launcher, which is judged by itself. Of a job without origins it is not known."""
    if not job.gang or job.framework != "generic" or "roles" not in origins or "framework" in origins:
        return None
    if any(each.strategy == "stream" for each in job.inputs):  # each task has its share of the records
        return None
    for name, role in job.roles.items():
        given = (f"{variable}={value}" for variable, value in {**job.env, **role.env}.items())
        if role.replicas < 2 or launches.get(name) or knows_others(given):
            continue
        if not knows_others(_texts(role.command, working_files(job, base_directory, name))):
            return message(
                "framework: generic, so the {count} tasks of {role} are copies that are not told of each other (naming"
                " any framework, also generic, ends this line)",
                count=role.replicas,
                role=name,
            )
    return None


def _texts(command: str | Sequence[str], files: WorkingFiles) -> Iterable[str]:
    """Yield the text of a command, and those of the files that it names, and that scripts among them do."""
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
