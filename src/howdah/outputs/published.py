"""Knows the directories that jobs of howdah have published, by what is written in their `_SUCCESS` or `_FAILED`.

Spark and MapReduce leave a `_SUCCESS`, too, which is empty or JSON. What a person has added to a published directory,
or changed in it, is his: the file says how much the job has published, and nothing may be newer than it.
"""

from __future__ import annotations

from howdah.spec import uris
from howdah.spec.job import SUCCESS
from howdah.storage.filesystem import FileSystem

FAILED = "_FAILED"
"""A file in what is kept of a failed job."""
_MARKS = (SUCCESS, FAILED)
_WORDS = b"published by howdah: "


def write_mark(fs: FileSystem, directory: str, name: str) -> None:
    """Write the file `name`, SUCCESS or FAILED, into a directory that is complete, and that nobody reads yet."""
    text = _mark(fs, directory)
    sink = fs.create(uris.join(directory, name))  # in its place: who dies here leaves no file of another name
    sink.write(text)
    sink.close()


def is_published(fs: FileSystem, directory: str) -> bool:
    """Return whether a job has published the directory, whatever was done to it since."""
    return _find_mark(fs, directory) is not None


def is_as_published(fs: FileSystem, directory: str) -> bool:
    """Return whether the directory holds what a job has published there, and nothing else."""
    found = _find_mark(fs, directory)
    if found is None or found[1] != _mark(fs, directory):
        return False
    # An object store renames by copying each file, and each copy is new.
    uri, _ = found
    mark = fs.stat(uri)
    return mark is not None and (
        not fs.appends_cheaply(uri) or all(entry.modified_ms <= mark.modified_ms for entry in fs.walk(directory))
    )


def _find_mark(fs: FileSystem, directory: str) -> tuple[str, bytes] | None:
    for uri in (uris.join(directory, name) for name in _MARKS):
        if fs.exists(uri) and (text := fs.head(uri, 100)).startswith(_WORDS):
            return uri, text
    return None


def _mark(fs: FileSystem, directory: str) -> bytes:
    """Return the mark for what the directory holds besides marks and howdah's own files."""
    found = {uris.below(entry.uri, directory): entry.size for entry in fs.walk(directory)}
    sizes = [size for name, size in found.items() if name not in _MARKS and not name.startswith(".howdah-")]
    return _WORDS + f"{len(sizes)} files, {sum(sizes)} bytes\n".encode()
