"""Reads the scripts that a command runs, as far as the job's files are on this machine, and finds the launchers in
them.

It reads shell scripts, scripts that these run, and the commands that `make` would run. It reads no archives, and no
file of another machine.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from howdah.localfiles import regular_file
from howdah.spec import JobSpec
from howdah.spec.containers import requested_image, runtime_variables
from howdah.spec.launchers import LauncherCall, find_launches, without_redirections
from howdah.spec.shell_commands import (
    PARAMETERS,
    SHELLS,
    programs,
    runs_every_line,
    script_of_shell,
    simple_commands,
    unchanged,
)
from howdah.spec.values import dataclass
from howdah.spec.working_files import SPREAD, entries, file_name

_MAX_BYTES = 1 << 16
_MAX_SCRIPTS = 50
_SHELL_SCRIPT = re.compile(rf"#!.*\b({'|'.join(SHELLS)})\b")
_MAKE = ("make", "gmake")
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_RULE = re.compile(r"^([^\s:=#][^:=#\n]*)::?(?!=)([^\n]*)((?:\n(?:\t[^\n]*|[ \t]*(?:#[^\n]*)?))*)", re.MULTILINE)
_NUM_MACHINES = re.compile(r"""^\s*["']?num_machines["']?\s*[:=]\s*["']?(\d+)""", re.MULTILINE)


@dataclass(frozen=True)
class WorkingFiles:
    """The working directory of a task, as far as its files are on this machine."""

    entries: tuple[str, ...]
    """Entries of the job's `files`: paths, each perhaps with `#name`."""
    base_directory: Path
    """The directory to which they are relative."""
    has_own_files: bool = False
    """Whether absolute paths are paths of an image, not of this machine."""

    def text(self, path: str) -> str:
        """Return the text of a file, whose path is given as the task sees it; "" if it is not on this machine, or is no
        text."""
        try:
            place = next(self._places(posixpath.normpath(path)), None)
            return regular_file.read(place, _MAX_BYTES, 0.0).decode("utf-8") if place and place.is_file() else ""
        except (OSError, ValueError, RuntimeError):  # RuntimeError: `~nosuch/run.sh`
            return ""

    def _places(self, path: str) -> Iterator[Path]:
        if path.startswith("/"):
            if not self.has_own_files:
                yield Path(path)
            return
        top, _, rest = path.partition("/")
        for entry in self.entries:
            source, name = entry.partition("#")[0], file_name(entry)
            if "://" not in source and name in (top, SPREAD):
                place = self.base_directory / Path(source).expanduser() / (path if name == SPREAD else rest)
                if place.exists():
                    yield place


def launches_of_command(
    command: str | Sequence[str], files: WorkingFiles, variables: Mapping[str, str]
) -> list[LauncherCall]:
    """Return the launchers that a command runs directly or in its scripts. `variables` are those of the job."""
    found = list(find_launches(command, variables))
    is_certain, inherited = runs_every_line(command, False), unchanged(variables, command)
    waiting = [(script, is_certain, inherited) for script in _scripts(command, ".", files, variables)]
    seen = set[tuple[str, str]]()
    while waiting and len(seen) < _MAX_SCRIPTS:
        (name, directory, text, arguments), is_certain, inherited = waiting.pop(0)
        if (name, directory) in seen:
            continue
        seen.add((name, directory))
        parameters = {str(number): word for number, word in enumerate(arguments, 1) if number < 10}
        known = {**inherited, **parameters, "0": name, PARAMETERS: shlex.join(arguments)}
        found += find_launches(text, known, name, is_certain)
        is_certain, inherited = is_certain and runs_every_line(text, True), unchanged(inherited, text)
        waiting += [(script, is_certain, inherited) for script in _scripts(text, directory, files, known)]
    return [_with_number_of_file(launch, files) for launch in found]


def launches_of_job(job: JobSpec, base_directory: Path) -> dict[str, list[LauncherCall]]:
    """Return the launchers that each role's command runs directly or in its scripts."""
    return {
        name: launches_of_command(role.command, working_files(job, base_directory, name), {**job.env, **role.env})
        for name, role in job.roles.items()
    }


def working_files(job: JobSpec, base_directory: Path, role: str) -> WorkingFiles:
    """Return the working directory of the tasks of a role."""
    texts = tuple(text for _, kind, text, roles in entries(job) if kind == "file" and (not roles or role in roles))
    return WorkingFiles(texts, base_directory, bool(requested_image(runtime_variables(job, role))))


_Script = tuple[str, str, str, Sequence[str]]
"""A script's name, the directory in which it runs, its text, and its arguments."""


def _scripts(
    command: str | Sequence[str], directory: str, files: WorkingFiles, variables: Mapping[str, str]
) -> Iterator[_Script]:
    """Yield the scripts that a command, or the text of a script, runs from `directory`."""
    here = directory
    for words in simple_commands(command, variables):
        words = without_redirections(words)
        if words[:1] in (["cd"], ["pushd"]) and len(words) > 1 and "$" not in words[1]:
            here = posixpath.join(here, words[1])
        for number, at in enumerate(programs(words)):
            # A script that names its own directory by `pwd` before it goes elsewhere means the one where it began.
            found = list(_script_of_program(words[at:], number == 0, here, files))
            yield from found or _script_of_program(words[at:], number == 0, directory, files)


def _script_of_program(words: Sequence[str], is_first: bool, directory: str, files: WorkingFiles) -> Iterator[_Script]:
    program, arguments = words[0], words[1:]
    name = posixpath.basename(program)
    if name in _MAKE:
        yield from _recipes(arguments, directory, files)
        return
    is_read_by_shell = name in SHELLS or (program in (".", "source") and is_first)
    script = script_of_shell(arguments) if is_read_by_shell else program if "/" in program or not is_first else ""
    if not script or script.startswith("-"):
        return
    text = files.text(posixpath.join(directory, script))
    is_script = is_read_by_shell or _SHELL_SCRIPT.match(text) or (is_first and not text.startswith("#!"))
    if text and is_script and "\0" not in text:
        rest = list(arguments)
        yield posixpath.normpath(script), directory, text, rest[rest.index(script) + 1 :] if is_read_by_shell else rest


def _recipes(arguments: Sequence[str], directory: str, files: WorkingFiles) -> Iterator[_Script]:
    """Yield the scripts that `make` with these arguments runs: the lines of its targets and of their prerequisites."""
    names, targets, words = list(_MAKEFILES), list[str](), list(arguments)
    while words:
        word = words.pop(0)
        if word in ("-C", "-f") and words:
            directory, names = (
                (posixpath.join(directory, words.pop(0)), names) if word == "-C" else (directory, [words.pop(0)])
            )
        elif not word.startswith("-") and "=" not in word:
            targets.append(word)
    name = next((each for each in names if files.text(posixpath.join(directory, each))), "")
    rules = _RULE.findall(files.text(posixpath.join(directory, name)).replace("\\\n", " ")) if name else []
    if not targets:
        targets = [each for rule in rules[:10] for each in rule[0].split() if not each.startswith(".")][:1]
    lines: list[str] = []
    for target in targets:  # grows: what a target needs comes after it
        for of_rule, needed, recipe in rules:
            if target in of_rule.split():
                inline = needed.partition(";")
                targets += [each for each in inline[0].split() if each not in targets]
                lines += [inline[2], *(line.strip().lstrip("@-+") for line in recipe.split("\n"))]
    text = re.sub(r"\$\((\w+)\)", r"${\1}", "\n".join(lines).replace("$$", "$"))
    if text.strip():
        yield name, directory, text, ()


def _with_number_of_file(launch: LauncherCall, files: WorkingFiles) -> LauncherCall:
    """Add the number of machines to a launcher's call, as the option that it would be, if its file of options has that
    number."""
    words = launch.arguments
    for option in launch.launcher.files:
        for number, word in enumerate(words):
            name, is_given, value = word.partition("=")
            if name.lstrip("-").replace("-", "_") == option:
                text = files.text(value if is_given else "".join(words[number + 1 : number + 2]))
                if found := _NUM_MACHINES.search(text):
                    added = f"--{launch.launcher.counts[0]}={found[1]}"
                    at = 1 if words[:1] == ("launch",) else 0
                    return replace(launch, arguments=(*words[:at], added, *words[at:]))
    return launch
