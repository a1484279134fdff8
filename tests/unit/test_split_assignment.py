"""Tests that tasks stream every byte of all splits exactly once, always the same, in about equal shares."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from howdah.inputs.streaming.split_assignment import all_splits, feeds, preferred_hosts, shares, splits_of
from howdah.spec import DataFile, Input, JobSpec, Role, Split, StagedInput, StagedJob, TaskId


def staged(entry: Input, *files: DataFile, hosts: tuple[str, ...] = (), **roles: int) -> StagedJob:
    job = JobSpec(roles={name: Role("true", replicas=count) for name, count in roles.items()}, inputs=(entry,))
    return StagedJob(job, "file:///home", inputs=(StagedInput(entry.to, files, entry.roles, entry.share, hosts=hosts),))


def stream(**fields: object) -> Input:
    return Input("d", strategy="stream", **fields)  # type: ignore[arg-type]


def ranges(splits: tuple[Split, ...]) -> list[tuple[str, int, int]]:
    return [(split.uri, split.start, split.start + split.length) for split in splits]


def test_a_file_is_cut_where_it_was_said() -> None:
    file = DataFile("u", "n", 100, 7, "e", cuts=(40, 80), where=((0, 1), (1,), ()))
    assert splits_of(file, ("a", "b")) == [
        Split("u", 0, 40, ("a", "b"), 100, 7, "e"),
        Split("u", 40, 40, ("b",), 100, 7, "e"),
        Split("u", 80, 20, (), 100, 7, "e"),
    ]
    assert splits_of(DataFile("u", "n", 0)) == []


def test_in_order_a_task_gets_neighbours_and_shuffled_it_gets_every_other() -> None:
    files = [DataFile(f"f{number}", "n", 10) for number in range(4)]
    ordered = staged(stream(), *files, worker=2)
    assert [split.uri for split in feeds(ordered, TaskId("worker", 1))[0].splits] == ["f2", "f3"]
    shuffled = staged(stream(shuffle=True), *files, worker=2)
    assert [split.uri for split in feeds(shuffled, TaskId("worker", 1))[0].splits] == ["f1", "f3"]


def local_share(splits: list[Split], tasks: int, nodes: int, share: str = "split") -> tuple[float, list[int]]:
    """Of all bytes those on the node that holds most of the task's, and each task's number of splits."""
    dealt = shares(stream(shuffle=True, share=share), splits, tasks)
    near = 0
    for hand in dealt:
        held = {node: sum(s.length for s in hand if f"n{node}" in s.hosts) for node in range(nodes)}
        near += max(held.values(), default=0)
    return near / sum(split.length for split in splits), [len(hand) for hand in dealt]


@pytest.mark.parametrize("share", ["split", "bytes"])
def test_shuffled_splits_go_where_their_blocks_are(share: str) -> None:
    chance = random.Random(1)
    once = [Split("u", n, 128, (f"n{chance.randrange(4)}",)) for n in range(200)]
    found, counts = local_share(once, 8, 4, share)
    assert found > 0.9
    assert max(counts) - min(counts) <= 1
    thrice = [Split("u", n, 128, tuple(f"n{k}" for k in chance.sample(range(10), 3))) for n in range(1000)]
    found, counts = local_share(thrice, 10, 10, share)
    assert found > 0.95
    assert max(counts) - min(counts) <= 1
    fewer_tasks_than_nodes, counts = local_share(thrice, 3, 10, share)
    assert fewer_tasks_than_nodes > 0.6
    _, counts = local_share([Split("u", n, 128, ("n0",)) for n in range(90)] + [once[0]], 3, 4, share)
    assert max(counts) - min(counts) <= 1


def test_a_feed_says_how_it_is_read() -> None:
    entry = stream(format="csv", options={"header": "true"}, epochs=3, shuffle=True, window=9, seed=4)
    (feed,) = feeds(staged(entry, DataFile("f", "n", 1), worker=1), TaskId("worker", 0))
    assert (feed.number, feed.format, feed.options) == (0, "csv", {"header": "true"})
    assert (feed.epochs, feed.shuffle, feed.window, feed.seed) == (3, True, 9, 4)


def test_only_streams_are_fed_and_only_to_roles_that_get_them() -> None:
    job = staged(Input("d"), DataFile("f", "n", 1), worker=1)
    assert feeds(job, TaskId("worker", 0)) == ()
    assert feeds(staged(stream(), DataFile("f", "n", 1), worker=1, ps=1), TaskId("ps", 0)) == ()


def test_all_gives_everything_to_each() -> None:
    job = staged(stream(share="all"), DataFile("f", "n", 10, cuts=(5,)), worker=3)
    assert all(len(feeds(job, TaskId("worker", number))[0].splits) == 2 for number in range(3))


def test_a_chief_gets_so_many() -> None:
    job = staged(stream(chief=1), DataFile("f", "n", 50, cuts=(10, 20, 30, 40)), chief=1, worker=2)
    lengths = [
        len(feeds(job, task)[0].splits) for task in (TaskId("chief", 0), TaskId("worker", 0), TaskId("worker", 1))
    ]
    assert lengths == [1, 2, 2]


def test_preferred_are_the_nodes_with_most_bytes() -> None:
    file = DataFile("f", "n", 100, cuts=(10, 40), where=((0, 1), (1, 2), (2, 3)))
    job = staged(stream(), file, hosts=("a", "b", "c", "d"), worker=1)
    assert preferred_hosts(job, TaskId("worker", 0)) == ("c", "d", "b")
    assert preferred_hosts(staged(stream(), DataFile("f", "n", 1), worker=1), TaskId("worker", 0)) == ()


@settings(max_examples=200)
@example(sizes=[1, 1, 5], tasks=3, share="bytes", shuffle=True, first=None, nodes=3)
@given(
    sizes=st.lists(st.integers(0, 1000), max_size=30),
    tasks=st.integers(1, 8),
    share=st.sampled_from(["split", "bytes"]),
    shuffle=st.booleans(),
    first=st.one_of(st.none(), st.integers(0, 3)),
    nodes=st.integers(0, 5),
)
def test_every_split_goes_to_one_task(
    sizes: list[int], tasks: int, share: str, shuffle: bool, first: int | None, nodes: int
) -> None:
    hosts = [tuple(f"n{(size + n) % nodes}" for n in range(min(nodes, size % 4))) for size in sizes]
    splits = [Split("f", number, size, hosts[number]) for number, size in enumerate(sizes)]
    dealt = shares(stream(share=share, shuffle=shuffle, chief=first), splits, tasks)
    assert sorted(split.start for hand in dealt for split in hand) == list(range(len(sizes)))
    assert len(dealt) == tasks
    if not shuffle:
        assert [split.start for hand in dealt for split in hand] == list(range(len(sizes)))
    if first is None and len(sizes) >= tasks:
        assert all(dealt)


@pytest.mark.parametrize("shuffle", [False, True])
def test_by_bytes_loads_are_about_equal(shuffle: bool) -> None:
    chance = random.Random(1)
    splits = [Split("f", number, chance.randrange(1, 1000)) for number in range(500)]
    loads = [sum(split.length for split in hand) for hand in shares(stream(share="bytes", shuffle=shuffle), splits, 7)]
    assert max(loads) - min(loads) <= 1000


def test_a_hundred_thousand_files_are_dealt_at_once() -> None:
    files = [DataFile(f"hdfs://c/d/{number}", "n", 10) for number in range(100_000)]
    job = staged(stream(share="bytes", shuffle=True), *files, worker=50)
    assert sum(len(feeds(job, TaskId("worker", number))[0].splits) for number in range(50)) == 100_000
    assert len(all_splits(job.inputs[0])) == 100_000
