"""Which task streams which splits: a pure function, so that a task started again gets the same ones.

In order, a task gets splits that follow each other; shuffled, those whose blocks lie on one node, which is then asked
for, or if that is not known every n-th. With `share: bytes` each gets about as many bytes.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from howdah.inputs import assignment
from howdah.spec.job import Input
from howdah.spec.staged import DataFile, Feed, Split, StagedInput, StagedJob
from howdah.spec.task import TaskId
from howdah.spec.values import dataclass

PREFERRED = 3
"""Of the nodes that hold a task's data, those that hold most of it are worth asking for."""


def feeds(staged: StagedJob, task: TaskId) -> tuple[Feed, ...]:
    """The streams that `task` reads, in the order of the inputs; one that has no split for it is there, and empty."""
    found = []
    for number, entry in enumerate(staged.job.inputs):
        hand = _table(staged).hand(number, task) if entry.strategy == "stream" else None
        if hand is not None:
            order = (entry.epochs, entry.shuffle, entry.window, entry.seed)
            found.append(Feed(number, hand, entry.format, entry.options, *order))
    return tuple(found)


def preferred_hosts(staged: StagedJob, task: TaskId) -> tuple[str, ...]:
    """The nodes that hold most bytes of what `task` streams, the best first; none where that is not known."""
    held: Counter[str] = Counter()
    for feed in feeds(staged, task):
        for split in feed.splits:
            for host in split.hosts:
                held[host] += split.length
    return tuple(host for host, _ in sorted(held.items(), key=lambda pair: (-pair[1], pair[0]))[:PREFERRED])


def hosts_with_data(staged: StagedJob) -> dict[TaskId, tuple[str, ...]]:
    """The hosts that each task prefers, as far as any are known."""
    if not any(entry.hosts for entry in staged.inputs):
        return {}
    ids = (TaskId(name, index) for name, role in staged.job.roles.items() for index in range(role.replicas))
    hosts = ((id_, preferred_hosts(staged, id_)) for id_ in ids)
    return {id_: found for id_, found in hosts if found}


def splits_of(file: DataFile, hosts: Sequence[str] = ()) -> list[Split]:
    """A file's splits; none of an empty one."""
    borders = [0, *file.cuts, file.size] if file.size else [0]
    where = [tuple(hosts[number] for number in numbers) for numbers in file.where]
    state = file.size, file.modified_ms, file.etag
    return [
        Split(file.uri, start, end - start, where[number] if number < len(where) else (), *state)
        for number, (start, end) in enumerate(itertools.pairwise(borders))
    ]


def shares(entry: Input, splits: Sequence[Split], tasks: int) -> list[tuple[Split, ...]]:
    """Each task's splits, by its place in the row. A single task gets everything, whatever the chief's share."""
    if entry.share == "all" or tasks < 2:
        return [tuple(splits)] * tasks
    if entry.chief is None:
        return _dealt(entry, splits, tasks)
    return [tuple(splits[: entry.chief]), *_dealt(entry, splits[entry.chief :], tasks - 1)]


def _dealt(entry: Input, splits: Sequence[Split], tasks: int) -> list[tuple[Split, ...]]:
    if entry.shuffle and len({host for split in splits for host in split.hosts}) > 1:
        return _by_place(splits, tasks, entry.share == "bytes")
    if entry.share == "bytes":
        return _scattered(splits, tasks) if entry.shuffle else _consecutive(splits, tasks)
    if entry.shuffle:
        return [tuple(splits[number::tasks]) for number in range(tasks)]
    borders = [-(-len(splits) * number // tasks) for number in range(tasks + 1)]
    return [tuple(splits[start:end]) for start, end in itertools.pairwise(borders)]


def _consecutive(splits: Sequence[Split], tasks: int) -> list[tuple[Split, ...]]:
    """Cut as near as possible to equal shares of the bytes, but so that each task has a split if there are enough."""
    whole, given, at = sum(split.length for split in splits), 0, 0
    found = []
    for number in range(tasks):
        start, goal = at, whole * (number + 1) / tasks
        last = max(min(start + 1, len(splits)), len(splits) - (tasks - number - 1))
        while at < last and (at == start or given + splits[at].length / 2 <= goal):
            given, at = given + splits[at].length, at + 1
        found.append(tuple(splits[start:at]))
    return found


def _scattered(splits: Sequence[Split], tasks: int) -> list[tuple[Split, ...]]:
    """The largest first, each to who has least."""
    found: list[list[int]] = [[] for _ in range(tasks)]
    loads = [(0, number) for number in range(tasks)]
    for place in sorted(range(len(splits)), key=lambda place: (-splits[place].length, place)):
        load, number = loads[0]
        found[number].append(place)
        heapq.heapreplace(loads, (load + splits[place].length, number))
    return _in_order(found, splits)


def _by_place(splits: Sequence[Split], tasks: int, by_bytes: bool) -> list[tuple[Split, ...]]:
    """Nodes are given to tasks in turns, those with most bytes first; each takes what its node has, up to an equal
    share. The rest, the largest first, goes to who has least."""
    weights = [split.length if by_bytes else 1 for split in splits]
    held: Counter[str] = Counter()
    for split in splits:
        held.update(dict.fromkeys(split.hosts, split.length))
    nodes = sorted(held, key=lambda host: (-held[host], host))
    loads = {host: [(0, task) for task in range(at, tasks, len(nodes))] for at, host in enumerate(nodes)}
    found: list[list[int]] = [[] for _ in range(tasks)]

    def give(place: int, row: list[tuple[int, int]]) -> None:
        load, task = row[0]
        found[task].append(place)
        heapq.heapreplace(row, (load + weights[place], task))

    share, rest = sum(weights) // tasks, []
    for place, split in enumerate(splits):
        near = min((loads[host] for host in split.hosts if loads[host]), default=[])
        if near and near[0][0] + weights[place] <= share:
            give(place, near)
        else:
            rest.append(place)
    everybody = sorted(pair for row in loads.values() for pair in row)
    for place in sorted(rest, key=lambda place: (-weights[place], place)):
        give(place, everybody)
    return _in_order(found, splits)


def _in_order(hands: list[list[int]], splits: Sequence[Split]) -> list[tuple[Split, ...]]:
    """Where somebody has none, who has most gives the least that he has."""
    several = [(-len(hand), number) for number, hand in enumerate(hands) if len(hand) > 1]
    heapq.heapify(several)
    for hand in hands:
        if several and not hand:
            count, number = several[0]
            least = min(hands[number], key=lambda place: (splits[place].length, place))
            hands[number].remove(least)
            hand.append(least)
            heapq.heapreplace(several, (count + 1, number))
            if several[0][0] == -1:
                several = []
    return [tuple(splits[place] for place in sorted(hand)) for hand in hands]


@dataclass
class _Table:
    """One job's splits, dealt out once: a master asks once per task."""

    staged: StagedJob
    dealt: dict[tuple[int, str], dict[TaskId, tuple[Split, ...]]] = field(default_factory=dict)

    def hand(self, number: int, task: TaskId) -> tuple[Split, ...] | None:
        """What `task` has of an input; None when its role gets nothing."""
        if (number, task.role) not in self.dealt:
            entry, staged = self.staged.job.inputs[number], self.staged.inputs[number]
            row = assignment.sharing_tasks(self.staged.job, entry.roles, task.role)
            self.dealt[number, task.role] = dict(zip(row, shares(entry, all_splits(staged), len(row)), strict=True))
        return self.dealt[number, task.role].get(task)


def all_splits(entry: StagedInput) -> list[Split]:
    """Of all its files, in their order."""
    return [split for file in entry.files for split in splits_of(file, entry.hosts)]


_last: _Table | None = None


def _table(staged: StagedJob) -> _Table:
    global _last
    if _last is None or _last.staged is not staged:
        _last = _Table(staged)
    return _last
