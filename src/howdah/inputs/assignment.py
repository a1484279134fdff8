"""Assigns input files to tasks by a pure function, so that a restarted task gets the same files.

File names are made unique for the whole job before files are assigned: a file has the same name in every task.
"""

from __future__ import annotations

import heapq
import itertools
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from howdah.spec.job import Input, JobSpec
from howdah.spec.staged import DataFile, Fetch, StagedInput, StagedJob
from howdah.spec.task import TaskId

NO_DATA = ("ps", "evaluator")
"""Roles that get no input unless the input names them."""
_OF_FILES = ""
"""The path of an input that represents a directory of the cluster named in the job's `files`."""
TRAINERS = ("chief", "master", "worker")
"""Roles that train together: their tasks share the files of an input as one group, the chief first. Every other role
is a group of its own."""
Part = TypeVar("Part")


def plan_fetches(staged: StagedJob, task: TaskId) -> tuple[Fetch, ...]:
    """Return the files that `task` must have before it starts: a Fetch for each directory, even an empty one; two, if
    only some of the directory's inputs are kept on the node."""
    wanted: dict[tuple[str, bool, bool], Fetch] = {}
    for entry, found, files in _files_of(staged, task, "download"):
        kind = (found.to, entry.cache, entry.path == _OF_FILES)
        before = wanted.get(kind) or Fetch(found.to, (), *kind[1:])
        wanted[kind] = replace(before, files=(*before.files, *files), empty=(*before.empty, *found.empty))
    return tuple(wanted.values())


def placeholder_uris(staged: StagedJob, task: TaskId) -> Mapping[str, tuple[str, ...]]:
    """Return the URIs that `task` reads by itself, by the name of their input."""
    found: dict[str, tuple[str, ...]] = {}
    for _, staged_input, files in _files_of(staged, task, "placeholder"):
        to = staged_input.to
        found[to] = (*found.get(to, ()), *(file.uri for file in files))
    return found


def sharing_tasks(job: JobSpec, roles: Sequence[str], role: str) -> list[TaskId]:
    """Return the group of tasks with which the tasks of `role` share an input, in the order of assignment; none when
    `role` gets nothing. The input is for `roles`, () for all roles that read data."""
    roles = roles or [name for name in job.roles if name not in NO_DATA]
    if role not in roles:
        return []
    together = TRAINERS if role in TRAINERS else (role,)
    return [
        TaskId(name, number)
        for name in together
        if name in roles and name in job.roles
        for number in range(job.roles[name].replicas)
    ]


def tasks_without_files(job: JobSpec, entry: Input, files: Sequence[DataFile]) -> list[TaskId]:
    """Return the tasks for which the job waits and that get no file, although the job does not permit that."""
    found: list[TaskId] = []
    for tasks in dict.fromkeys(tuple(sharing_tasks(job, entry.roles, role)) for role in job.roles):
        parts = zip(tasks, assign_files(entry, files, len(tasks)), strict=True)
        first = 1 if entry.chief == 0 and len(tasks) > 1 else 0
        found += [task for task, part in list(parts)[first:] if not part and job.roles[task.role].tracked is not False]
    return found


def with_fewer_tasks(job: JobSpec, inputs: Sequence[StagedInput]) -> JobSpec:
    """Reduce the job to as many tasks as an input has files, if the input permits it (`fewer_tasks`). The last tasks of
    a group are left out, but never the first of a role."""
    for entry, staged in zip(job.inputs, inputs, strict=True):
        if not entry.fewer_tasks or entry.strategy == "stream" or entry.share == "all" or not staged.files:
            continue
        for role in reversed([*job.roles]):
            tasks = sharing_tasks(job, entry.roles, role)
            kept = max(1, job.roles[role].replicas - max(0, len(tasks) - len(staged.files)))
            if tasks:
                min_replicas = min(kept, job.roles[role].min_replicas)
                fewer = replace(job.roles[role], replicas=kept, min_replicas=min_replicas)
                job = replace(job, roles={**job.roles, role: fewer})
    return job


def explain_shortages(requested: JobSpec, staged: StagedJob) -> Iterator[str]:
    """Yield a sentence for each input with fewer files than the `requested` job has tasks, if the job permits that."""
    for entry, found in zip(requested.inputs, staged.inputs, strict=False):
        path = entry.path if isinstance(entry.path, str) else ", ".join(entry.path)
        idle = tasks_without_files(staged.job, entry, found.files) if entry.strategy != "stream" else []
        if entry.fewer_tasks:
            for name, role in requested.roles.items():
                started = staged.job.roles[name].replicas
                if started < role.replicas and sharing_tasks(requested, entry.roles, name):
                    yield f"{path} has {len(found.files)} files: {name} starts {started} of {role.replicas} tasks"
        elif idle:
            yield f"{path} has {len(found.files)} files: {len(idle)} tasks get none, the first is {idle[0]}"


def assign_files(entry: Input, files: Sequence[DataFile], tasks: int) -> list[tuple[DataFile, ...]]:
    """Return each task's files, in the order of the tasks. A single task gets all files, whatever the chief's share
    is."""
    if entry.share == "all" or tasks < 2:
        return [tuple(files)] * tasks
    if entry.chief is None:
        return _divide(entry.share, files, tasks)
    return [tuple(files[: entry.chief]), *_divide(entry.share, files[entry.chief :], tasks - 1)]


def _divide(share: str, files: Sequence[DataFile], tasks: int) -> list[tuple[DataFile, ...]]:
    if share == "bytes":
        return _assign_by_bytes(files, tasks)
    return [tuple(files[number::tasks]) for number in range(tasks)]


def _assign_by_bytes(files: Sequence[DataFile], tasks: int) -> list[tuple[DataFile, ...]]:
    """Assign the largest files first, each to the task with the least bytes.

    No task gets more than 4/3 of the largest share of the best assignment (Graham 1969). Of equally loaded tasks the
    one with fewer files is next, so that empty files are spread, too.
    """
    shares: list[list[int]] = [[] for _ in range(tasks)]
    loads = [(0, 0, task) for task in range(tasks)]
    for index in sorted(range(len(files)), key=lambda index: (-files[index].size, index)):
        load, count, task = loads[0]
        shares[task].append(index)
        heapq.heapreplace(loads, (load + files[index].size, count + 1, task))
    return [tuple(files[index] for index in sorted(share)) for share in shares]


def deduplicate_names(inputs: tuple[StagedInput, ...]) -> tuple[StagedInput, ...]:
    """Make the names of files unique: below one `to` the second `a.csv` becomes `a-2.csv`, the third `a-3.csv`, in the
    order of the inputs and their files. Unique names stay as they are."""
    directories: dict[str, _UsedNames] = {}
    found = []
    for entry in inputs:
        to = posixpath.normpath(entry.to)
        used = directories.setdefault(to, _UsedNames())
        files = tuple(replace(file, name=used.add_unused(file.name)) for file in entry.files)
        found.append(replace(entry, to=to, files=files))
    return tuple(found)


class _UsedNames:
    """The names in one directory that are used already by files, and by directories below it."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._directories: set[str] = set()
        self._next: dict[str, int] = {}

    def add_unused(self, name: str) -> str:
        """Return an unused name for a file, and add it. A directory gets another name only if a file has its name."""
        *directories, base = name.split("/")
        path = ""
        for directory in directories:
            path, _ = _first_unused(posixpath.join(path, directory), 1, self._files)
            self._directories.add(path)
        wanted = posixpath.join(path, base)
        path, number = _first_unused(wanted, self._next.get(wanted, 1), self._files, self._directories)
        self._next[wanted] = number + 1  # ten thousand files of one name take ten thousand steps, not their square
        self._files.add(path)
        return path


def _first_unused(path: str, first: int, *used: set[str]) -> tuple[str, int]:
    """Return the first unused of `a.csv`, `a-2.csv`, `a-3.csv`…, and its number, `first` or more."""
    directory, _, base = path.rpartition("/")
    stem, dot, rest = base.partition(".") if not base.startswith(".") else (base, "", "")
    numbered = (
        (posixpath.join(directory, base if number == 1 else f"{stem}-{number}{dot}{rest}"), number)
        for number in itertools.count(first)
    )
    return next(pair for pair in numbered if not any(pair[0] in names for names in used))


class Assignments(Generic[Part]):
    """The parts of each input that tasks get, computed once for each group of tasks: a master asks once per task, and a
    job may have thousands of tasks and 100,000 files. `divide` returns the parts for a number of tasks."""

    def __init__(
        self,
        job: JobSpec,
        inputs: Sequence[tuple[Input, StagedInput]],
        divide: Callable[[Input, StagedInput, int], list[tuple[Part, ...]]],
    ) -> None:
        self._job, self.inputs, self._divide = job, inputs, divide
        self._parts: dict[tuple[int, str], dict[TaskId, tuple[Part, ...]]] = {}

    def part(self, number: int, task: TaskId) -> tuple[Part, ...] | None:
        """Return the part of input `number` that `task` gets; None if its role does not read the input."""
        if (number, task.role) not in self._parts:
            entry, staged = self.inputs[number]
            tasks = sharing_tasks(self._job, entry.roles, task.role)
            self._parts[number, task.role] = dict(zip(tasks, self._divide(entry, staged, len(tasks)), strict=True))
        return self._parts[number, task.role].get(task)


def for_last_job(make: Callable[[StagedJob], Assignments[Part]]) -> Callable[[StagedJob], Assignments[Part]]:
    """Cache the result of `make` for the job of its last call."""
    last: list[tuple[StagedJob, Assignments[Part]]] = []

    def assignments(staged: StagedJob) -> Assignments[Part]:
        if not last or last[0][0] is not staged:
            last[:] = [(staged, make(staged))]
        return last[0][1]

    return assignments


@for_last_job
def _file_assignments(staged: StagedJob) -> Assignments[DataFile]:
    count = len(staged.job.inputs)
    inputs = list(zip(staged.job.inputs, deduplicate_names(staged.inputs[:count]), strict=True))
    # Directories that `files` names: two roles may have different ones of one name, and their files keep theirs.
    inputs += [(Input(_OF_FILES, each.to, each.roles, each.share), each) for each in staged.inputs[count:]]
    return Assignments(staged.job, inputs, lambda entry, found, tasks: assign_files(entry, found.files, tasks))


def _files_of(
    staged: StagedJob, task: TaskId, strategy: str
) -> Iterator[tuple[Input, StagedInput, tuple[DataFile, ...]]]:
    """Yield each input of a strategy with the task's files."""
    assignments = _file_assignments(staged)
    for number, (entry, found) in enumerate(assignments.inputs):
        files = assignments.part(number, task) if entry.strategy == strategy else None
        if files is not None:
            yield entry, found, files
