"""Chooses the pairs that exchange data before the programs start, and finds the container to blame when it fails. The
module is pure.

Round 1 pairs the neighbours of a ring, round 2 shifts the pairs by one: a container that fails with both of its
neighbours is bad, one that fails with only one of them is not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import TypeVar

T = TypeVar("T")
TestPair = tuple[str, str]
"""Two containers, by id."""


def ring_across_nodes(nodes: Mapping[T, str]) -> list[T]:
    """Return the tasks in an order in which neighbours are on different nodes, as far as possible."""
    by_node: dict[str, list[T]] = {}
    for task, node in nodes.items():
        by_node.setdefault(node, []).append(task)
    return [task for layer in zip_longest(*by_node.values()) for task in layer if task is not None]


def pair_rounds(order: Sequence[T], fresh: Collection[T]) -> tuple[list[tuple[T, T]], list[tuple[T, T]]]:
    """Return the pairs of both rounds with a task of `fresh` in them. Two tasks alone have one round: the second would
    be the same."""
    count = len(order)
    first = [(order[number], order[number + 1]) for number in range(0, count - 1, 2)]
    last = count if count % 2 == 0 and count > 2 else count - 1
    second = [(order[number], order[(number + 1) % count]) for number in range(1, last, 2)]
    wanted = [[pair for pair in pairs if pair[0] in fresh or pair[1] in fresh] for pairs in (first, second)]
    return wanted[0], wanted[1]


def find_bad_containers(
    failed: Collection[TestPair], passed: Collection[TestPair]
) -> tuple[list[str], list[TestPair], list[TestPair]]:
    """Return the containers that are bad; the pairs of which one is bad, but not which; and the pairs whose
    members both passed with others, so that the fault must lie between them."""
    bad: list[str] = []
    passed_once = {container for pair in passed for container in pair}
    left = list(dict.fromkeys(failed))
    while left:
        counts: dict[str, int] = {}
        for container in (container for pair in left for container in pair):
            counts[container] = counts.get(container, 0) + 1
        worst = max(counts, key=lambda container: (_is_to_blame(container, left, passed_once), counts[container]))
        if counts[worst] < 2 and not _is_to_blame(worst, left, passed_once):
            break
        bad.append(worst)
        left = [pair for pair in left if worst not in pair]
    between = [pair for pair in left if pair[0] in passed_once and pair[1] in passed_once]
    return bad, [pair for pair in left if pair not in between], between


def _is_to_blame(container: str, failed: Collection[TestPair], passed_once: Collection[str]) -> bool:
    """Return whether this container failed with every partner while at least one of those partners passed with another
    container."""
    partners = {other for pair in failed if container in pair for other in pair if other != container}
    return container not in passed_once and any(other in passed_once for other in partners)
