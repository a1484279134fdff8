"""What a user's path names, listed: files with their names below the task's directory.

As in Hadoop, names that begin with `_` or `.` are not data (`_SUCCESS`, `.crc`, half-written files), at any depth below
what was named; what the user names himself is taken whatever it is called.
"""

from __future__ import annotations

from collections.abc import Iterator

from howdah.spec import uris
from howdah.spec.staged import DataFile
from howdah.spec.values import dataclass
from howdah.storage.filesystem import Entry, FileSystem


@dataclass(frozen=True)
class Listing:
    """`found` tells whether anything is there at all: an empty directory is found, and has no files."""

    found: bool
    files: tuple[DataFile, ...] = ()


def listing(fs: FileSystem, uri: str) -> Listing:
    """All files that `uri` means: itself, those below it, or those of everything its pattern matches.

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
    """All files below a directory, hidden ones too: code has an `__init__.py`."""
    files = (_file(file, uris.below(file.uri, entry.uri)) for file in fs.walk(entry.uri))
    return tuple(sorted(files, key=lambda file: file.name))


def _files(fs: FileSystem, entry: Entry, prefix: str) -> Iterator[DataFile]:
    if not entry.is_dir:
        yield _file(entry, uris.name(entry.uri))
        return
    names = ((uris.below(file.uri, entry.uri), file) for file in fs.walk(entry.uri))
    for name, file in sorted((name, file) for name, file in names if not _is_hidden(name)):
        yield _file(file, prefix + name)


def _file(entry: Entry, name: str) -> DataFile:
    return DataFile(entry.uri, name, entry.size, entry.modified_ms, entry.etag)


def _is_hidden(name: str) -> bool:
    return any(part.startswith(("_", ".")) for part in name.split("/"))
