"""Reads the annotations of a home's jobs into the index, but only those that have changed."""

from __future__ import annotations

import time

from howdah.api import job_annotations
from howdah.errors import StagingError
from howdah.history import index_annotations
from howdah.history.index import Index
from howdah.history.index_annotations import ReadAnnotation
from howdah.spec import uris
from howdah.storage.filesystem import ConnectionBroken, Entry, FileSystem

SETTLED_MS = 2000
"""Milliseconds after which a change of a file also changes its time."""
LIST_S = 10.0
"""Seconds after which a directory without times, on an object store, is listed again."""
MAX_AT_ONCE = 500
"""The most files that one scan of a home reads; the next scan reads the others."""


class AnnotationScan:
    """Remembers which directories of annotations have been listed."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._listed: dict[str, tuple[int, float]] = {}

    def scan(self, files: FileSystem, home: str, owner: str) -> None:
        """Bring the annotations of `home`, which `owner` owns, up to date.

        Raises:
            EngineUnavailable: the file system does not answer.
            sqlite3.Error: the index can't be written.
        """
        directory = uris.join(home, job_annotations.DIRECTORY)
        try:
            entry = files.stat(directory)
            modified_ms = entry.modified_ms if entry is not None else 0
            if self._is_unchanged(home, modified_ms):
                return
            own = job_annotations.as_home_owner(files, home, owner)
            listing = own.children(directory) if entry is not None and entry.is_dir else []
            done = self._update(own, home, {job_annotations.job_of_file(each.uri): each for each in listing})
        except StagingError:  # nobody but the owner may read them
            return
        if done and time.time() * 1000 - modified_ms > SETTLED_MS:
            self._listed[home] = (modified_ms, time.monotonic())

    def _is_unchanged(self, home: str, modified_ms: int) -> bool:
        known, at = self._listed.get(home, (-1, 0.0))
        return known == modified_ms and (modified_ms > 0 or time.monotonic() - at < LIST_S)

    def _update(self, files: FileSystem, home: str, found: dict[str, Entry]) -> bool:
        """Read the files that have changed; return whether all of them are read."""
        known = index_annotations.known_files(self._index.connection, home)
        now_ms, read = time.time() * 1000, []
        changed = [
            (job, entry.modified_ms, entry.size)
            for job, entry in found.items()
            if job and known.get(job) != (entry.modified_ms, entry.size)
        ]
        for job, modified_ms, size in changed[:MAX_AT_ONCE]:
            settled = modified_ms if now_ms - modified_ms > SETTLED_MS else 0
            try:
                annotation = job_annotations.read(files, home, job)
            except ConnectionBroken:
                raise
            except (StagingError, ValueError, ArithmeticError):  # a damaged annotation must not stop other jobs'
                settled, annotation = 0, job_annotations.NONE
            read.append(ReadAnnotation(job, settled, size, annotation))
        gone = known.keys() - found.keys()
        if read or gone:
            self._index.put_annotations(home, read, gone)
        return len(changed) <= MAX_AT_ONCE
