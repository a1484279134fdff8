"""Keeps the names of empty directories in a file, because object stores have no directories."""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Collection
from pathlib import Path

from howdah.spec import uris
from howdah.storage.filesystem import FileSystem

EMPTY = ".howdah-empty-directories.json"
"""The file with the names of empty directories, in a directory that is kept whole and in its copy."""


def make_empty_directories(fs: FileSystem, uri: str, path: str, there: Collection[str], is_kept_whole: bool) -> None:
    """Make the directories of `there`, which exist at `uri`, below `path`. In a directory that is kept whole, also make
    those that are only named there.

    Raises:
        OSError: they can't be made.
    """
    listed = uris.join(uri, EMPTY)
    names = [uris.local_name(name, uri) for name in there]
    is_listed = is_kept_whole and fs.exists(listed)
    if is_listed:
        names += [uris.check_inner_name(str(name), listed) for name in json.loads(fs.read_bytes(listed))]
    for name in names:
        if not os.path.lexists(os.path.join(path, name)):  # noqa: PTH118
            Path(path, name).mkdir(parents=True, exist_ok=True)
    if is_kept_whole and (names or is_listed):
        Path(path, EMPTY).write_text(json.dumps(sorted({*names})), "utf-8")


def store_empty_directories(fs: FileSystem, uri: str, path: str, names: list[str]) -> None:
    """Store the names of the empty directories below `path`, and remove at `uri` those that have gone.

    Raises:
        OSError: they can't be noted here.
    """
    known = Path(path, EMPTY)
    before = _read_empty(known)
    if before == {*names}:
        return
    remove_empty_directories(fs, uri, path, (before or set()) - {*names})
    data = json.dumps(names).encode()
    fs.mkdirs(uri)
    fs.write_bytes(uris.join(uri, EMPTY), data)
    known.write_bytes(data)


def remove_empty_directories(fs: FileSystem, uri: str, path: str, directories: Collection[str]) -> None:
    """Remove empty directories at `uri` that are not below `path`, and those that contained only such directories."""
    for name in sorted(directories, reverse=True):
        while name and not os.path.isdir(os.path.join(path, name)):  # noqa: PTH112, PTH118
            stored = uris.join(uri, uris.stored_name(name, uri))
            found = fs.stat(stored)  # an object store has no directories
            if found is None or not found.is_dir or fs.children(stored):
                break
            fs.delete(stored)
            name = posixpath.dirname(name)


def _read_empty(path: Path) -> set[str] | None:
    """Return the names in a list of empty directories; None if it is damaged."""
    try:
        return set(map(str, json.loads(path.read_bytes()))) if path.exists() else set()
    except (ValueError, TypeError):
        return None
