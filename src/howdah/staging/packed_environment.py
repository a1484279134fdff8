"""Finds the directory with `bin` in a packed environment: it may lie below a directory of its own."""

from __future__ import annotations

import re
import tarfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

MAX_MEMBERS, LIMIT_S = 5000, 3.0
"""The most members of an archive that are examined, and the seconds for that: the first members suffice."""
_BIN = re.compile(r"(?:\./)?(?:([^/]+)/)?bin/.")


def find_top(archive: Path) -> str:
    """Return the directory of the archive that has the environment's `bin`; "" if the archive itself has it, or if its
    first members do not show it."""
    until = time.monotonic() + LIMIT_S
    try:
        for number, name in enumerate(_names(archive)):
            if found := _BIN.match(name):
                return found[1] or ""
            if number > MAX_MEMBERS or time.monotonic() > until:
                return ""
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error):  # whatever unpacks it reports it
        return ""
    return ""


def _names(archive: Path) -> Iterator[str]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            yield from packed.namelist()
        return
    with tarfile.open(archive, "r|*") as stream:
        for member in stream:
            yield member.name
