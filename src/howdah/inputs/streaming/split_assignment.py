"""Assigns splits to tasks by a pure function, so that a restarted task gets the same splits.

Without shuffling, a task gets splits that follow each other. With shuffling, it gets splits whose blocks lie on one
node, on which it should run, or every n-th split if no nodes are known. With `share: bytes` all tasks get about as many
bytes.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Sequence

from howdah.inputs import assignment
from howdah.spec.job import Input
from howdah.spec.staged import DataFile, Feed, Split, StagedInput, StagedJob
from howdah.spec.task import TaskId

MAX_PREFERRED = 3
"""The most nodes that a task prefers: those that have most of its data."""


def feeds(staged: StagedJob, task: TaskId) -> tuple[Feed, ...]:
    """Return the streams that `task` reads, in the order of the inputs, including those that have no split for it."""
    found = []
    for number, entry in enumerate(staged.job.inputs):
        splits = _split_assignments(staged).part(number, task) if entry.strategy == "stream" else None
        if splits is not None:
            order = (entry.epochs, entry.shuffle, entry.window, entry.seed)
            found.append(Feed(number, splits, entry.format, entry.options, *order))
    return tuple(found)


def preferred_hosts(staged: StagedJob, task: TaskId) -> tuple[str, ...]:
    """Return the nodes that have most bytes of the task's splits, the best first; none if no nodes are known."""
    sizes: Counter[str] = Counter()
    for feed in feeds(staged, task):
        for split in feed.splits:
            for host in split.hosts:
                sizes[host] += split.length
    return tuple(host for host, _ in sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_PREFERRED])


def hosts_with_data(staged: StagedJob) -> dict[TaskId, tuple[str, ...]]:
    """Return the nodes that each task prefers, without tasks that prefer none."""
    if not any(entry.hosts for entry in staged.inputs):
        return {}
    ids = (TaskId(name, index) for name, role in staged.job.roles.items() for index in range(role.replicas))
    return {id_: found for id_ in ids if (found := preferred_hosts(staged, id_))}


def splits_of(file: DataFile, hosts: Sequence[str] = ()) -> list[Split]:
    """Return a file's splits; none of an empty file."""
    borders = [0, *file.cuts, file.size] if file.size else [0]
    where = [tuple(hosts[number] for number in numbers) for numbers in file.where]
    state = file.size, file.modified_ms, file.etag
    return [
        Split(file.uri, start, end - start, where[number] if number < len(where) else (), *state)
        for number, (start, end) in enumerate(itertools.pairwise(borders))
    ]


def all_splits(entry: StagedInput) -> list[Split]:
    """Return the splits of all files of an input, in their order."""
    return [split for file in entry.files for split in splits_of(file, entry.hosts)]


def shares(entry: Input, splits: Sequence[Split], tasks: int) -> list[tuple[Split, ...]]:
    """Return each task's splits, in the order of the tasks. A single task gets all splits, whatever the chief's share
    is."""
    if entry.share == "all" or tasks < 2:
        return [tuple(splits)] * tasks
    if entry.chief is None:
        return _divide(entry, splits, tasks)
    return [tuple(splits[: entry.chief]), *_divide(entry, splits[entry.chief :], tasks - 1)]


def _divide(entry: Input, splits: Sequence[Split], tasks: int) -> list[tuple[Split, ...]]:
    by_bytes = entry.share == "bytes"
    if not entry.shuffle:
        if by_bytes:
            return _assign_consecutively(splits, tasks)
        borders = [-(-len(splits) * number // tasks) for number in range(tasks + 1)]
        return [tuple(splits[start:end]) for start, end in itertools.pairwise(borders)]
    by_node = len({host for split in splits for host in split.hosts}) > 1
    if by_node or by_bytes:
        return _balance_shares(splits, tasks, by_node, by_bytes)
    return [tuple(splits[number::tasks]) for number in range(tasks)]


def _assign_consecutively(splits: Sequence[Split], tasks: int) -> list[tuple[Split, ...]]:
    """Cut the sequence of splits into shares with nearly equal numbers of bytes. Each task gets a split if there are
    enough."""
    size, assigned, at = sum(split.length for split in splits), 0, 0
    found = []
    for number in range(tasks):
        start, goal = at, size * (number + 1) / tasks
        last = max(min(start + 1, len(splits)), len(splits) - (tasks - number - 1))
        while at < last and (at == start or assigned + splits[at].length / 2 <= goal):
            assigned, at = assigned + splits[at].length, at + 1
        found.append(tuple(splits[start:at]))
    return found


def _balance_shares(splits: Sequence[Split], tasks: int, by_node: bool, by_bytes: bool) -> list[tuple[Split, ...]]:
    """Give each task about the same share.

    With `by_node`, nodes are assigned to tasks in turns, those with most bytes first, and a task takes the splits of
    its node up to an equal share. The remaining splits, the largest first, go to the task with the smallest share.
    """
    weights = [split.length if by_bytes else 1 for split in splits]
    sizes: Counter[str] = Counter()
    for split in splits if by_node else ():
        sizes.update(dict.fromkeys(split.hosts, split.length))
    nodes = sorted(sizes, key=lambda host: (-sizes[host], host)) or [""]
    loads = {host: [(0, task) for task in range(at, tasks, len(nodes))] for at, host in enumerate(nodes)}
    found: list[list[int]] = [[] for _ in range(tasks)]

    def assign(number: int, loads: list[tuple[int, int]]) -> None:
        load, task = loads[0]
        found[task].append(number)
        heapq.heapreplace(loads, (load + weights[number], task))

    share, rest = sum(weights) // tasks, []
    for number, split in enumerate(splits):
        on_node = min((loads[host] for host in split.hosts if loads.get(host)), default=[])
        if on_node and on_node[0][0] + weights[number] <= share:
            assign(number, on_node)
        else:
            rest.append(number)
    all_loads = sorted(itertools.chain.from_iterable(loads.values()))
    for number in sorted(rest, key=lambda number: (-weights[number], number)):
        assign(number, all_loads)
    _fill_empty(found, splits)
    return [tuple(splits[number] for number in sorted(numbers)) for numbers in found]


def _fill_empty(shares: list[list[int]], splits: Sequence[Split]) -> None:
    """Give each task without splits the smallest split of the task that has most of them."""
    several = [(-len(numbers), task) for task, numbers in enumerate(shares) if len(numbers) > 1]
    heapq.heapify(several)
    for numbers in shares:
        if several and not numbers:
            count, task = several[0]
            smallest = min(shares[task], key=lambda number: (splits[number].length, number))
            shares[task].remove(smallest)
            numbers.append(smallest)
            heapq.heapreplace(several, (count + 1, task))
            if several[0][0] == -1:
                several = []


@assignment.for_last_job
def _split_assignments(staged: StagedJob) -> assignment.Assignments[Split]:
    inputs = list(zip(staged.job.inputs, staged.inputs, strict=False))
    return assignment.Assignments(
        staged.job, inputs, lambda entry, found, tasks: shares(entry, all_splits(found), tasks)
    )
