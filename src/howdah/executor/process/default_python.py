"""What `python` means on a node that has only `python3`: the Python that runs the executor.

Commands of the field's older systems begin with `python`, which Debian and Red Hat no longer install. The program of
that name stands at the end of PATH, so that any other goes before it. It is a script, not a link: a virtual environment
is known by the path by which its interpreter was called.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from typing import Dict, Mapping, Tuple, Union

NAME = "python"
_AS_A_WORD = re.compile(rf"(?<![\w./-]){NAME}(?![\w./-])")


def is_missing(environment: Mapping[str, str]) -> bool:
    """Whether PATH leads to no `python`."""
    return bool(sys.executable) and shutil.which(NAME, path=environment.get("PATH", os.defpath)) is None


def with_python(environment: Mapping[str, str], folder: str) -> Dict[str, str]:
    """`environment` with a `python` at the end of its PATH, made in the private directory `folder`.

    Raises:
        OSError: it can't be made.
    """
    programs = os.path.join(folder, "bin")
    os.makedirs(programs, mode=0o700, exist_ok=True)
    script = os.path.join(programs, NAME)
    with open(f"{script}.new", "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    os.chmod(f"{script}.new", 0o700)
    os.replace(f"{script}.new", script)
    return {**environment, "PATH": os.pathsep.join((environment.get("PATH", os.defpath), programs))}


def is_named_by(command: Union[str, Tuple[str, ...]]) -> bool:
    """Whether the command names `python` itself; what its scripts call is not known."""
    return _AS_A_WORD.search(command if isinstance(command, str) else " ".join(command)) is not None


def explanation() -> str:
    """One line for the task's log."""
    return f"PATH has no {NAME!r}: here it means {sys.executable} (Python {sys.version.split()[0]})"
