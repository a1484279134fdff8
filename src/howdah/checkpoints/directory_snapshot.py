"""A copy of a directory that is being written: what it was at one moment, though nobody stops writing for it.

The rule: files are copied, then looked at again, until nothing has changed between a file's copying and the last look.
Then all of them together are what the directory was at that look. What never holds still is left out, or as it was when
it was copied, and named; logs, which only grow, are copied as far as they had come.
"""

# ruff: noqa: PTH115, PTH116, PTH118, PTH123, PTH208 - many small calls, under a program's feet

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
"""Unchanged for so long, a file that nobody holds open for writing is taken for finished."""
OPEN_QUIET_S = 30.0
"""The same for one that somebody does hold open."""
FLAWED_S = 10.0
"""The same for one that is cut by its own format, but that nobody holds open: its writer may be dead."""
CLOSED_S = 3.0
"""One that changes all the time, but that nobody holds open now, is waited for only this long."""
SETTLE_S = 30.0
"""Longest wait for files being written."""
LOOK_S = 0.25
ROUNDS = 5
THREADS = 4

# Hidden files and what programs write under a name of the moment: editors, TensorFlow's savers, Orbax, Hugging Face.
# Torch's sharded checkpoints keep their table of contents in `.metadata`.
_NOT_OURS_OR_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
_TEMPORARY = re.compile(
    r"\.(?!metadata$).*|.*~|.*\.(tmp|temp|part|partial|incomplete|swp|lock)|.*\.tmp[-_.].*|.*\.tempstate\d+|"
    r".*_temp(_[0-9a-f]{32})?|workertemp_\d+|tmp-checkpoint-.*|.*\.orbax-checkpoint-tmp.*|_temporary|__pycache__"
)
_LOG = re.compile(r"events\.out\.tfevents\..*|.*\.(log|jsonl|out|err)")
_TABLE = re.compile(r".*\.(csv|tsv|txt)", re.DOTALL)


@dataclass(frozen=True)
class Stamp:
    """What tells one content of a file from another: size in bytes, time of the last change in nanoseconds."""

    size: int
    modified_ns: int


@dataclass
class DirectorySnapshot:
    """`files` are in the copy, by their path below the directory; `skipped` are sentences about those that are not."""

    files: dict[str, Stamp] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


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
    """Copy what is in `directory` and below by `put`; `drop(name)` takes back what has gone or changed meanwhile.

    Files of `known` that still have the same stamp are part of the snapshot without being copied. Links are followed
    within `root`, the working directory.

    Raises:
        OSError: the directory can't be read; errors of `put` and `drop` are passed on.
    """
    return _Taker(OutputFiles(directory, root, is_temporary), put, drop, dict(known or {})).copy_until_settled(settle_s)


def files(directory: str, root: str = "") -> dict[str, Stamp]:
    """Every file in `directory` and below that has a name of its own, by its path from there. Links are followed within
    it and `root`; a file that vanishes meanwhile isn't there.

    Raises:
        OSError: something in it can't be looked at, so it isn't known what is there.
    """
    return _stamps(OutputFiles(directory, root, is_temporary))


def _stamps(names: OutputFiles) -> dict[str, Stamp]:
    try:
        pairs = [(name, stamp_of(os.path.join(names.directory, name))) for name in names]
    except FileNotFoundError:  # the whole directory is gone
        return {}
    return {name: stamp for name, stamp in pairs if stamp is not None}


def stamp_of(path: str) -> Stamp | None:
    """The stamp of a regular file; None when there is none.

    Raises:
        OSError: it can't be looked at.
    """
    try:
        found = os.stat(path)
    except OSError as error:
        if error.errno != errno.ELOOP:  # links that lead to each other
            _unless_gone(error)
        return None
    return _stamp(found) if stat.S_ISREG(found.st_mode) else None


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise error


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_size, found.st_mtime_ns)


def settled(directory: str, settle_s: float, root: str = "") -> tuple[dict[str, Stamp], list[str]]:
    """The files that nobody is writing and that are whole as far as can be told, after waiting up to `settle_s` for the
    others; sentences about those. Links are followed within `root`, the working directory."""
    taker = _Taker(OutputFiles(directory, root, is_temporary), lambda *_: None, lambda _: None, {})
    taker.patient_until = time.monotonic() + min(CLOSED_S, settle_s)
    seen, skipped = taker.settled(time.monotonic() + settle_s)
    flawed = {name: flaw for name in seen if (flaw := file_validation.describe_defect(os.path.join(directory, name)))}
    lost = {**flawed, **dict(file_validation.orphans(seen.keys() - flawed.keys()))}
    whole = {name: stamp for name, stamp in seen.items() if name not in lost}
    return whole, [*skipped, *(f"{name}: {reason}" for name, reason in lost.items())]


class _Taker:
    """`kept` are in the copy, `copied` those of them that were copied now; `logs` are files that have proved to be logs
    by growing all the time."""

    def __init__(self, names: OutputFiles, put: Put, drop: Drop, kept: dict[str, Stamp]) -> None:
        self.names, self.directory, self.put, self.drop, self.kept = names, names.directory, put, drop, kept
        self.logs: set[str] = set()
        self.copied: set[str] = set()
        self.patient_until = 0.0

    def copy_until_settled(self, settle_s: float) -> DirectorySnapshot:
        self.patient_until = time.monotonic() + min(CLOSED_S, settle_s)
        deadline = time.monotonic() + settle_s
        skipped: list[str] = []
        from concurrent.futures import ThreadPoolExecutor  # a submission does without

        with ThreadPoolExecutor(THREADS, "copy") as pool:
            for _ in range(ROUNDS):
                seen, skipped = self.settled(deadline)
                missing = [name for name, stamp in seen.items() if not self._same(name, self.kept.get(name), stamp)]
                if not self._forget(name for name in list(self.kept) if name not in seen) and not missing:
                    return self._finished(skipped)
                done = pool.map(self._copy, missing, [seen[name] for name in missing])
                for name, stamp in zip(missing, list(done)):  # noqa: B905
                    self.kept.pop(name, None)
                    if stamp is not None:
                        self.kept[name] = stamp
        return self._never_still(skipped)

    def _forget(self, names: Iterable[str]) -> int:
        count = 0
        for name in names:
            del self.kept[name]
            self.copied.discard(name)
            self.drop(name)
            count += 1
        return count

    def _copy(self, name: str, stamp: Stamp) -> Stamp | None:
        """Copy one file; the stamp of what was copied, None when that is not one whole version of it.

        The open file stays the same one when another takes its name.
        """
        path = os.path.join(self.directory, name)
        self.copied.add(name)
        try:
            with open(path, "rb", buffering=0) as file:
                before = _stamp(os.fstat(file.fileno()))
                if not self._same(name, stamp, before) and file_validation.find_defect(file, name, before.size):
                    return None
                file.seek(0)
                self.put(file, name, before.size)
                after = _stamp(os.fstat(file.fileno()))
        except FileNotFoundError:
            return None
        return before if self._same(name, before, after) else None

    def _same(self, name: str, before: Stamp | None, now: Stamp) -> bool:
        if before is None or before == now:
            return before is not None
        return name in self.copied and (_is_log(name) or name in self.logs) and now.size >= before.size

    def settled(self, deadline: float) -> tuple[dict[str, Stamp], list[str]]:
        """The files that nobody is writing, after waiting until `deadline` for the others; why those are left out."""
        while True:
            seen = _stamps(self.names)
            reasons = dict(self._unfinished(seen))
            if not reasons or time.monotonic() >= deadline:
                break
            time.sleep(LOOK_S)
        self.logs |= {name for name in reasons if _TABLE.fullmatch(name)}
        for name in self.logs:
            reasons.pop(name, None)
        whole = {name: stamp for name, stamp in seen.items() if name not in reasons}
        return whole, [*(f"{name}: {reason}" for name, reason in reasons.items()), *self.names.problems()]

    def _unfinished(self, seen: Mapping[str, Stamp]) -> Iterator[tuple[str, str]]:
        """Pairs of a file that is still being written and how that shows."""
        writers: set[str] | None = None
        now = time.time()
        for name, stamp in seen.items():
            age = now - stamp.modified_ns / 1e9
            if _is_log(name) or (age >= OPEN_QUIET_S and not file_validation.known(name)):
                continue
            path = os.path.join(self.directory, name)
            flaw = file_validation.describe_defect(path)
            if flaw == "":
                continue
            writers = _being_written(self.directory) if writers is None else writers
            held = os.path.realpath(path) in writers
            if not flaw and not held and time.monotonic() > self.patient_until:
                continue
            if age < (OPEN_QUIET_S if held else FLAWED_S if flaw else QUIET_S) or (flaw and held):
                yield name, flaw or "is still being written"

    def _never_still(self, skipped: list[str]) -> DirectorySnapshot:
        """What goes on changing is there as it was when it was copied, unless it means nothing without others."""
        now = _stamps(self.names)
        changed = [name for name in self.kept if name not in now or not self._same(name, self.kept[name], now[name])]
        self._forget(name for name in changed if name not in now or file_validation.is_part(name))
        told = {line.partition(": ")[0] for line in skipped}
        late = [f"{name}: has been replaced since it was copied" for name in changed if name in self.kept]
        lost = [
            f"{name}: changes faster than it can be copied"
            for name in now
            if name not in told and name not in self.kept
        ]
        return self._finished([*skipped, *late, *lost])

    def _finished(self, skipped: list[str]) -> DirectorySnapshot:
        """Without files that mean nothing without others which are not there."""
        orphans = dict(file_validation.orphans(self.kept))
        self._forget(orphans)
        for name in self.copied - self.kept.keys():  # it had changed or gone when it was copied
            self.drop(name)
        return DirectorySnapshot(self.kept, [*skipped, *(f"{name}: {reason}" for name, reason in orphans.items())])


def is_temporary(name: str) -> bool:
    """Whether a file or directory is called as what is hidden, or not finished."""
    return bool(_TEMPORARY.fullmatch(name))


def _is_log(name: str) -> bool:
    return bool(_LOG.fullmatch(posixpath.basename(name)))


def _being_written(directory: str) -> set[str]:
    """Real paths below `directory` that a process of ours, or of our user, holds open for writing (proc(5)).

    Raises:
        OSError: this process can't look.
    """
    root = os.path.realpath(directory) + os.sep
    found: set[str] = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")
        except _NOT_OURS_OR_GONE:
            continue
        for number in numbers:
            try:
                path = os.readlink(f"/proc/{pid}/fd/{number}")
                if path.startswith(root) and _writes(f"/proc/{pid}/fdinfo/{number}"):
                    found.add(path)
            except _NOT_OURS_OR_GONE:
                continue
    return found


def _writes(information: str) -> bool:
    with open(information, encoding="ascii", errors="replace") as file:
        flags = next((line.split()[1] for line in file if line.startswith("flags:")), "0")
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY
