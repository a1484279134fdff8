"""Holds copies of files beside those that they will replace in storage, until all of them are there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from howdah.checkpoints.directory_snapshot import Stamp
from howdah.spec import uris
from howdah.storage.filesystem import FileSystem, Sink, temporary_name


class FilesBeside:
    """Copies that wait for their names; each is known by the URI of the file that it will replace."""

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._copies = dict[str, tuple[Stamp, str]]()

    @property
    def is_empty(self) -> bool:
        """Return whether no copy waits."""
        return not self._copies

    def holds(self, uri: str, stamp: Stamp) -> bool:
        """Return whether the copy for `uri` is there, of a file with this stamp."""
        return self._copies.get(uri, (None, ""))[0] == stamp

    @contextlib.contextmanager
    def writing(self, uri: str, stamp: Stamp, mode: int) -> Iterator[Sink]:
        """Write a copy in place of an earlier one for the same URI. If the block ends by an exception, nothing
        stays."""
        self._remove(uri)
        temporary = uris.join(uris.parent(uri), temporary_name(uris.name(uri)))
        with self._fs.writing_beside(uri, temporary, mode) as sink:
            yield sink
        self._copies[uri] = stamp, temporary

    def reveal(self, uri: str) -> None:
        """Give a copy its name.

        Raises:
            StagingError, EngineUnavailable: it can't be renamed.
        """
        self._fs.rename(self._copies[uri][1], uri, overwrite=True)
        del self._copies[uri]

    def remove_all(self) -> None:
        """Remove the copies that did not get their names."""
        for uri in [*self._copies]:
            self._remove(uri)

    def _remove(self, uri: str) -> None:
        _, temporary = self._copies.pop(uri, (None, ""))
        if temporary:
            with contextlib.suppress(Exception):
                self._fs.delete(temporary)
