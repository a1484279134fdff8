"""Finds the files that a program has made in a directory, including files behind symbolic links.

A link is followed to a file or directory in the program's working directory or in the directory itself, and to an input
file of the task on this machine, where inputs are links themselves. Reported and left out are: a link that leads
elsewhere (to another disk, to /proc, into a cache that tasks share), a link to nothing or to a directory that contains
the link, anything that is neither file nor directory, and files that this user may not read.
"""

# ruff: noqa: PTH110, PTH112, PTH113, PTH116, PTH118 - many small calls, under a program's feet

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator

from howdah.localfiles.regular_file import is_readable
from howdah.localfiles.symlinks import is_inside
from howdah.spec.prepared_directories import PreparedDirectories
from howdah.spec.staged import HOWDAHS_FILES

LEADS_OUT = "is a link out of the working directory"
LEADS_NOWHERE = "is a link to nothing"
LEADS_BACK = "is a link to a directory that holds it"
NO_FILE = "is neither a file nor a directory"
NOT_READABLE = "can't be read: permission denied"
_NONE = PreparedDirectories()


class OutputFiles:
    """Iterates over the files in `directory`, or over this one file if it is a file.

    `root` is the working directory ("": only the directory counts), `is_left_out(name)` says which names to skip, and
    `inputs` are the paths of the task's inputs on this machine. In the working directory itself only files count that
    have changed since the file system's time `since_ns`, all files in directories that are new since then and not among
    those `prepared`, and none of the top names in `others`. After an iteration `left_out` gives the reason for each
    path below the directory that was left out, and `empty` has the empty directories.
    """

    def __init__(
        self,
        directory: str,
        root: str = "",
        is_left_out: Callable[[str], bool] = lambda _: False,
        inputs: Collection[str] = (),
        since_ns: int = 0,
        others: Collection[str] = (),
        prepared: PreparedDirectories = _NONE,
    ) -> None:
        self.directory, self._is_left_out = directory, is_left_out
        if os.path.isfile(directory):
            self.directory, only = os.path.split(directory)
            self._is_left_out = lambda name: name != only
        self._since_ns, self._others, self._prepared = since_ns, frozenset(others), prepared
        self._inputs = frozenset(map(os.path.realpath, inputs))
        self._roots = [directory, *([root] if root else [])]
        self.left_out: dict[str, str] = {}
        self.empty: list[str] = []

    def __iter__(self) -> Iterator[str]:
        """Yield the paths of regular files below the directory, sorted within each directory.

        Raises:
            OSError: the directory cannot be listed, or one below it for another reason than its permission bits.
        """
        self.left_out, self.empty = {}, []
        yield from self._files_below("", (os.path.realpath(self.directory),), self._since_ns)

    def _files_below(self, prefix: str, above: tuple[str, ...], since_ns: int) -> Iterator[str]:
        try:
            entries = sorted(os.scandir(os.path.join(self.directory, prefix)), key=lambda entry: entry.name)
            os.stat(os.path.join(self.directory, prefix, "."))  # may be refused although the listing was not
        except (FileNotFoundError, NotADirectoryError):  # removed since it was listed
            if not prefix:
                raise
            return
        except PermissionError as error:
            if not prefix:
                raise PermissionError(error.errno, error.strerror, self.directory) from None
            if self._has_changed(prefix, since_ns):
                self.left_out[prefix.rstrip("/")] = NOT_READABLE
            return
        if prefix and not entries and self._has_changed(prefix, since_ns):
            self.empty.append(prefix.rstrip("/"))
        for entry in entries:
            name = prefix + entry.name
            if self._is_left_out(entry.name) or name in self._others or self._is_not_the_programs(entry, since_ns):
                continue
            if entry.is_symlink():
                yield from self._files_behind_link(name, above, since_ns)
            elif entry.is_dir(follow_symlinks=False):
                # A renamed directory keeps the times of its contents.
                is_new = self._has_changed(name, since_ns) and not self._prepared.hold(name)
                yield from self._files_below(
                    f"{name}/", (*above, os.path.realpath(entry.path)), 0 if is_new else since_ns
                )
            elif entry.is_file(follow_symlinks=False):
                yield from self._if_readable(name)
            elif os.path.lexists(entry.path):
                self.left_out[name] = NO_FILE

    def _is_not_the_programs(self, entry: os.DirEntry[str], since_ns: int) -> bool:
        """Return whether this is no directory, and is howdah's own file or was here unchanged when the program
        started."""
        if not self._since_ns or entry.is_dir(follow_symlinks=False):
            return False
        if HOWDAHS_FILES.fullmatch(entry.name):
            return True
        try:
            return entry.stat(follow_symlinks=False).st_ctime_ns < since_ns
        except FileNotFoundError:  # removed since it was listed
            return True

    def _has_changed(self, directory: str, since_ns: int) -> bool:
        try:
            return os.stat(os.path.join(self.directory, directory)).st_ctime_ns >= since_ns
        except FileNotFoundError:
            return False

    def _files_behind_link(self, name: str, above: tuple[str, ...], since_ns: int) -> Iterator[str]:
        path = os.path.join(self.directory, name)
        if not os.path.exists(path):
            self.left_out[name] = LEADS_NOWHERE
            return
        real = os.path.realpath(path)
        if real not in self._inputs and not any(is_inside(real, root) for root in self._roots):
            self.left_out[name] = LEADS_OUT
        elif os.path.isfile(real):
            yield from self._if_readable(name)
        elif real in above:
            self.left_out[name] = LEADS_BACK
        elif os.path.isdir(real):
            yield from self._files_below(f"{name}/", (*above, real), since_ns)
        else:
            self.left_out[name] = NO_FILE

    def _if_readable(self, name: str) -> Iterator[str]:
        """Yield a file's name if it can be opened: a file that can't be opened must not keep all others from being
        copied."""
        path = os.path.join(self.directory, name)
        if is_readable(path):
            yield name
        elif os.path.lexists(path):  # else it was removed since it was listed
            self.left_out[name] = NOT_READABLE

    def problems(self, prefix: str = "") -> list[str]:
        """Return a sentence for each path that is left out; `prefix` is put before its name."""
        return [f"{prefix}{name}: {reason}" for name, reason in self.left_out.items()]
