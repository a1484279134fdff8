"""Recognises directories that jobs of howdah have published, and whether they are unchanged since.

Spark and MapReduce leave a `_SUCCESS`, too, which is empty or JSON; that of a job lists what the job has published.
Files that a person has added or changed since belong to that person. The snapshots in a directory don't count: a later
job takes them along.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection

from howdah.errors import StagingError
from howdah.spec import uris
from howdah.spec.job import SUCCESS
from howdah.storage.filesystem import FileSystem

FAILED = "_FAILED"
"""A file in the outputs that are kept of a failed job."""
_WORDS = b"published by howdah"


def begin_mark(fs: FileSystem, directory: str, name: str) -> None:
    """Write the file `name`, SUCCESS or FAILED, into a directory that is complete."""
    fs.write_in_place(uris.join(directory, name), _WORDS + b"\n")


def complete_mark(fs: FileSystem, directory: str, name: str, snapshots: Collection[str] = (), marker: str = "") -> None:
    """Add the directory's content to the mark once the directory is in its place: an object store makes new files of
    those that it renames. `marker` is the name of a file that will be removed."""
    fs.write_in_place(uris.join(directory, name), _content(fs, directory, snapshots, {name, marker}))


def is_published(fs: FileSystem, directory: str) -> bool:
    """Return whether a job has published the directory, whatever has changed in it since."""
    return _find_mark(fs, directory) is not None


def is_as_published(fs: FileSystem, directory: str, snapshots: Collection[str] = ()) -> bool:
    """Return whether the directory holds exactly what a job has published there, except `snapshots`."""
    found = _find_mark(fs, directory)
    return found is not None and found[1] == _content(fs, directory, snapshots, {found[0]})


def _find_mark(fs: FileSystem, directory: str) -> tuple[str, bytes] | None:
    for name in (SUCCESS, FAILED):
        uri = uris.join(directory, name)
        entry = fs.stat(uri)
        if entry is not None and not entry.is_dir:
            with contextlib.suppress(StagingError):  # a user who may not read it has not written it
                if (text := fs.head(uri, 200)).startswith(_WORDS):
                    return name, text
    return None


def _content(fs: FileSystem, directory: str, snapshots: Collection[str], left_out: Collection[str]) -> bytes:
    """Return the mark for the directory's content, including links that lead nowhere, and empty directories."""
    below = tuple(f"{uri.rstrip('/')}/" for uri in snapshots)
    rows = list[str]()
    size = 0
    for entry in fs.list_tree(directory, lambda path, reason: rows.append(f"{path}\0{reason}")):
        name = uris.below(entry.uri, directory)
        if name not in left_out and not entry.uri.startswith(below):
            rows.append(f"{name}\0{entry.size}\0{entry.modified_ms * (not entry.is_dir)}\0{entry.etag}")
            size += entry.size
    digest = hashlib.sha256("\n".join(sorted(rows)).encode("utf-8", "surrogateescape")).hexdigest()
    return _WORDS + f": {len(rows)} files, {size} bytes, {digest}\n".encode()
