"""Lists the files that a user's path means, with their names below the task's directory.

As in Hadoop, names that begin with `_` or `.` are not data (`_SUCCESS`, `.crc`, half-written files), at any depth below
the path; the path itself may have any name.
"""

from __future__ import annotations

from collections.abc import Iterator

from howdah.spec import uris
from howdah.spec.staged import DataFile
from howdah.spec.values import dataclass
from howdah.storage.filesystem import Entry, FileSystem


@dataclass(frozen=True)
class Listing:
    """The files that a path means."""

    found: bool
    """Whether the path exists: an empty directory is found, and has no files."""
    files: tuple[DataFile, ...] = ()
    """The files, sorted by name."""


def listing(fs: FileSystem, uri: str) -> Listing:
    """List the files that `uri` means: itself, those below it, or those of everything that its pattern matches.

    Below a directory files are named by their paths in it. What a pattern matches keeps its own name, so that the
    files of several directories stay apart.
    """
    entry = fs.stat(uri)
    if entry is not None:
        return Listing(True, tuple(_files(fs, entry, "")))
    if not uris.is_pattern(uris.path(uri)):
        return Listing(False)
    matches = fs.glob(uri)
    files = (file for match in matches for file in _files(fs, match, uris.name(match.uri) + "/"))
    return Listing(bool(matches), tuple(files))


def tree(fs: FileSystem, entry: Entry) -> tuple[DataFile, ...]:
    """Return all files below a directory, hidden ones too: code has an `__init__.py`."""
    files = (_file(file, uris.below(file.uri, entry.uri)) for file in fs.walk(entry.uri))
    return tuple(sorted(files, key=lambda file: file.name))


def _files(fs: FileSystem, entry: Entry, prefix: str) -> Iterator[DataFile]:
    if not entry.is_dir:
        yield _file(entry, uris.name(entry.uri))
        return
    names = ((uris.below(file.uri, entry.uri), file) for file in fs.walk(entry.uri))
    for name, file in sorted(names):
        if not any(part.startswith(("_", ".")) for part in name.split("/")):
            yield _file(file, prefix + name)


def _file(entry: Entry, name: str) -> DataFile:
    return DataFile(entry.uri, name, entry.size, entry.modified_ms, entry.etag)
