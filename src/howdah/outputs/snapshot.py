"""`python -m howdah.outputs.snapshot take|publish|discard`: snapshots of an output while its program runs.

    <temporary>/<name>/<part>/    what one task's executor copies (`take`), and last its _SAVED
    <to><name>                    the complete snapshot, renamed by the master when all tasks are done (`publish`)

A snapshot at its final place is complete. _SAVED (JSON) lists its files: `size` and `modified_ns` as they were;
`stored`, if it has another name there; and for a file that had not changed since an earlier snapshot, `at`: the path in
that snapshot, relative to this part.
"""

from __future__ import annotations

import errno
import functools
import itertools
import json
import os
import posixpath
import re
import sys
import threading
from collections.abc import Mapping
from typing import Any, BinaryIO

from howdah.checkpoints import directory_snapshot
from howdah.checkpoints.directory_snapshot import Stamp
from howdah.errors import HowdahError, StagingError
from howdah.localfiles.file_errors import explain
from howdah.spec import uris
from howdah.spec.job import Output
from howdah.spec.values import dataclass
from howdah.storage import cpu_throttle, progress
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import FileSystem, make_directory_like, mode_of_copy
from howdah.storage.snapshot_places import NAME, SAVED_SUFFIX, directory_of, list_snapshots, snapshot_prefix
from howdah.wire.helper_main import HelperReply, ProgressLines, run_helper_main
from howdah.wire.helper_messages import CopyPartReply, CopyPartRequest

SAVED = "_SAVED"
_EARLIER = re.compile(rf"(\.\./){{1,2}}[^/]*{NAME.pattern}(/(?!\.\.(/|$))[^/]*)+", re.DOTALL)
"""The path of a file in another snapshot, relative to a part; all snapshots are in the same directory."""


def temporary_directory(job_id: str, number: int, output: Output) -> str:
    """Return where the snapshots of output `number` are written: in the directory of the snapshots, but beside the
    output if that directory is inside the output, because snapshots must not create the output before the job has
    succeeded."""
    directory = directory_of(snapshot_prefix(output))
    return uris.join(
        uris.parent(output.path) if is_inside_output(output) else directory, f".howdah-{job_id}-{number}-saves"
    )


def is_inside_output(output: Output) -> bool:
    """Return whether the snapshots are in the output's own directory, as XLearning's are."""
    return f"{directory_of(snapshot_prefix(output))}/".startswith(f"{output.path.rstrip('/')}/")


# One task's part


def copy_part_in_background(request: CopyPartRequest) -> CopyPartReply:
    """Copy a part while its program runs, using only idle cores."""
    cpu_throttle.enable(request.uri)
    return copy_part(request)


def copy_part(request: CopyPartRequest) -> CopyPartReply:
    """Copy a directory as it is at one moment.

    Raises:
        StagingError, EngineUnavailable: it can't be written.
    """
    uri, previous = request.uri, request.previous
    fs = filesystem(uri)
    names = uris.StoredNames(uri, request.path)
    part = _PartCopy(fs, request.path, uri, _present(fs, previous) if previous else {}, names)
    stamps = {name: Stamp(entry["size"], entry["modified_ns"]) for name, entry in part.earlier.items()}
    try:
        settle_s = directory_snapshot.SETTLE_S if request.settle_s is None else request.settle_s
        found = directory_snapshot.copy_directory(request.path, part.put, part.drop, stamps, settle_s, request.root)
    except OSError as error:
        raise explain(error, request.path) from error
    if found.files:
        listed = part.list_files(found.files, uris.path(previous) if previous else "", uris.path(request.final))
        part.make_top()
        fs.write_bytes(uris.join(uri, SAVED), json.dumps({"files": listed}, separators=(",", ":")).encode())
    copied = [stamp.size for name, stamp in found.files.items() if name not in part.earlier]
    return CopyPartReply(len(copied), sum(copied), len(found.files), list(found.skipped))


class _PartCopy:
    """Writes the files of one task's part; `earlier` holds the files that an earlier snapshot has."""

    def __init__(
        self, fs: FileSystem, path: str, uri: str, earlier: dict[str, dict[str, Any]], names: uris.StoredNames
    ) -> None:
        self.fs, self.uri, self.earlier, self._names, self.report = fs, uri, earlier, names, ProgressLines()
        self._path = path
        self.files = self.bytes = 0
        self._lock = threading.Lock()
        self._directories: set[str] = set()

    def put(self, file: BinaryIO, name: str, size: int) -> None:
        with self._lock:
            target = self._names.uri_of(name)
            if uris.parent(target) not in self._directories:
                if not self._directories and uris.split(self.uri)[0] == "file":  # others need no call of its own
                    self.make_top()
                path = posixpath.join(self._path, posixpath.dirname(name))
                make_directory_like(self.fs, path, uris.parent(target))
                self._directories.add(uris.parent(target))
        try:
            with self.fs.writing(target, mode_of_copy(file.fileno(), target)) as sink:
                cpu_throttle.copy_throttled(file, sink, size)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):  # any other may be of the file that is read
                raise explain(error, target) from error
            raise
        with self._lock:
            self.earlier.pop(name, None)
            self.files, self.bytes = self.files + 1, self.bytes + size
            self.report(self.files, self.bytes)

    def make_top(self) -> None:
        """Make the directory of the part."""
        make_directory_like(self.fs, self._path, self.uri, is_top=os.path.isdir(self._path))  # noqa: PTH112

    def drop(self, name: str) -> None:
        if self.earlier.pop(name, None) is None:
            self.fs.delete(self._names.uri_of(name))

    def list_files(self, files: Mapping[str, Stamp], before: str, final: str) -> dict[str, dict[str, Any]]:
        """Return the entries of _SAVED. `before` is the path of the earlier snapshot's part, `final` that of this
        one."""
        found: dict[str, dict[str, Any]] = {}
        for name, stamp in sorted(files.items()):
            found[name] = {"size": stamp.size, "modified_ns": stamp.modified_ns}
            if (stored := self._names.stored(name)) != name:
                found[name]["stored"] = stored
            if name in self.earlier:
                found[name]["at"] = posixpath.relpath(posixpath.join(before, self.earlier[name]["at"]), final)
        return found


def _manifest(fs: FileSystem, part: str) -> dict[str, dict[str, Any]]:
    """Return the entries of a part's _SAVED; nothing if it does not exist or cannot be read.

    Raises:
        StagingError: a name in it leads elsewhere than to a file of this part, or of an earlier snapshot.
    """
    try:
        return _read_manifest(fs, part)
    except _ManifestUnreadable:
        return {}


class _ManifestUnreadable(StagingError):
    """The entries of a part's _SAVED are not known."""


def _read_manifest(fs: FileSystem, part: str) -> dict[str, dict[str, Any]]:
    """Return the entries of a part's _SAVED. Raises StagingError as `_manifest`, _ManifestUnreadable if it can't be
    read."""
    uri = uris.join(part, SAVED)
    try:
        files = json.loads(fs.read_bytes(uri))["files"]
        listed = {str(name): {**entry, "size": int(entry["size"])} for name, entry in files.items()}
    except (StagingError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _ManifestUnreadable(f"{uri} can't be read: {error}") from error
    for name, entry in listed.items():
        uris.check_inner_name(name, part)
        entry["stored"] = uris.check_inner_name(str(entry.get("stored", name)), part)
        at = str(entry.get("at", entry["stored"]))
        if "at" in entry and not _EARLIER.fullmatch(at):
            raise StagingError(
                f"{uris.join(part, SAVED)}: says that {name!r} is at {at!r}, which is in no earlier snapshot"
            )
        entry["at"] = at
    return listed


def _present(fs: FileSystem, part: str) -> dict[str, dict[str, Any]]:
    """Return the entries of a part's _SAVED whose files still exist: somebody may have removed the snapshot that has a
    file."""

    @functools.cache
    def sizes(directory: str) -> dict[str, int]:
        try:
            return {uris.normalize(entry.uri): entry.size for entry in fs.children(directory)}
        except StagingError:
            return {}

    found = {}
    for name, entry in _manifest(fs, part).items():
        uri = uris.normalize(uris.join(part, entry["at"]))
        if sizes(uris.parent(uri)).get(uri) == entry["size"]:
            found[name] = entry
    return found


def part_files(fs: FileSystem, part: str) -> dict[str, str]:
    """Return the URI of every file of a complete part, by its path in the part.

    Raises:
        StagingError: the part does not say which they are.
    """
    return {name: uris.normalize(uris.join(part, entry["at"])) for name, entry in _read_manifest(fs, part).items()}


def files_in_earlier_snapshots(fs: FileSystem, uri: str) -> dict[str, str]:
    """Return the URI of every file of a snapshot, or of a part of one, that is in an earlier snapshot, by its path
    below `uri`."""
    if not any(NAME.fullmatch(uris.name(each)[-19:]) for each in (uri, uris.parent(uri))):
        return {}
    return {
        uris.below(uris.join(part, entry["stored"]), uri): file
        for part in parts(fs, uri)
        for entry in _manifest(fs, part).values()
        if not (file := uris.normalize(uris.join(part, entry["at"]))).startswith(uris.normalize(part) + "/")
    }


# The complete snapshot


@dataclass(frozen=True)
class PublishSnapshotRequest:
    """A request to publish a finished snapshot, then to remove old ones."""

    temporary: str
    """The URI at which the snapshot was written."""
    final: str
    """The URI at which it is published."""
    to: str
    """The beginning of the names of the output's snapshots."""
    keep: int = 0
    """The number of complete snapshots that are kept; 0 keeps all."""


@dataclass(frozen=True)
class PublishSnapshotReply(HelperReply):
    """The result of publishing a snapshot."""

    empty: bool = False
    """Whether the snapshot held no file, and is not published."""
    removed: tuple[str, ...] = ()
    """URIs of the old snapshots that were removed."""
    problem: str = ""
    """Why old snapshots could not be removed."""


@dataclass(frozen=True)
class DiscardSnapshotRequest:
    """A request to remove the remains of an unfinished snapshot."""

    temporary: str
    """The URI at which the snapshot was written."""


def publish(request: PublishSnapshotRequest) -> PublishSnapshotReply:
    """Publish a snapshot. Files of an earlier snapshot to which a later one refers stay.

    Raises:
        StagingError: there is such a snapshot already, or it may not be written.
    """
    finished, final = request.temporary, request.final
    fs = filesystem(final)
    if not fs.exists(finished) or not any(True for _ in fs.walk(finished)):
        fs.delete(finished)
        return PublishSnapshotReply(empty=True)
    fs.mkdirs(uris.parent(final))
    if fs.exists(final):  # a rename would move the new snapshot into the other one
        raise StagingError(f"{final}: exists already")
    try:
        fs.rename(finished, final)
    except StagingError:
        if fs.moves_at_once(final):
            raise
        fs.rename(finished, final, overwrite=True)  # an object store has copied some of it
    try:
        return PublishSnapshotReply(
            removed=tuple(_remove_old_snapshots(fs, request.to, request.keep)) if request.keep else ()
        )
    except HowdahError as error:  # the snapshot is published; the next one removes the old ones
        return PublishSnapshotReply(problem=f"old snapshots were not removed: {error}")


def discard(request: DiscardSnapshotRequest) -> None:
    """Remove an unfinished snapshot."""
    filesystem(request.temporary).delete(request.temporary)


def parts(fs: FileSystem, snapshot: str) -> list[str]:
    """Return the parts of a snapshot: itself, or one directory for each task. An incomplete or removed one has none."""
    if fs.exists(uris.join(snapshot, SAVED)):
        return [snapshot]
    below = (entry.uri for entry in fs.children(snapshot) if entry.is_dir)
    return [uri for uri in below if fs.exists(uris.join(uri, SAVED))]


def _remove_old_snapshots(fs: FileSystem, to: str, keep: int) -> list[str]:
    found = [snapshot for snapshot in list_snapshots(fs, to) if parts(fs, snapshot)]
    old, kept = found[:-keep], found[-keep:]
    if not old:
        return []
    needed = {uri for snapshot in kept for part in parts(fs, snapshot) for uri in part_files(fs, part).values()}
    for snapshot in old:
        wanted = [uri for uri in needed if uri.startswith(snapshot + "/")]
        if not wanted:
            fs.delete(snapshot)
            continue
        # Without _SAVED the directory is no snapshot any more; it holds only files to which the kept ones refer.
        for part in parts(fs, snapshot):
            fs.delete(uris.join(part, SAVED))
        for entry in list(fs.walk(snapshot)):
            if uris.normalize(entry.uri) not in needed:
                fs.delete(entry.uri)
    return old


def tidy(fs: FileSystem, temporary: str, to: str, output: str) -> None:
    """Remove the remains of unfinished snapshots, and the snapshots' own directories if they are empty: the directory
    that `to` names, and those that are made beside the `output` or its directory."""
    if not fs.delete(temporary):
        return
    made = tuple(f"{path.rstrip('/')}{SAVED_SUFFIX}/" for path in (output, uris.parent(output)))
    directory, own = directory_of(to), to.endswith("/")
    while (own or f"{directory}/".startswith(made)) and fs.exists(directory) and not fs.children(directory):
        fs.delete(directory)
        directory, own = uris.parent(directory), False


def report_moves() -> None:
    """Write progress lines from now on for the objects that moves copy, so that the master sees their progress."""
    lines, count = ProgressLines(), itertools.count(1)
    progress.on_moved = lambda _: lines(next(count), 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["publish"]:
        report_moves()
    run_helper_main({"take": copy_part_in_background, "publish": publish, "discard": discard})
