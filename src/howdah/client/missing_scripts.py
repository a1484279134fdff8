"""Finds scripts that a command runs and that the job does not contain, before anything is submitted.

It reports only certain mistakes: a single program without shell syntax, whose script has a relative path.
"""

from __future__ import annotations

import posixpath
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from howdah.errors import Mistake
from howdah.spec import JobSpec, StagedJob
from howdah.spec.containers import requested_image, runtime_variables
from howdah.spec.working_files import packed_file

_PYTHON = re.compile(r"(python|pypy)[0-9.]*")
_SHELL = re.compile(r"(ba|da|z|k)?sh")
_SYNTAX = re.compile(r"[][|&;<>()$`\\*?{}~!#=\n]")
_PLAIN = {"python": re.compile(r"-[bBdEIOPqsSuvx]+|-[WX].+"), "shell": re.compile(r"-[aefnuvx]+")}
"""Options without a separate value, after which the script comes."""
_WITH_VALUE = ("-W", "-X")
"""Options of Python whose value is the next word."""


def missing_scripts(job: JobSpec, staged: StagedJob, base_directory: Path) -> Iterator[Mistake]:
    """Yield a mistake for each role whose command runs a script that will not be in its working directory."""
    for name, role in job.roles.items():
        script = "" if requested_image(runtime_variables(job, name)) else _script(role.command)
        path = posixpath.normpath(script) if script else ""
        if not path or path.startswith(("/", "../")):
            continue
        files = staged.files_of(name)
        places = [packed_file(file.name) or file.into if file.kind == "spread" else file.name for file in files]
        places += [posixpath.normpath(each.to) for each in job.inputs]
        brought = {place.partition("/")[0] for place in places}
        if not brought & {"", ".", path.partition("/")[0]}:
            there = (base_directory / path).is_file()
            hint = "add it to `files`" if there else f"there is no such file in {base_directory} either"
            yield Mistake(f"roles.{name}.command", f"runs {script!r}, which the job does not bring: {hint}")


def _script(command: str | Sequence[str]) -> str:
    """Return the script that a command runs by an interpreter or by its path; "" if there is none, or if that is not
    certain."""
    if isinstance(command, str):
        if _SYNTAX.search(command):
            return ""
        try:
            command = shlex.split(command)
        except ValueError:
            return ""
    if not command:
        return ""
    program, *words = command
    name = posixpath.basename(program)
    kind = "python" if _PYTHON.fullmatch(name) else "shell" if _SHELL.fullmatch(name) else ""
    if not kind:
        return program if "/" in program else ""
    while words and words[0][:1] in ("-", "+"):
        option = words.pop(0)
        if kind == "python" and option in _WITH_VALUE and words:
            words.pop(0)
        elif not _PLAIN[kind].fullmatch(option):
            return ""
    script = words[0] if words else ""
    return "" if kind == "shell" and shutil.which(script) else script  # a shell looks there, too
