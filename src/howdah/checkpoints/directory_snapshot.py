"""Copies a directory while programs write to it, so that the copy shows the directory at one moment.

The rule: files are copied, then all files are listed again, until no file has changed between its copying and the last
listing. Then all copies together show the directory at that listing. A file that changes all the time is left out, or
copied at some moment, and named. Logs, which only grow, are copied up to their end at that moment.
"""

# ruff: noqa: PTH115, PTH116, PTH118, PTH123, PTH208 - many small calls while a program runs

from __future__ import annotations

import errno
import os
import posixpath
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import BinaryIO

from howdah.checkpoints import file_validation
from howdah.spec.values import dataclass
from howdah.storage.output_files import OutputFiles

QUIET_S = 1.0
"""Seconds without a change after which a file that no process has open for writing counts as finished."""
OPEN_QUIET_S = 30.0
"""The same limit for a file that a process has open for writing."""
FLAWED_S = 10.0
"""The same time for a file that is cut according to its format, but that no process has open: its writer may be
dead."""
CLOSED_S = 3.0
"""Longest wait for a file that changes all the time, but that no process has open at the moment."""
SETTLE_S = 30.0
"""Longest wait for files that are being written."""
LOOK_S = 0.25
"""Seconds between two checks of files that are being written."""
ROUNDS = 5
"""The most rounds in which files that changed while others were copied are copied again, so that all copies are of one
moment."""
THREADS = 4
"""The number of files that are copied at once."""

_NOT_READABLE = (FileNotFoundError, ProcessLookupError, PermissionError)
# Hidden files, and files with a temporary name: of editors, TensorFlow's savers, Orbax, Hugging Face. Torch's sharded
# checkpoints keep their table of contents in `.metadata`.
_TEMPORARY = re.compile(
    r"\.(?!metadata$).*|.*~|.*\.(tmp|temp|part|partial|incomplete|swp|lock)|.*\.tmp[-_.].*|.*\.tempstate\d+|"
    r".*_temp(_[0-9a-f]{32})?|workertemp_\d+|tmp-checkpoint-.*|.*\.orbax-checkpoint-tmp.*|_temporary|__pycache__"
)
_LOG = re.compile(r"events\.out\.tfevents\..*|.*\.(log|jsonl|out|err)")
_TABLE = re.compile(r".*\.(csv|tsv|txt)", re.DOTALL)


@dataclass(frozen=True)
class Stamp:
    """Size and time of a file, which differ when its content differs."""

    size: int
    """Number of bytes."""
    modified_ns: int
    """Time of the last change, in nanoseconds."""


@dataclass
class DirectorySnapshot:
    """The content of a copy of a directory."""

    files: dict[str, Stamp] = field(default_factory=dict)
    """The files in the copy, by their path below the directory."""
    skipped: list[str] = field(default_factory=list)
    """A sentence for each file that is not in the copy, or not in its present state."""


Put = Callable[[BinaryIO, str, int], object]
"""`put(file, name, size)` copies the first `size` bytes of a file to its place in the copy."""
Drop = Callable[[str], object]


def copy_directory(
    directory: str,
    put: Put,
    drop: Drop,
    known: Mapping[str, Stamp] | None = None,
    settle_s: float = SETTLE_S,
    root: str = "",
) -> DirectorySnapshot:
    """Copy the files in `directory` and below by `put`, or the one file that it is; `drop(name)` removes copies of
    files that vanish or change.

    Files of `known` that still have the same stamp are part of the snapshot without being copied. Links are followed
    within `root`, the working directory.

    Raises:
        OSError: the directory can't be read; errors of `put` and `drop` are passed on.
    """
    return _Copier(directory, root, put, drop, dict(known or {})).copy_until_settled(settle_s)


def list_files(
    directory: str,
    root: str = "",
    ignored: Callable[[str], bool] | None = None,
    left_out: list[str] | None = None,
    empty: list[str] | None = None,
) -> dict[str, Stamp]:
    """Return the files in `directory` and below, by their path from there, without those whose name is `ignored` (by
    default: is temporary).

    Links are followed within the directory and `root`. `left_out` gets a sentence for each link that leads elsewhere,
    and `empty` gets the empty directories.

    Raises:
        OSError: a file or directory is not readable, so the files are not known.
    """
    names = OutputFiles(directory, root, ignored or is_temporary)
    stamps = _stamps(names)
    if left_out is not None:
        left_out += names.problems()
    if empty is not None:
        empty += names.empty
    return stamps


def _stamps(names: OutputFiles) -> dict[str, Stamp]:
    try:
        pairs = [(name, stamp_of(os.path.join(names.directory, name))) for name in names]
    except FileNotFoundError:  # the whole directory is gone
        return {}
    return {name: stamp for name, stamp in pairs if stamp is not None}


def stamp_of(path: str) -> Stamp | None:
    """Return the stamp of a regular file; None when there is no such file.

    Raises:
        OSError: the file can't be examined.
    """
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:  # links that lead to each other
            return None
        raise
    return _stamp(found) if stat.S_ISREG(found.st_mode) else None


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_size, status.st_mtime_ns)


def find_settled_files(
    directory: str, settle_s: float, root: str = "", ignored: Callable[[str], bool] | None = None
) -> tuple[dict[str, Stamp], list[str]]:
    """Return the files that no process is writing and that have no known defect, and sentences about the others. Files
    whose name is `ignored` (by default: is temporary) are left out.

    The call waits up to `settle_s` for files that are being written. Links are followed within `root`, the working
    directory.
    """
    copier = _Copier(directory, root, lambda *_: None, lambda _: None, {})
    copier.names = OutputFiles(directory, root, ignored or is_temporary)
    copier.closed_until = time.monotonic() + min(CLOSED_S, settle_s)
    seen, skipped = copier.wait_for_settled_files(time.monotonic() + settle_s)
    defects = {
        name: found for name in seen if (found := file_validation.describe_defect(os.path.join(directory, name)))
    }
    lost = {**defects, **dict(file_validation.find_orphans(seen.keys() - defects.keys()))}
    whole = {name: stamp for name, stamp in seen.items() if name not in lost}
    return whole, [*skipped, *(f"{name}: {reason}" for name, reason in lost.items())]


class _Copier:
    """Copies one directory. `kept` are the files in the copy, by their stamps."""

    def __init__(self, directory: str, root: str, put: Put, drop: Drop, kept: dict[str, Stamp]) -> None:
        self.names = OutputFiles(directory, root, is_temporary)
        self.directory, self.put, self.drop, self.kept = self.names.directory, put, drop, kept
        self.logs: set[str] = set()
        """Files that are treated as logs, because they grow all the time."""
        self.copied: set[str] = set()
        """Files that this object has copied."""
        self.closed_until = 0.0
        """The time until which to wait for files that change, but that no process has open."""

    def copy_until_settled(self, settle_s: float) -> DirectorySnapshot:
        self.closed_until = time.monotonic() + min(CLOSED_S, settle_s)
        deadline = time.monotonic() + settle_s
        skipped: list[str] = []
        from concurrent.futures import ThreadPoolExecutor  # a submission does not need it

        with ThreadPoolExecutor(THREADS, "copy") as pool:
            for _ in range(ROUNDS):
                seen, skipped = self.wait_for_settled_files(deadline)
                missing = [
                    name for name, stamp in seen.items() if not self._is_unchanged(name, self.kept.get(name), stamp)
                ]
                if not self._forget(name for name in list(self.kept) if name not in seen) and not missing:
                    return self._result(skipped)
                done = pool.map(self._copy, missing, [seen[name] for name in missing])
                for name, stamp in zip(missing, list(done)):  # noqa: B905
                    self.kept.pop(name, None)
                    if stamp is not None:
                        self.kept[name] = stamp
        return self._result_of_changing_files(skipped)

    def _forget(self, names: Iterable[str]) -> int:
        count = 0
        for name in names:
            del self.kept[name]
            self.copied.discard(name)
            self.drop(name)
            count += 1
        return count

    def _copy(self, name: str, stamp: Stamp) -> Stamp | None:
        """Copy one file, and return the stamp of the copy; None when the copy is not one whole version of the file.

        The open file stays the same when another file gets its name.
        """
        path = os.path.join(self.directory, name)
        self.copied.add(name)
        try:
            with open(path, "rb", buffering=0) as file:
                before = _stamp(os.fstat(file.fileno()))
                if not self._is_unchanged(name, stamp, before) and file_validation.find_defect(file, name, before.size):
                    return None
                file.seek(0)
                self.put(file, name, before.size)
                after = _stamp(os.fstat(file.fileno()))
        except FileNotFoundError:
            return None
        return before if self._is_unchanged(name, before, after) else None

    def _is_unchanged(self, name: str, before: Stamp | None, now: Stamp) -> bool:
        if before is None or before == now:
            return before is not None
        return name in self.copied and (is_log(name) or name in self.logs) and now.size >= before.size

    def wait_for_settled_files(self, deadline: float) -> tuple[dict[str, Stamp], list[str]]:
        """Wait until `deadline` for files that are being written; return the others, and why these are left out."""
        while True:
            seen = _stamps(self.names)
            reasons = dict(self._files_being_written(seen))
            if not reasons or time.monotonic() >= deadline:
                break
            time.sleep(LOOK_S)
        self.logs |= {name for name in reasons if _TABLE.fullmatch(name)}
        for name in self.logs:
            reasons.pop(name, None)
        whole = {name: stamp for name, stamp in seen.items() if name not in reasons}
        return whole, [*(f"{name}: {reason}" for name, reason in reasons.items()), *self.names.problems()]

    def _files_being_written(self, seen: Mapping[str, Stamp]) -> Iterator[tuple[str, str]]:
        """Yield each file that is still being written, and a sentence with the reason for that assumption."""
        open_files: set[str] | None = None
        now = time.time()
        for name, stamp in seen.items():
            age = now - stamp.modified_ns / 1e9
            if is_log(name) or (age >= OPEN_QUIET_S and not file_validation.has_known_format(name)):
                continue
            path = os.path.join(self.directory, name)
            defect = file_validation.describe_defect(path)
            if defect == "":
                continue
            open_files = _open_for_writing(self.directory) if open_files is None else open_files
            is_open = os.path.realpath(path) in open_files
            if not defect and not is_open and time.monotonic() > self.closed_until:
                continue
            if age < (OPEN_QUIET_S if is_open else FLAWED_S if defect else QUIET_S) or (defect and is_open):
                yield name, defect or "is still being written"

    def _result_of_changing_files(self, skipped: list[str]) -> DirectorySnapshot:
        """Keep copies of files that change all the time, but not of files that are useless without others."""
        now = _stamps(self.names)
        changed = [
            name for name in self.kept if name not in now or not self._is_unchanged(name, self.kept[name], now[name])
        ]
        self._forget(name for name in changed if name not in now or file_validation.is_part(name))
        reported = {line.partition(": ")[0] for line in skipped}
        late = [f"{name}: has been replaced since it was copied" for name in changed if name in self.kept]
        lost = [
            f"{name}: changes faster than it can be copied"
            for name in now
            if name not in reported and name not in self.kept
        ]
        return self._result([*skipped, *late, *lost])

    def _result(self, skipped: list[str]) -> DirectorySnapshot:
        """Remove files that are useless without other, missing files, and return the content of the copy."""
        orphans = dict(file_validation.find_orphans(self.kept))
        self._forget(orphans)
        for name in self.copied - self.kept.keys():  # the file changed or vanished while it was copied
            self.drop(name)
        return DirectorySnapshot(self.kept, [*skipped, *(f"{name}: {reason}" for name, reason in orphans.items())])


def is_temporary(name: str) -> bool:
    """Return whether a file or directory has the name of a hidden or unfinished one."""
    return bool(_TEMPORARY.fullmatch(name))


def is_log(name: str) -> bool:
    """Return whether a file has the name of a log, which only grows."""
    return bool(_LOG.fullmatch(posixpath.basename(name)))


def has_grown(name: str, before: Stamp, now: Stamp | None, is_restless: bool) -> bool:
    """Return whether a file has only become longer, with its old content as its beginning. This is true of logs, and of
    tables that change all the time."""
    is_grown = now is not None and now.size >= before.size
    return is_grown and (is_log(name) or (is_restless and bool(_TABLE.fullmatch(name))))


def _open_for_writing(directory: str) -> set[str]:
    """Return the real paths below `directory` that a process of this user has open for writing (proc(5)).

    Raises:
        OSError: /proc can't be read.
    """
    root = os.path.realpath(directory) + os.sep
    found: set[str] = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")
        except _NOT_READABLE:
            continue
        for number in numbers:
            try:
                path = os.readlink(f"/proc/{pid}/fd/{number}")
                if path.startswith(root) and _is_open_for_writing(f"/proc/{pid}/fdinfo/{number}"):
                    found.add(path)
            except _NOT_READABLE:
                continue
    return found


def _is_open_for_writing(information: str) -> bool:
    with open(information, encoding="ascii", errors="replace") as file:
        flags = next((line.split()[1] for line in file if line.startswith("flags:")), "0")
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY
