"""The Python that a job names by its path: it is found on this machine, and becomes `python` and `python3` of the
programs."""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
from pathlib import Path

from howdah.staging import archive
from howdah.storage.content_cache import local_directory

NAMES = ("python", "python3")
"""The names by which programs call their interpreter."""


def locate(python: str, base_directory: Path) -> str:
    """Return the absolute path of the interpreter that `python` names: relative paths begin in `base_directory`, and of
    a virtual environment's directory it is `bin/python`. It need not exist."""
    path = str(base_directory.absolute() / python)
    return os.path.join(path, "bin", "python") if os.path.isdir(path) else path  # noqa: PTH112, PTH118


def is_interpreter(path: str) -> bool:
    """Return whether this path is a program on this machine; a directory is not."""
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113


def has_both_names(path: str) -> bool:
    """Return whether `python` and `python3` in the directory of an interpreter of this machine are the same program."""
    beside = [Path(path).with_name(name) for name in NAMES]
    with contextlib.suppress(OSError):
        return all(each.samefile(path) for each in beside)
    return False


def pack_names(path: str) -> Path:
    """Pack a `bin` in which `python` and `python3` run the interpreter at `path`; return the archive. They are scripts,
    not links: an interpreter finds its virtual environment by the path by which it was called.

    Raises:
        StagingError: there is no room.
    """
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made, "bin")
        directory.mkdir()
        for name in NAMES:
            script = directory / name
            script.write_text(f'#!/bin/sh\nexec {shlex.quote(path)} "$@"\n', encoding="utf-8")
            script.chmod(0o755)
        found = archive.members(Path(made))
        target = local_directory() / "packed" / f"{archive.digest_of(found)}.tar.gz"
        if not target.exists():
            archive.write(found, target)
    return target
