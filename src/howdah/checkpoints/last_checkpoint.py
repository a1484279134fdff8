"""Decides which files in a directory of stored checkpoints must not change: the newest complete checkpoint stays until
a newer one is stored, even while a program writes the new one in its place."""

from __future__ import annotations

import contextlib
import posixpath
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from howdah.checkpoints import directory_snapshot
from howdah.checkpoints.directory_snapshot import Stamp, is_log
from howdah.checkpoints.discovery import (
    CheckpointTree,
    FoundCheckpoint,
    candidates,
    find_defect,
    find_newest,
    is_part_of,
    names_left_out,
)
from howdah.checkpoints.file_validation import is_useful_alone
from howdah.errors import StagingError
from howdah.spec import uris
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Entry

ABANDONED_S = 3600.0
"""The age in seconds from which a half-written file has no writer any more, whatever the clocks of two machines
show."""


@dataclass(frozen=True)
class ReplacedCheckpoint:
    """The newest whole checkpoint in storage, in whose place a program has begun to write another."""

    written: tuple[str, ...]
    """The files that the program has written there and that are not stored."""
    is_whole: bool
    """Whether all files of the new checkpoint exist and are complete: then it may replace the old one."""


class NewCheckpoint:
    """A checkpoint that a program has written at `path` in place of the checkpoint `old`. `seen` are those of its files
    that are finished and can be stored."""

    def __init__(self, path: str, rule: str, old: FoundCheckpoint, seen: Mapping[str, Stamp]) -> None:
        local = uris.of_local(path)
        entries = (
            Entry(uris.join(local, name), stamp.size, stamp.modified_ns // 10**6) for name, stamp in seen.items()
        )
        self._rule, self._old = rule, old
        self._tree = CheckpointTree(filesystem(local), local, rule, entries)
        self._all = candidates(self._tree, rule)
        self._found = next((each for each in self._all if each.name == old.name), None)

    def has_part(self, name: str) -> bool:
        """Return whether a file is a part of the new checkpoint, or of the old one."""
        checkpoints = [self._old, *([self._found] if self._found else [])]
        return not is_log(name) and any(
            (name in each.files or _is_inside(name, each.name)) and is_part_of(each, name) for each in checkpoints
        )

    def is_whole(self) -> bool:
        """Return whether the new checkpoint is complete."""
        return self._found is not None and self._is_whole(self._found)

    def is_another(self, written: Collection[str]) -> bool:
        """Return whether some of the written files are a complete checkpoint by themselves, for example in another
        format."""
        return any(self._is_whole(each) for each in self._all if not {*written}.isdisjoint(each.files))

    def _is_whole(self, found: FoundCheckpoint) -> bool:
        try:
            return not find_defect(self._tree, found, self._rule)
        except StagingError:  # removed since it was listed
            return False


class StoredDirectory:
    """The checkpoints at `uri`. `known` are the files that were stored or fetched: size and time (ns) here, size and
    time (ms) there, by their names in the local directory."""

    def __init__(self, uri: str, rule: str, known: Mapping[str, Sequence[int]]) -> None:
        self._uri, self._rule, self._known = uri, rule, known
        self._abandoned: list[str] = []

    def find_replaced(
        self,
        path: str,
        root: str,
        seen: Mapping[str, Stamp],
        fresh: Collection[str],
        gone: Collection[str],
        last: bool = False,
    ) -> ReplacedCheckpoint | None:
        """Return the changes to the newest complete checkpoint that storing a program's files would cause; None for
        none.

        `seen` are the finished files in the local directory `path`, whose links lead no further than to `root`; `fresh`
        are those of them that are not stored; `gone` are files that were stored and no longer exist here; `last` says
        that the program has ended. One file always replaces another as a whole. The answer is right only if no other
        task stores files there: if a checkpoint belongs to several tasks, none of them has all new files, although each
        has fetched all old ones.

        Raises:
            StagingError, EngineUnavailable: the stored checkpoints can't be read.
        """
        if not any(name in self._known for name in (*fresh, *gone)):
            return None
        tree = self.list_tree()
        tree.note = ""  # the files of an interrupted replacement are replaced as usual
        whole = self._find_whole(tree)
        files = {name for name in whole.files if is_part_of(whole, name) and not is_log(name)} if whole else set[str]()
        if whole is None or len(whole.files) < 2 or not files <= self._known.keys():
            return None
        new = NewCheckpoint(path, self._rule, whole, seen)
        written = tuple(name for name in fresh if new.has_part(name))
        if not written or not any(name in fresh or name in gone for name in files):
            return None
        others = directory_snapshot.list_files(path, root, names_left_out(self._rule))
        unfinished = {name: stamp for name, stamp in others.items() if name not in seen and new.has_part(name)}
        begun_ns = min(seen[name].modified_ns for name in written)
        # When the program has ended, nobody completes files that are new: store what is complete without them.
        awaited = {name: stamp for name, stamp in unfinished.items() if not last or name in files}
        is_awaited = any(self._is_awaited(name, stamp, files, begun_ns) for name, stamp in awaited.items())
        is_whole = not is_awaited and new.is_whole()
        if last and not is_whole and not unfinished and files <= {*gone} and new.is_another(written):
            return None  # the old one was given up
        return ReplacedCheckpoint(written, is_whole)

    def list_tree(self) -> CheckpointTree:
        """Return the stored files.

        Raises:
            StagingError, EngineUnavailable: it can't be read.
        """
        tree = CheckpointTree(filesystem(self._uri), self._uri, self._rule)
        old_ms = (time.time() - ABANDONED_S) * 1000
        self._abandoned = [entry.uri for entry in tree.half_written if 0 < entry.modified_ms < old_ms]
        return tree

    def _find_whole(self, tree: CheckpointTree) -> FoundCheckpoint | None:
        """Return the newest whole checkpoint, with the names that its files have here."""
        found = find_newest(tree, self._rule).checkpoint
        if found is None:
            return None
        files = tuple(uris.local_name(name, self._uri) for name in found.files)
        return replace(found, name=uris.local_name(found.name, self._uri), files=files)

    def remove_abandoned(self) -> None:
        """Remove half-written files of killed processes that `find_replaced` or `list_tree` has seen."""
        for uri in self._abandoned:
            with contextlib.suppress(StagingError):
                filesystem(uri).delete(uri)

    def _is_awaited(self, name: str, now: Stamp, files: Collection[str], begun_ns: int) -> bool:
        """Return whether an unfinished file may be a part of the checkpoint that is written, since `begun_ns`, in place
        of `files`. It is not if it is a log under another name, which has grown since it was stored; if it existed when
        these files were stored, or before the others were begun; or if it was not written for so long that its save
        must have failed."""
        if name in files:
            return not (is_useful_alone(name) and now.size > self._known[name][0])
        before_ns = max(begun_ns, *(self._known[each][1] for each in files), int((time.time() - ABANDONED_S) * 10**9))
        return not is_useful_alone(name) and now.modified_ns > before_ns

    def list_superseded(
        self, gone: Sequence[str], seen: Collection[str], local: Mapping[str, Stamp], stored: Collection[str]
    ) -> list[str]:
        """Return the files among those `gone` here that may be removed there, too.

        `local` are all files here, `seen` the finished ones, `stored` those that have just been stored. The newest
        complete checkpoint stays, unless some of it has been replaced. A file that is newer than it, or of no known
        format, stays while a temporary or unfinished file may be its successor, that is until a newer file of its kind
        is stored.

        Raises:
            StagingError, EngineUnavailable: the stored checkpoints can't be read.
        """
        whole = self._find_whole(CheckpointTree(filesystem(self._uri), self._uri, self._rule))
        files = {name for name in whole.files if is_part_of(whole, name)} if whole else set[str]()
        is_held = whole is not None and not any(name in files and not is_log(name) for name in stored)
        inside = whole.name if whole else ""  # also behind links there
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
