"""A task's working directory: whatever is in it is the task's own, and each attempt of its program finds it fresh.

The engine puts links there to files, and to directories with unpacked archives, that containers share. They are
replaced by copies. An environment is too large for a copy: it becomes an overlay if the executor is root, else a
directory of hard links to files that nobody may write (docs/adr/0022).
"""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import Collection, Dict, Iterable, Iterator, List, Mapping, Set, Tuple

from howdah.executor.io.overlay import Overlay
from howdah.executor.process.mount_points import mount_points
from howdah.localfiles.own_copy import LARGE, copy_or_link, copy_tree, link_tree
from howdah.localfiles.symlinks import is_inside
from howdah.spec.prepared_directories import PreparedDirectories
from howdah.spec.staged import HOWDAHS_FILES, HOWDAHS_OWN
from howdah.wire.program_protocol import DIRECTORY

_STARTED, _LAYERS = ".howdah-started", ".howdah-layers"  # named in HOWDAHS_FILES, too
_MAX_SYNCED = 10_000
"""The most directories that are searched for among the fetched files: that takes half a second, in which the executor
does nothing else."""


class WorkingDirectory:
    """The directory `path`, as its engine has prepared it. `container` is the directory that no other container has, if
    that is another one."""

    def __init__(self, path: str, container: str = "") -> None:
        self.path, self._container = path, container or path
        self.inputs: Dict[str, str] = {}
        """The URI of each input file that was brought here, by its path."""
        self.left = ""
        """A file that a program has made and that this user may not remove."""
        self._links: Dict[str, str] = {}
        self._engines: Set[str] = set()
        """The names that are not links and stay as the engine has made them: its scripts and tokens."""
        self._overlays: Dict[str, Overlay] = {}
        self._linked: Set[str] = set()
        """The environments that consist of hard links."""
        self._environments: Set[str] = set()
        self.passed_over: List[str] = []
        """Files of archives that were not copied, because another file had their name."""
        self._spread: List[Tuple[str, str]] = []
        """The archives that were copied, each with the directory into which it was copied."""
        self._prepared = PreparedDirectories()
        self._synced: List[str] = []
        """The directories of checkpoints and event files, and their subdirectories, that were here before the
        program."""
        self.program_started_ns = 0
        """When, by the file system's clock, the program started; 0 before that."""
        self._scan("")

    def _scan(self, prefix: str) -> None:
        for entry in os.scandir(os.path.join(self.path, prefix)):
            name = prefix + entry.name
            if entry.is_symlink():
                self._links[name] = os.readlink(entry.path)
            else:
                self._engines.add(name)
                if entry.is_dir():
                    self._scan(f"{name}/")

    # What is shared

    def make_own(
        self, spread: Mapping[str, str], environments: Collection[str], are_links_read_only: bool
    ) -> Iterator[None]:
        """Replace links by copies, and copy the content of the archives `spread` into their directories.

        `environments` are the names of archives that are environments. `are_links_read_only` says that the program sees
        the targets of links, but cannot write them, as in an image.

        Raises:
            OSError: no room, an archive is missing, a link leads out of its archive, or a file is a device.
        """
        self._environments = set(environments)
        self._spread = [(self._source(name), into or ".") for name, into in spread.items()]
        for name, into in spread.items():
            yield from copy_tree(self._source(name), os.path.join(self.path, into), name, self.passed_over.append)
        for name in self._links:
            if name in spread or name.split("/")[0] in HOWDAHS_OWN:
                continue
            path, source = os.path.join(self.path, name), self._source(name)
            if not is_inside(os.path.dirname(path), self.path):
                raise OSError(f"{name}: its directory has become a link out of the working directory")
            if os.path.isdir(source):
                if is_inside(self.path, source):
                    continue  # no archive holds the container
                if name not in environments:
                    self._remove_link(path)
                    yield from copy_tree(source, path, name)
                elif are_links_read_only or is_inside(source, self._container) or not os.access(source, os.W_OK):
                    self._restore_link(name)  # nobody else has it, or nobody may write it
                elif name not in self._overlays and name not in self._linked:
                    yield from self._make_environment(name, source)
            elif os.path.islink(path) or not os.path.lexists(path):
                stays = are_links_read_only or is_inside(source, self._container)
                if not (stays and os.path.islink(path) and os.path.getsize(source) >= LARGE):
                    self._remove_link(path)
                    yield from copy_or_link(source, path)

    def _make_environment(self, name: str, source: str) -> Iterator[None]:
        path = os.path.join(self.path, name)
        self._remove_link(path)
        if os.geteuid():
            yield from link_tree(source, path)
            self._linked.add(name)
            return
        layers = os.path.join(self.path, _LAYERS, str(len(self._overlays)))
        try:
            self._overlays[name] = Overlay(source, path, layers)
        except OSError:
            yield from copy_tree(source, path, name)

    def _source(self, name: str) -> str:
        return os.path.realpath(os.path.join(self.path, os.path.dirname(name), self._links.get(name, name)))

    def _restore_link(self, name: str) -> None:
        path = os.path.join(self.path, name)
        if not os.path.lexists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(self._links[name], path)

    @staticmethod
    def _remove_link(path: str) -> None:
        if os.path.islink(path):
            os.unlink(path)

    # Files that the program has made

    @property
    def is_used(self) -> bool:
        """Return whether a program has run here."""
        return self.program_started_ns > 0

    def list_others(self) -> List[str]:
        """Return the names at the top of the directory that are howdah's or an environment's."""
        return [name for name in os.listdir(self.path) if _is_howdahs(name) or name in self._environments]

    def program_starts(self, synced: Iterable[str] = ()) -> None:
        """Count all later changes as the program's. `synced` are the directories into which howdah itself fetches: the
        directories in them are not the program's.

        Raises:
            OSError: there is no room for a file.
        """
        found = (found for top in synced for found, *_ in os.walk(os.path.join(self.path, top)))
        self._synced = [os.path.relpath(path, self.path) for path in itertools.islice(found, _MAX_SYNCED)]
        mark = os.path.join(self.path, _STARTED)
        with open(mark, "w"):  # the file system has a clock of its own
            self.program_started_ns = os.stat(mark).st_ctime_ns
        os.unlink(mark)

    def remove_changes(self, kept: Collection[str]) -> Iterator[int]:
        """Remove the files that the program has made or changed, except the directories `kept`; yield the numbers of
        files. If a file of the job is removed, `make_own` brings it back.

        Raises:
            OSError: something cannot be removed.
        """
        yield from self._remove_environments()
        self._prepared = self.prepared()
        yield from self._remove_since(self.program_started_ns, "", {*map(os.path.normpath, kept)}, mount_points())
        self.program_started_ns = 0

    def restore(self) -> None:
        """Restore the directory to the state in which the engine prepared it, because another task is to use it.

        Raises:
            OSError: something cannot be removed.
        """
        for _ in (*self._remove_environments(), *self._remove_since(0, "", set(), mount_points())):
            pass
        for name in self._links:
            self._restore_link(name)

    def close(self) -> None:
        """Remove the files that programs have written to environments, because no program runs any more."""
        for overlay in self._overlays.values():
            overlay.remove()
        self._overlays.clear()

    def _remove_environments(self) -> Iterator[int]:
        self.close()
        for name in self._linked:
            path = os.path.join(self.path, name)
            if os.path.islink(path):  # the program has put it there
                os.unlink(path)
            elif os.path.isdir(path):
                for _ in self._remove_since(0, f"{name}/", set(), mount_points()):
                    yield 0
                with contextlib.suppress(OSError):  # something in it stays
                    os.rmdir(path)
        self._linked.clear()

    def prepared(self) -> PreparedDirectories:
        """Return the directories that were here before the program."""
        sources = [(top, self._source(top)) for top in self._links] + [(into, source) for source, into in self._spread]
        return PreparedDirectories(tuple(self._list_holders()), tuple(sources))

    def _list_holders(self) -> Set[str]:
        """Return all directories that hold one of the job's files or inputs at some depth, or that were fetched."""
        relative = {os.path.dirname(os.path.relpath(path, self.path)) for path in self.inputs}
        spread = [into for _, into in self._spread]
        waiting, found = [*relative, *map(os.path.dirname, self._links), *spread, *self._synced], {""}
        while waiting:
            name = os.path.normpath(waiting.pop())
            if name not in found:
                found.add(name)
                waiting.append(os.path.dirname(name))
        return found

    def _remove_since(self, since_ns: int, prefix: str, kept: Set[str], mounts: Set[str]) -> Iterator[int]:
        """Remove files that have changed since a time of the file system. A file that changed at that very moment may
        be ours; it is removed, too, and comes back. Links are not followed, and file systems that the program has
        mounted are not touched."""
        removed = 0
        try:
            entries = _list(os.path.join(self.path, prefix))
        except PermissionError:  # another user's
            self.left = self.left or os.path.join(self.path, prefix)
            return
        for entry in entries:
            name = prefix + entry.name
            if _is_howdahs(name) or name in kept or "." in kept or entry.path in mounts:
                continue
            yield 0
            is_engines, status = name in self._engines, entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                # A renamed directory keeps the times of its contents.
                is_new = (
                    since_ns and status.st_ctime_ns >= since_ns and not is_engines and not self._prepared.hold(name)
                )
                yield from self._remove_since(0 if is_new else since_ns, f"{name}/", kept, mounts)
                if not is_engines and status.st_ctime_ns >= since_ns:
                    with contextlib.suppress(OSError):  # something in it stays
                        os.rmdir(entry.path)
            elif not is_engines and status.st_ctime_ns >= since_ns:
                try:
                    os.unlink(entry.path)
                    removed += 1
                except PermissionError:
                    self.left = self.left or entry.path
        yield removed


def _is_howdahs(name: str) -> bool:
    return bool(HOWDAHS_FILES.fullmatch(name)) or name in (*HOWDAHS_OWN, DIRECTORY)


def _list(directory: str) -> List[os.DirEntry[str]]:
    """Return the entries of a directory that is to be emptied."""
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        os.chmod(directory, 0o700)
    return list(os.scandir(directory))
