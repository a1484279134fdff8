"""Says what may not be changed in a directory of stored checkpoints: the newest whole one stays until a newer one is
stored, also while a program writes that in its place."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence

from howdah.checkpoints.directory_snapshot import Stamp, is_log
from howdah.checkpoints.discovery import CheckpointTree, candidates, find, find_defect
from howdah.errors import StagingError
from howdah.spec import uris
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem


@dataclass(frozen=True)
class ReplacedCheckpoint:
    """The newest whole checkpoint in storage, in whose place a program has begun to write another."""

    written: tuple[str, ...]
    """The files that the program has written there and that are not stored."""
    is_whole: bool
    """All files of the new one are there and whole: it may replace the old one."""


class StoredDirectory:
    """The checkpoints at `uri`. `known` are the files that were stored or fetched: size and time (ns) here, size and
    time (ms) there, by their names in the local directory."""

    def __init__(self, uri: str, rule: str, known: Mapping[str, Sequence[int]]) -> None:
        self._uri, self._rule, self._known = uri, rule, known

    def find_replaced(
        self, path: str, seen: Collection[str], fresh: Collection[str], gone: Collection[str]
    ) -> ReplacedCheckpoint | None:
        """Return what storing a program's files would change of the newest whole checkpoint; None for nothing.

        `seen` are the finished files in the local directory `path`, `fresh` those of them that are not stored, `gone`
        those that were stored and are here no longer. One file always replaces another as a whole. The answer is right
        only if no other task stores files there: of a checkpoint of several tasks, none has all that is new, although
        each has fetched all that is old.

        Raises:
            StagingError, EngineUnavailable: the stored checkpoints can't be read.
        """
        if not any(name in self._known for name in (*fresh, *gone)):
            return None
        whole = find(filesystem(self._uri), self._uri, self._rule).checkpoint
        files = {uris.local_name(name, self._uri) for name in whole.files} if whole else set[str]()
        if whole is None or len(files) < 2 or not files <= self._known.keys():
            return None
        name = uris.local_name(whole.name, self._uri)
        written = [each for each in fresh if (each in files or _is_inside(each, name)) and not is_log(each)]
        if not written or not any(each in fresh or each in gone for each in files if not is_log(each)):
            return None
        return ReplacedCheckpoint(tuple(written), self._is_whole(path, name, seen))

    def _is_whole(self, path: str, name: str, seen: Collection[str]) -> bool:
        local = uris.of_local(path)
        tree = CheckpointTree(filesystem(local), local, self._rule)
        try:
            return any(
                each.name == name
                and all(file in seen or is_log(file) for file in each.files)
                and not find_defect(tree, each, self._rule)
                for each in candidates(tree, self._rule)
            )
        except StagingError:  # removed since it was listed
            return False

    def list_superseded(
        self, gone: Sequence[str], seen: Collection[str], local: Mapping[str, Stamp], stored: Collection[str]
    ) -> list[str]:
        """Return which of the files that are `gone` here may go there, too.

        `local` are all files that are here, `seen` the finished ones, `stored` those that have just been stored. The
        newest whole checkpoint stays, unless some of it has been replaced. A file that is newer than it, or of no known
        format, stays while a temporary or unfinished file may be its successor: until a newer one of its kind is
        stored.

        Raises:
            StagingError, EngineUnavailable: the stored checkpoints can't be read.
        """
        whole = find(filesystem(self._uri), self._uri, self._rule).checkpoint
        files = {uris.local_name(name, self._uri) for name in whole.files} if whole else set[str]()
        is_held = whole is not None and not files.intersection(stored)
        inside = uris.local_name(whole.name, self._uri) if whole else ""  # also behind links there
        unfinished_ns = max((stamp.modified_ns for name, stamp in local.items() if name not in seen), default=-1)
        newest = dict[str, int]()
        for name, stamp in local.items():
            kind = posixpath.splitext(name)[1]
            if name in seen:
                newest[kind] = max(stamp.modified_ns, newest.get(kind, 0))
        superseded = list[str]()
        for name in gone:
            _, local_ns, _, stored_ms = self._known[name]
            awaits_successor = newest.get(posixpath.splitext(name)[1], 0) <= local_ns <= unfinished_ns
            is_older = whole is not None and stored_ms <= whole.modified_ms
            is_part = name in files or (inside and _is_inside(name, inside))
            if not (is_held and is_part) and (is_older or not awaits_successor):
                superseded.append(name)
        return superseded


def _is_inside(name: str, directory: str) -> bool:
    """Return whether a file is in a checkpoint's directory; "" is the directory of all checkpoints."""
    return not directory or name.startswith(f"{directory}/")
