"""Which task gets which files: a pure function, so that a task started again gets the same ones.

Names are settled for the whole job before anything is dealt: a file has the same name in every task that gets it.
"""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Iterator
from dataclasses import replace

from howdah.spec.staged import DataFile, Fetch, StagedInput, StagedJob
from howdah.spec.world import TaskId

NO_DATA = ("ps", "evaluator")
"""Roles that get no input unless it names them."""
TRAINERS = ("chief", "master", "worker")
"""Roles that train together: `split` deals to all their tasks as one row, the chief first; other roles are rows of
their own."""


def fetches(staged: StagedJob, task: TaskId) -> tuple[Fetch, ...]:
    """What `task` must have before it starts, one Fetch for each directory, which is made even when it is empty."""
    wanted: dict[str, list[DataFile]] = {}
    for entry in _settled(staged):
        row = _row(entry, staged, task)
        if row:
            files = entry.files if entry.share == "all" else entry.files[row.index(task) :: len(row)]
            wanted.setdefault(entry.to, []).extend(files)
    return tuple(Fetch(to, tuple(files)) for to, files in wanted.items())


def named(inputs: tuple[StagedInput, ...]) -> tuple[StagedInput, ...]:
    """The inputs with names that don't clash: below one `to` the second `a.csv` becomes `a-2.csv`, the third
    `a-3.csv`, in the order of the inputs and their files. Names that were free stay as they are."""
    folders: dict[str, _Folder] = {}
    settled = []
    for entry in inputs:
        to = posixpath.normpath(entry.to)
        folder = folders.setdefault(to, _Folder())
        files = tuple(replace(file, name=folder.take(file.name)) for file in entry.files)
        settled.append(replace(entry, to=to, files=files))
    return tuple(settled)


class _Folder:
    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._next: dict[str, int] = {}

    def take(self, name: str) -> str:
        *folders, base = name.split("/")
        path = ""
        for folder in folders:
            path = self._folder(posixpath.join(path, folder))
            self._folders.add(path)
        free = self._file(posixpath.join(path, base))
        self._files.add(free)
        return free

    def _folder(self, wanted: str) -> str:
        """Where a directory goes: there, unless a file has the name."""
        return next(name for name in _numbered(wanted) if name not in self._files)

    def _file(self, wanted: str) -> str:
        if wanted not in self._files and wanted not in self._folders:
            return wanted
        for number in itertools.count(self._next.get(wanted, 2)):
            free = _with(wanted, number)
            if free not in self._files and free not in self._folders:
                break
        self._next[wanted] = number + 1  # ten thousand files of one name take ten thousand steps, not their square
        return free


def _numbered(path: str) -> Iterator[str]:
    yield path
    yield from (_with(path, number) for number in itertools.count(2))


def _with(path: str, number: int) -> str:
    folder, _, base = path.rpartition("/")
    stem, dot, rest = base.partition(".") if not base.startswith(".") else (base, "", "")
    return posixpath.join(folder, f"{stem}-{number}{dot}{rest}")


def _row(entry: StagedInput, staged: StagedJob, task: TaskId) -> list[TaskId]:
    """The tasks among which this one has its place, in dealing order; none when its role gets nothing."""
    roles = entry.roles or tuple(name for name in staged.job.roles if name not in NO_DATA)
    if task.role not in roles:
        return []
    together = TRAINERS if task.role in TRAINERS else (task.role,)
    return [TaskId(name, n) for name in together if name in roles for n in range(_replicas(staged, name))]


def _replicas(staged: StagedJob, role: str) -> int:
    return staged.job.roles[role].replicas if role in staged.job.roles else 0


_last: tuple[StagedJob, tuple[StagedInput, ...]] | None = None


def _settled(staged: StagedJob) -> tuple[StagedInput, ...]:
    """`named`, remembered for one job: a master asks once per task, and a job may have 100,000 files."""
    global _last
    if _last is None or _last[0] is not staged:
        _last = (staged, named(staged.inputs))
    return _last[1]
