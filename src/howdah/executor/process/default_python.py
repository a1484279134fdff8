"""Provides a `python` on a node that has only `python3`: the Python that runs the executor.

Commands of older systems begin with `python`, which Debian and Red Hat no longer install. The program of that name
comes last on PATH, so that any other one is found first. It is a script, not a link: an interpreter finds its virtual
environment by the path by which it was called.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from typing import Dict, Mapping, Tuple, Union

NAME = "python"
_NAMED = re.compile(rf"(?<![\w./-]){NAME}(?![\w./-])")


def is_missing(environment: Mapping[str, str]) -> bool:
    """Return whether PATH has no `python`."""
    return bool(sys.executable) and shutil.which(NAME, path=environment.get("PATH", os.defpath)) is None


def with_python(environment: Mapping[str, str], directory: str) -> Dict[str, str]:
    """Make a `python` in the private directory `directory`, and add it to the end of PATH in `environment`.

    Raises:
        OSError: the script can't be written.
    """
    programs = os.path.join(directory, "bin")
    os.makedirs(programs, mode=0o700, exist_ok=True)
    script = os.path.join(programs, NAME)
    with open(f"{script}.new", "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    os.chmod(f"{script}.new", 0o700)
    os.replace(f"{script}.new", script)
    return {**environment, "PATH": os.pathsep.join((environment.get("PATH", os.defpath), programs))}


def is_named_by(command: Union[str, Tuple[str, ...]]) -> bool:
    """Return whether the command itself names `python`; the commands of its scripts are not known."""
    return _NAMED.search(command if isinstance(command, str) else " ".join(command)) is not None


def explanation() -> str:
    """Return one line for the task's log."""
    return f"PATH has no {NAME!r}: here it means {sys.executable} (Python {sys.version.split()[0]})"
