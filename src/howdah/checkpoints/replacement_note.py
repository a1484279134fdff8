"""Notes in a directory of checkpoints which files of one are about to be replaced, each by a rename: a process that is
killed between two renames leaves files of two saves, which may look complete. The next copy replaces the others, and
removes the note."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping

from howdah.spec import uris
from howdah.storage.filesystem import Entry, FileSystem

NAME = ".howdah-replacing"
MAX_BYTES = 16 << 20

Files = Mapping[str, "Entry | None"]
"""The entry that is stored under each name, by its path below the directory; None for none."""


@contextlib.contextmanager
def replacing(fs: FileSystem, directory: str, files: Files) -> Iterator[None]:
    """Keep a note while `files`, which have their names of the local directory, are replaced; after an exception it
    stays.

    Raises:
        StagingError, EngineUnavailable: it can't be written or removed.
    """
    uri = uris.join(directory, NAME)
    earlier = read(fs, uri) if fs.exists(uri) else {}
    there = {name: fs.stat(uris.join(directory, name)) for name in earlier}
    unfinished = earlier if find_torn(earlier, there) else {}
    before = {uris.stored_name(name, directory): _state(entry) for name, entry in files.items()}
    noted = {**before, **unfinished}
    if len(noted) < 2:  # one file always replaces another as a whole
        yield
        return
    fs.write_in_place(uri, json.dumps(noted).encode())
    yield
    fs.delete(uri)


def read(fs: FileSystem, uri: str) -> dict[str, object]:
    """Return the content of a note for each file; nothing if its writer was killed before it had replaced any."""
    try:
        found = json.loads(fs.head(uri, MAX_BYTES))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def find_torn(noted: Mapping[str, object], there: Files) -> set[str]:
    """Return the noted files, if some of those in `there` are replaced and others are not."""
    unchanged = {name for name, state in noted.items() if _state(there.get(name)) == state}
    return {*noted} if 0 < len(unchanged) < len(noted) else set()


def _state(entry: Entry | None) -> list[object] | None:
    """Return a value that changes when a file is replaced. A store may report parts of a second in a listing, but not
    for a single file."""
    return [entry.size, entry.modified_ms // 1000, entry.etag] if entry is not None else None
