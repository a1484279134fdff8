"""`python -m howdah.checkpoints.directory_sync down|up` copies checkpoints between a local directory and the
shared file system.

A helper process beside an executor (`howdah.wire.helper_main`). `down` fetches the checkpoint that a program continues
from. `up` stores what the program has written since, oldest files first and files that name others last: whenever the
upload is interrupted, the newest stored checkpoint is complete or not yet named. A file that the program has removed is
removed from the shared file system, too, if this module has stored or fetched it; a hidden local file remembers which.
But the newest whole checkpoint there stays until a newer one is stored: a program may rename or remove its last one
before it has written the next, or write the next in its place. What was there before the job and was not fetched is set
aside when a file of the same name is stored.

`howdah.checkpoints.event_file_sync` is another module because it shares none of these rules: an event file is appended
to while it is written, nothing is fetched or removed, and the executor remembers what was sent.
"""

# ruff: noqa: PTH118, PTH120

from __future__ import annotations

import contextlib
import os
import posixpath
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from howdah.checkpoints import directory_lock, directory_snapshot, empty_directories, replacement_note
from howdah.checkpoints.directory_snapshot import Stamp
from howdah.checkpoints.discovery import WHOLE, CheckpointTree, candidates, is_own_file, names_left_out
from howdah.checkpoints.file_validation import is_useful_alone
from howdah.checkpoints.files_beside import FilesBeside
from howdah.checkpoints.known_files import read_known_files, write_known_files
from howdah.checkpoints.last_checkpoint import ReplacedCheckpoint, StoredDirectory
from howdah.checkpoints.links_there import find_links_in_the_way
from howdah.checkpoints.set_aside import describe_set_aside, find_file_in_the_way, set_aside
from howdah.checkpoints.store_reply import StoreReply, name_some
from howdah.checkpoints.tensorflow_state import point_tensorflow_to
from howdah.checkpoints.upload_order import NAMING, upload_order
from howdah.errors import HowdahError, StagingError
from howdah.localfiles.file_errors import explain
from howdah.spec import uris
from howdah.spec.message import Sentence, message
from howdah.storage import cpu_throttle
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Entry, FileSystem, Sink, make_directory_like, mode_of_copy, open_local
from howdah.storage.linked_tree import describe_left_out
from howdah.storage.output_files import NOT_READABLE
from howdah.wire.helper_main import ProgressLines, one_line, run_helper_main
from howdah.wire.helper_messages import DirectorySyncReply, FetchCheckpointRequest, StoreCheckpointsRequest

UNFINISHED = ".howdah-unfinished"
"""The mark in a copy of such a directory while files are copied there; it stays if the copying breaks off."""
ROUNDS = 5
MAX_LEFT_OUT = 10
"""The most lines about files that are not fetched; a last line counts the others."""
TOO_FAST = "a checkpoint that is written in place of the last one changes faster than it can be copied"
NOT_WHOLE = "belongs to a checkpoint that is not whole, so the earlier one stays"
_SMALL = 1 << 20
_NOT_READABLE = f": {NOT_READABLE}"


class _ChangedMeanwhile(Exception):
    """A program wrote to the file while it was copied."""


class DirectorySync:
    """Copies files between local directory `path` and `uri`; `root` is the working directory.

    Without `replace`, files of `uri` that other tasks have written stay unchanged. With the rule WHOLE all files are
    copied as of some moment, with hidden files and empty directories, which a git repository needs.
    """

    def __init__(self, path: str, uri: str, replace: bool = True, root: str = "", rule: str = "") -> None:
        self.path, self.uri, self.replace, self.root, self.rule = path, uri, replace, root, rule
        self.fs: FileSystem = filesystem(uri)
        self._is_ignored = is_own_file if rule == WHOLE else names_left_out(rule)
        self.files = self.bytes = self._moved = 0
        self.is_alone = replace
        """No other task stores anything there, so this task has all files of each checkpoint."""
        self.report: Callable[[int, int], object] = lambda *_: None
        """A function that is called with the files stored and the bytes moved so far."""
        self.skipped: list[str] = []
        self.told: list[Sentence] = []
        """Sentences about files at `uri` that could not be fetched, and about those that are kept or were missing."""
        self.aside: dict[str, str] = {}
        """The place to which each earlier file was moved, by the name of the file that has replaced it."""
        self.is_unfinished = False
        """The directory at `uri` was found while a copy to it had broken off."""
        self._stored = set[str]()
        """The names of the files stored by this object."""
        self._retained: list[str] = []
        """Files that the program has removed and that stay at `uri`."""
        self._mark, self._may_mark = uris.join(uri, UNFINISHED), rule == WHOLE and replace
        self._known = read_known_files(path)
        self._lock: tuple[str, int] | None = None
        self._beside = FilesBeside(self.fs)
        self._changes = Counter[str]()
        """The number of times that each file has changed while it was copied, by name."""

    # Down

    def down(self, resume: str) -> None:
        """Fetch checkpoint `resume` (its URI; "" when there is none), and the small files that name checkpoints."""
        with _translate_os_errors(self.path):
            Path(self.path).mkdir(parents=True, exist_ok=True)
        tree = CheckpointTree(self.fs, self.uri, self.rule)
        names = [name for name, size in tree.sizes.items() if posixpath.basename(name) in NAMING and size <= _SMALL]
        if resume:
            wanted = uris.below(resume, self.uri) if uris.normalize(resume) != uris.normalize(self.uri) else ""
            prefix = f"{wanted}/" if wanted else ""
            if wanted not in tree.entries and any(name.startswith(prefix) for name in tree.entries):
                tree.follow(wanted)  # it is a directory
            names += next((each.files for each in candidates(tree, self.rule) if each.name == wanted), ())
        for name in dict.fromkeys(names):
            self._fetch(uris.local_name(name, self.uri), tree.entries[name])
        if self.rule == WHOLE:
            self.is_unfinished = self.fs.exists(self._mark)
        if resume:
            with _translate_os_errors(self.path):
                there = [name for name in tree.empty if name.startswith(prefix)]
                empty_directories.make_empty_directories(self.fs, self.uri, self.path, there, self.rule == WHOLE)
            lines = [describe_left_out(name, why) for name, why in tree.left_out.items() if name.startswith(prefix)]
            self.told += lines[:MAX_LEFT_OUT]
            if (more := len(lines) - MAX_LEFT_OUT) > 0:
                self.told.append(message("{count} more are left out in the same way", count=more))
            point_tensorflow_to(self.path, posixpath.basename(uris.local_name(resume, self.uri)))
        self._write_known()

    def _fetch(self, name: str, entry: Entry) -> None:
        path = os.path.join(self.path, name)
        known = self._known.get(name)
        is_current = known is not None and known[2:] == [entry.size, entry.modified_ms]
        if is_current and _stamp(known) == directory_snapshot.stamp_of(path):
            return
        with _translate_os_errors(path):
            if uris.split(entry.uri)[0] == "file":
                parent = uris.of_local(Path(path).parent)
                make_directory_like(self.fs, uris.path(uris.parent(entry.uri)), parent)
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        self.bytes += self.fs.get(entry.uri, path)
        self.files += 1
        own = Path(path).stat().st_mode & 0o777
        Path(path).chmod(entry.mode & 0o777 if uris.split(entry.uri)[0] == "file" else own | (entry.mode & 0o111))
        # The local file gets the time of the remote one: programs choose the newest by its time.
        os.utime(path, ns=(entry.modified_ms * 10**6, entry.modified_ms * 10**6))
        self._note(name, directory_snapshot.stamp_of(path), entry)

    # Up

    def up(self, settle_s: float, last: bool = False) -> None:
        """Store the files that the program has written since the last time; `last` says that it has ended.

        Raises:
            StagingError, EngineUnavailable: something can't be stored; all else was, if it is because a checkpoint
                changes too fast.
        """
        try:
            self._store_until_settled(settle_s, last)
        finally:
            self._beside.remove_all()

    def _store_until_settled(self, settle_s: float, last: bool) -> None:
        seen, gone, has_replaced_links, is_stored = dict[str, Stamp](), list[str](), False, True
        missing = self._forget_missing() if last else []
        for _ in range(ROUNDS):
            if self.rule == WHOLE:
                self.skipped, empty = [], list[str]()
                seen = self._list_files(self.skipped, empty)
                if self.replace:
                    with _translate_os_errors(self.path):
                        empty_directories.store_empty_directories(self.fs, self.uri, self.path, empty)
            else:
                settled = directory_snapshot.find_settled_files(self.path, settle_s, self.root, self._is_ignored)
                seen, self.skipped = settled
            gone = self._list_gone(seen)
            replaced = self._find_replaced(seen, gone, last)
            waiting = {*replaced.written} if replaced and not replaced.is_whole else set[str]()
            self.skipped += [f"{name}: {NOT_WHOLE}" for name in sorted(waiting)]
            is_marked = self._mark_unfinished(bool(self._list_fresh(seen) or gone))
            fresh = [name for name in self._list_fresh(seen) if name not in waiting]
            has_replaced_links |= self._replace_links(fresh, gone if self.rule == WHOLE else ())
            may_replace = replaced.written if replaced and replaced.is_whole else ()
            is_stored = self._store_at_once(may_replace, seen)
            waiting = waiting if is_stored else {*may_replace}
            try:
                fresh = [name for name in self._list_fresh(seen) if name not in waiting]
                for name in sorted(fresh, key=lambda n: (n in missing, *upload_order(n, seen[n], self.rule))):
                    with self._passing_over(name):
                        self._store(name, seen[name])
            except _ChangedMeanwhile:
                is_stored = self.rule == WHOLE  # such a directory is marked
                continue
            if not is_stored:
                continue
            gone = self._list_superseded(gone, seen)
            if self.rule != WHOLE and self._replace_links((), gone):
                has_replaced_links = True
                continue
            self._remove_gone(gone)
            if is_marked and not self._list_fresh(seen):  # otherwise a file was passed over
                self.fs.delete(self._mark)
            break
        else:
            if not has_replaced_links:  # otherwise their replacements may not be stored yet
                gone = self._list_superseded(gone, seen)
                if self.rule == WHOLE or not self._replace_links((), gone):
                    self._remove_gone(gone)
        self._write_known()
        if not is_stored:
            raise StagingError(TOO_FAST)  # the caller names the directory when it shows the error
        if again := [name for name in missing if name in self._stored]:
            template = "stored again, for somebody has removed it from {uri}: {files}"
            self.told.append(message(template, uri=self.uri, files=name_some(again)))
        if last and self._retained:
            template = "what the program has removed stays in {uri}, for no newer whole checkpoint is there: {files}"
            self.told.append(message(template, uri=self.uri, files=name_some(self._retained)))

    def _forget_missing(self) -> list[str]:
        """Forget the files that were stored, but have vanished there, so that they are stored again; return their
        names. A task that replaces nothing does not store files that it fetched: another task may have removed them."""
        stored = StoredDirectory(self.uri, self.rule, self._known)
        try:
            there = stored.list_tree().entries if self._known else {}
        except StagingError:  # a listing that fails must not prevent files from being stored
            return []
        if self.is_alone:
            stored.remove_abandoned()
        found = [
            name
            for name in self._known
            if uris.stored_name(name, self.uri) not in there
            and self._is_its_own(name)
            and self.fs.stat(uris.join(self.uri, uris.stored_name(name, self.uri))) is None  # else behind a link
        ]
        for name in found:
            del self._known[name]
        return found

    def _is_its_own(self, name: str) -> bool:
        """Return whether this task may store a file again and remove it. A task that replaces nothing may not do this
        with a file that it has fetched."""
        _, local_ns, _, stored_ms = self._known[name]
        return self.replace or local_ns != stored_ms * 10**6

    def _mark_unfinished(self, is_changed: bool) -> bool:
        """Mark a directory that is kept whole if files of it are about to be written or removed."""
        is_marked = self._may_mark and is_changed
        if is_marked:
            self.fs.mkdirs(self.uri)
            self.fs.create(self._mark).close()
        return is_marked

    def _list_fresh(self, seen: Mapping[str, Stamp]) -> list[str]:
        """Return the files that have changed since they were stored or fetched."""
        return [name for name, stamp in seen.items() if _stamp(self._known.get(name)) != stamp]

    def _replace_links(self, fresh: Collection[str], gone: Collection[str]) -> bool:
        """Remove the links there through which this copy would write or remove files elsewhere. The task has their
        targets as files of its own: these are stored under their names before anything else is removed. Return whether
        there were such links."""
        if not self.replace:
            return False
        links = find_links_in_the_way(self.uri, fresh, gone, self._known.keys() - gone)
        for link in links:
            copies = [name for name in self._known if name == link or name.startswith(f"{link}/")]
            if not copies and self._set_aside(link, self._read_lock()[0] or "links"):
                continue
            for name in copies:
                del self._known[name]
            self._write_known()  # the next process stores them, too
            self.fs.delete(uris.join(self.uri, link))
        return bool(links)

    def _find_replaced(self, seen: Mapping[str, Stamp], gone: Collection[str], last: bool) -> ReplacedCheckpoint | None:
        if not self.is_alone or self.rule == WHOLE:
            return None
        there = StoredDirectory(self.uri, self.rule, self._known)
        found = there.find_replaced(self.path, self.root, seen, self._list_fresh(seen), gone, last)
        if self._beside.is_empty:
            there.remove_abandoned()
        return found

    def _store(self, name: str, stamp: Stamp) -> None:
        target = self._stored_uri(name)
        remote = self.fs.stat(target)
        if not self.replace and self._is_anothers(name, remote):
            return  # another task has written it, and its file is the one that counts
        with self.fs.writing(target, self._prepare(name, stamp, target)) as sink:
            self._copy(name, stamp, sink)
            self._keep_what_was_before(name, remote)
        self._note_stored(name, stamp)

    def _store_at_once(self, written: Sequence[str], seen: Mapping[str, Stamp]) -> bool:
        """Store the files of one checkpoint: first all copies beside the files that they replace; then, unless local
        files have changed meanwhile, all copies get their names. Return whether the local files are unchanged."""
        names = [name for name in written if not self._is_restless(name)]
        names.sort(key=lambda name: seen[name].modified_ns)
        remotes = {name: self.fs.stat(self._stored_uri(name)) for name in names}
        try:
            for name in reversed(names):  # store the files that change most often first
                target = self._stored_uri(name)
                if not self._beside.holds(target, seen[name]):
                    mode = self._prepare(name, seen[name], target)
                    with self._beside.writing(target, seen[name], mode) as sink:
                        self._copy(name, seen[name], sink)
            for name in names:
                self._check_unchanged(name, seen[name])
        except _ChangedMeanwhile:
            return False
        with replacement_note.replacing(self.fs, self.uri, remotes):
            for name in names:
                self._keep_what_was_before(name, remotes[name])
            for name in sorted(names, key=lambda name: upload_order(name, seen[name], self.rule)):
                self._beside.reveal(self._stored_uri(name))
                self._note_stored(name, seen[name])
                self._report_moved(0)  # object stores rename by copying
        return True

    def _is_restless(self, name: str) -> bool:
        """Return whether a file changes all the time, so that no other file may wait for it."""
        return self._changes[name] > 1 and is_useful_alone(name)

    @contextlib.contextmanager
    def _passing_over(self, name: str) -> Iterator[None]:
        """Skip a file that changes all the time: the next call, or the last one, stores it."""
        was_restless = self._is_restless(name)
        try:
            yield
        except _ChangedMeanwhile:
            if not was_restless:
                raise

    def _stored_uri(self, name: str) -> str:
        return uris.join(self.uri, uris.stored_name(name, self.uri))

    def _is_anothers(self, name: str, remote: Entry | None) -> bool:
        return remote is not None and self._known.get(name, [0, 0, 0, 0])[2:] != [remote.size, remote.modified_ms]

    def _prepare(self, name: str, stamp: Stamp, target: str) -> int:
        """Make the directory for a file, and return the permission bits of its copy."""
        self._check_unchanged(name, stamp)
        path = os.path.join(self.path, name)
        with _translate_os_errors(target):
            try:
                make_directory_like(self.fs, os.path.dirname(path), uris.parent(target))
            except StagingError:
                found = find_file_in_the_way(self.fs, self.uri, posixpath.dirname(name)) if self.replace else None
                if found is None:
                    raise
                self._make_way(*found)
                make_directory_like(self.fs, os.path.dirname(path), uris.parent(target))
            return mode_of_copy(path, target)

    def _make_way(self, name: str, found: Entry) -> None:
        """Move away what is not a file at the place of a file, or not a directory at that of a directory."""
        if not self._set_aside(name, self._read_lock()[0] or str(found.modified_ms)):
            self.fs.delete(self._stored_uri(name))

    def _copy(self, name: str, stamp: Stamp, sink: Sink) -> None:
        with open_local(os.path.join(self.path, name)) as file, _translate_os_errors(self._stored_uri(name)):
            cpu_throttle.copy_throttled(file, sink, stamp.size, self._report_moved)
        self._check_unchanged(name, stamp)

    def _check_unchanged(self, name: str, stamp: Stamp) -> None:
        now = directory_snapshot.stamp_of(os.path.join(self.path, name))
        if now != stamp and not directory_snapshot.has_grown(name, stamp, now, self._is_restless(name)):
            self._changes[name] += 1
            raise _ChangedMeanwhile

    def _note_stored(self, name: str, stamp: Stamp) -> None:
        self.files, self.bytes = self.files + 1, self.bytes + stamp.size
        self._stored.add(name)
        entry = self.fs.stat(self._stored_uri(name))
        if entry is not None:
            self._note(name, stamp, entry)
            self._write_known()

    def _report_moved(self, size: int) -> None:
        self._moved += size
        self.report(self.files, self._moved)

    def _keep_what_was_before(self, name: str, remote: Entry | None) -> None:
        """Set aside a file that no try of this job has fetched or stored: it is older than the job's lock there. Both
        times come from the clock of one file system, because the lock is a file beside it."""
        if remote is None or not self._is_anothers(name, remote):
            return
        if remote.is_dir:
            if self.fs.moves_at_once(self.uri):  # an object store may have both
                self._make_way(name, remote)
            return
        job, locked_ms = self._read_lock()
        if remote.modified_ms > locked_ms or (not job and name in self._known):
            return
        self._set_aside(name, job or str(remote.modified_ms))

    def _read_lock(self) -> tuple[str, int]:
        """Return the job that holds the lock and the time in epoch milliseconds; ("", the end of time) if none."""
        if self._lock is None:
            held = directory_lock.read_lock(self.fs, self.uri)
            entry = self.fs.stat(uris.join(self.uri, directory_lock.NAME))
            self._lock = (held.job, entry.modified_ms) if held and entry else ("", sys.maxsize)
        return self._lock

    def _set_aside(self, name: str, job: str) -> bool:
        aside = set_aside(self.fs, self.uri, uris.stored_name(name, self.uri), job)
        if aside:
            self.aside[name] = aside
        return bool(aside)

    def _list_gone(self, seen: Collection[str]) -> list[str]:
        """Return the files that were stored or fetched and are gone here. A file that can't be read still exists."""
        local = seen if self.rule == WHOLE else self._list_files()
        # An empty directory means that the program starts over, or that somebody made a mistake.
        gone = [name for name in self._known if name not in local and self._is_its_own(name)] if local else []
        unreadable = {line[: -len(_NOT_READABLE)] for line in self.skipped if line.endswith(_NOT_READABLE)}
        return [name for name in gone if not any(f"{name}/".startswith(f"{above}/") for above in unreadable)]

    def _list_superseded(self, gone: Sequence[str], seen: Collection[str]) -> list[str]:
        self._retained = []
        if not gone or self.rule == WHOLE:
            return [*gone]
        local = directory_snapshot.list_files(self.path, self.root, is_own_file)
        there = StoredDirectory(self.uri, self.rule, self._known)
        superseded = there.list_superseded(gone, seen, local, self._stored)
        self._retained = [name for name in gone if name not in superseded]
        return superseded

    def _remove_gone(self, names: Collection[str]) -> None:
        directories = set[str]()
        for name in names:
            target = uris.join(self.uri, uris.stored_name(name, self.uri))
            remote = self.fs.stat(target)
            known = self._known.pop(name, [0, 0, 0, 0])
            if remote is not None and known[2:] == [remote.size, remote.modified_ms]:
                self.fs.delete(target)
                directories.add(posixpath.dirname(name))
        empty_directories.remove_empty_directories(self.fs, self.uri, self.path, directories)

    def _list_files(self, left_out: list[str] | None = None, empty: list[str] | None = None) -> dict[str, Stamp]:
        return directory_snapshot.list_files(self.path, self.root, self._is_ignored, left_out, empty)

    def reply(self) -> DirectorySyncReply:
        """Return the files that have been copied."""
        told = list(self.told)
        for aside in dict.fromkeys(self.aside.values()):
            names = [name for name, place in self.aside.items() if place == aside]
            told.append(describe_set_aside(self.uri, names, aside))
        return DirectorySyncReply(self.files, self.bytes, self.skipped, self.is_unfinished, tuple(told))

    # Files that were stored or fetched: by name, local size and time, remote size and time

    def _note(self, name: str, stamp: Stamp | None, entry: Entry) -> None:
        if stamp is not None:
            self._known[name] = [stamp.size, stamp.modified_ns, entry.size, entry.modified_ms]

    def _write_known(self) -> None:
        with _translate_os_errors(self.path):
            write_known_files(self.path, self._known)


def _stamp(known: list[int] | None) -> Stamp | None:
    return Stamp(known[0], known[1]) if known is not None else None


@contextlib.contextmanager
def _translate_os_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise explain(error, path) from error


def fetch_checkpoint(request: FetchCheckpointRequest) -> DirectorySyncReply:
    """Fetch the checkpoint that a program continues from."""
    sync = DirectorySync(request.path, request.uri, root=request.root, rule=request.valid)
    with _translate_os_errors(request.path):
        sync.down(request.resume)
    return sync.reply()


def store_checkpoints(request: StoreCheckpointsRequest) -> StoreReply:
    """Store the checkpoints of a program. Files that were set aside are reported even if not all are stored."""
    sync = DirectorySync(request.path, request.uri, request.replace, request.root, request.valid)
    sync.is_alone = request.replace and request.is_alone
    problem = ""
    if os.path.isdir(request.path):  # noqa: PTH112
        sync.report = ProgressLines()
        if not request.last:
            cpu_throttle.enable(request.uri)
        try:
            with _translate_os_errors(request.path):
                sync.up(request.settle_s, request.last)
        except HowdahError as error:
            problem = one_line(error)
    return StoreReply(error=problem, **vars(sync.reply()))


if __name__ == "__main__":
    run_helper_main({"down": fetch_checkpoint, "up": store_checkpoints})
