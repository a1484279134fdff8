"""Reads only the files of one user, for a server whose rights exceed those of the users who name the files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from howdah.errors import StagingError
from howdah.spec import uris
from howdah.spec.message import Message, message
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Entry, FileSystem

NOBODY = "-"
"""The owner of files on a file system without owners, such as an object store."""


def files_of(owner: str, uri: str, conf_dir: str = "") -> FileSystem:
    """Return the file system of `uri` by the Hadoop configuration in `conf_dir`, restricted to files of `owner`; ""
    means everybody's."""
    files = filesystem(uri, conf_dir)
    return FilesOfOwner(files, owner) if owner else files


class FilesOfOwner(FileSystem):
    """A read-only file system that hides files of other owners, whatever leads to them: a link, or a directory that the
    owner shares. `others` counts the files that `walk` and `children` left out."""

    def __init__(self, files: FileSystem, owner: str) -> None:
        self._files, self._owner, self.others = files, owner, 0

    def stat(self, uri: str) -> Entry | None:
        entry = self._files.stat(uri)
        if entry is not None and not entry.is_dir:
            self._check(uri, entry.owner or NOBODY)
        return entry

    def children(self, directory: str) -> list[Entry]:
        return list(self._own(self._files.children(directory)))

    def walk(self, directory: str) -> Iterator[Entry]:
        return self._own(self._files.walk(directory))

    def glob(self, pattern: str) -> list[Entry]:
        return list(self._own(self._files.glob(pattern)))

    def open_read(self, uri: str) -> BinaryIO:
        self.stat(uri)
        file = self._files.open_read(uri)
        if uris.split(uri)[0] == "file":  # the path may lead elsewhere by now
            try:
                self._check(uri, str(os.fstat(file.fileno()).st_uid))
            except StagingError:
                file.close()
                raise
        return file

    def iter_chunks(self, uri: str, start: int = 0) -> Iterator[bytes]:
        if uris.split(uri)[0] == "file":
            return super().iter_chunks(uri, start)  # open_read checks the file that it has opened
        self.stat(uri)
        return self._files.iter_chunks(uri, start)

    def stat_flushed(self, entries: Sequence[Entry]) -> list[Entry]:
        return self._files.stat_flushed(entries)

    def why_not_flushed(self) -> str:
        return self._files.why_not_flushed()

    def why_incomplete(self) -> str:
        """Return, for people, which files were not seen; "" when all were."""
        if not self.others:
            return ""
        return message("{count} files are not shown: {reason}", count=self.others, reason=self._reason)

    def _own(self, entries: Iterator[Entry] | list[Entry]) -> Iterator[Entry]:
        for entry in entries:
            if (entry.owner or NOBODY) == self._owner:
                yield entry
            else:
                self.others += 1

    def _check(self, uri: str, owner: str) -> None:
        if owner != self._owner:
            raise StagingError(message("{file} is not shown: {reason}", file=uri, reason=self._reason))

    @property
    def _reason(self) -> Message:
        if self._owner == NOBODY:
            return message("the job's own log has no owner, and this file has one")
        return message("only files of {user}, who owns the job's log, are shown of this job", user=self._owner)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise StagingError("a file system that can only be read")

    create = append = mkdirs = rename = delete = chmod = touch = _refuse
