"""Tests that partitions come to a training program whole, in batches of its size, and that neither side waits for one
that has died."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import numpy
import pyarrow
import pytest

from howdah.spark.columns import to_batches, to_numpy, to_rows
from howdah.spark.datasets import column_batches
from howdah.spark.feed import DataFeed, PartitionHeader, _Partition
from howdah.spark.feed_messages import FeedError, socket_name
from howdah.spark.feeding_task import Programs, _open, _Writer, end_feed, feed_partition, infer_partition
from howdah.spark.node_context import FEED_PORT, NodeContext

KEY = b"k" * 32


@pytest.fixture
def programs() -> Programs:
    return Programs(os.urandom(8).hex(), KEY, connect_s=2.0)


@pytest.fixture
def feed(programs: Programs) -> Iterator[DataFeed]:
    with DataFeed(socket_name(programs.cluster, "worker:0"), KEY, buffer_bytes=10_000) as opened:
        yield opened


class Task(threading.Thread):
    """A feeding task beside the program."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        super().__init__(daemon=True)
        self._call, self._arguments = call, arguments
        self.result: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self._call(*self._arguments)
        except FeedError as error:
            self.result = error

    def done(self) -> Any:
        self.join(10)
        assert not self.is_alive()
        return self.result


def numbers(count: int, size: int = 10) -> Iterator[pyarrow.RecordBatch]:
    return to_batches(((index, numpy.full(4, index, "float32")) for index in range(count)), size)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_task_of_another_node_connects_to_the_port(programs: Programs) -> None:
    port = free_port()
    with DataFeed("howdah-feed-elsewhere/" + programs.cluster, KEY, "127.0.0.1", port) as feed:
        task = Task(feed_partition, programs._replace(ports=[("127.0.0.1", port)]), 0, numbers(10))
        assert len(feed.next_batch(10)["0"]) == 10
        assert task.done() == 10


def test_a_task_sees_that_the_machine_of_its_program_is_gone(programs: Programs) -> None:
    port = free_port()
    with (
        DataFeed("howdah-feed-elsewhere/" + programs.cluster, KEY, "127.0.0.1", port),
        _open(programs, ("127.0.0.1", port), "train", 0) as connection,
    ):
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        assert [connection.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [30, 10, 6]


def test_rows_come_in_batches_of_the_programs_size(programs: Programs) -> None:
    port = free_port()
    with DataFeed(socket_name(programs.cluster, "worker:0"), KEY, "127.0.0.1", port) as feed:
        task = Task(feed_partition, programs, 0, numbers(95))
        first = feed.next_batch(32)
        assert first["0"].tolist() == list(range(32))
        assert first["1"].shape == (32, 4)
        assert first["1"].dtype == numpy.float32
        assert len(feed.next_batch(32)["0"]) == 32
        end = Task(end_feed, "127.0.0.1", port, KEY, 10.0)
        assert len(feed.next_batch(1000)["0"]) == 31
        assert (task.done(), end.done()) == (95, None)
        assert feed.should_stop()
        assert feed.next_batch(1) == {}


def test_rows_that_a_program_did_not_wait_for_come_later(feed: DataFeed, programs: Programs) -> None:
    assert Task(feed_partition, programs, 0, numbers(20)).done() == 20
    for _ in range(2):
        with pytest.raises(TimeoutError):
            feed.next_batch(21, timeout_s=0)
    assert Task(feed_partition, programs, 1, numbers(1)).done() == 1
    assert feed.next_batch(21, timeout_s=0)["0"].tolist() == [*range(20), 0]


def test_results_stay_those_of_rows_that_came_later(feed: DataFeed) -> None:
    ours, other = socket.socketpair()
    with ours, other:
        partition = _Partition(ours, PartitionHeader("infer"))
        feed._batches.extend((partition, batch) for batch in numbers(20))
        with pytest.raises(TimeoutError):
            feed.next_batch(21, timeout_s=0)
        assert feed.next_batch(20, timeout_s=0)["0"].tolist() == list(range(20))
        assert (partition.taken, list(feed._awaited)) == (20, [(partition, 10), (partition, 10)])


@pytest.mark.parametrize("rows", [0, -1])
def test_a_batch_without_rows_is_no_end(feed: DataFeed, rows: int) -> None:
    for call in (feed.next_batch, feed.next_rows, feed.next_table, lambda rows: next(column_batches(feed, rows, 10))):
        with pytest.raises(ValueError, match=rf"a batch of {rows} rows is asked for, must be at least 1"):
            call(rows)


def test_partitions_of_other_types_are_told_with_theirs(feed: DataFeed, programs: Programs) -> None:
    for partition, rows in enumerate(([1, 2], [1.5])):
        assert Task(feed_partition, programs, partition, to_batches(rows, 10)).done() == len(rows)
    with pytest.raises(FeedError, match=r"^partition 1 has other columns: value: double, not value: int64$"):
        feed.next_batch(3)


def test_a_slow_program_slows_its_tasks_down(feed: DataFeed, programs: Programs) -> None:
    produced = []

    def counted() -> Iterator[pyarrow.RecordBatch]:
        for batch in to_batches(iter(numpy.zeros((30000, 100))), 10):
            produced.append(batch.num_rows)
            yield batch

    task = Task(feed_partition, programs, 0, counted())
    time.sleep(0.5)
    assert sum(produced) < 6000, "the buffer holds 12 rows, the socket and the files some thousands"
    assert sum(len(feed.next_batch(100)["value"]) for _ in range(300)) == 30000
    assert task.done() == 30000


def test_a_program_that_wants_no_more_ends_its_tasks(feed: DataFeed, programs: Programs) -> None:
    task = Task(feed_partition, programs, 0, numbers(100_000))
    feed.next_batch(10)
    feed.terminate()
    task.done()
    assert Task(feed_partition, programs, 1, numbers(10)).done() == 0
    assert feed.should_stop()


def test_a_program_that_dies_fails_its_task(programs: Programs) -> None:
    with DataFeed(socket_name(programs.cluster, "worker:1"), KEY, buffer_bytes=1000) as feed:
        task = Task(feed_partition, programs, 0, numbers(10000))
        feed.next_batch(5)
        for partition in list({each for each, _ in feed._batches}):
            partition.connection.shutdown(2)
    assert isinstance(task.done(), FeedError)
    assert isinstance(Task(feed_partition, programs._replace(cluster="none"), 0, numbers(1)).done(), FeedError)


def test_a_program_may_end_while_tasks_connect() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for number in range(60):
            with DataFeed(f"ends-{os.getpid()}-{number}", KEY):
                tasks = [Task(_connect, f"\0ends-{os.getpid()}-{number}") for _ in range(16)]
            for task in tasks:
                task.done()
    finally:
        sys.setswitchinterval(interval)


def _connect(name: str) -> None:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(name)


def test_tasks_are_heard_again_when_files_can_be_opened_again(feed: DataFeed, programs: Programs) -> None:
    class Server:
        """A listening socket of a process that has once too many files open."""

        def __init__(self) -> None:
            self.errors = [OSError(errno.EMFILE, "Too many open files"), OSError(errno.EINVAL, "is closed")]

        def accept(self) -> Any:
            error = self.errors.pop(0)
            if not self.errors:
                feed.close()
            raise error

    server: Any = Server()
    feed._accept_connections(server)
    assert server.errors == []


def test_strangers_bring_nothing(feed: DataFeed, programs: Programs) -> None:
    assert isinstance(Task(feed_partition, programs._replace(key=b"another"), 0, numbers(1)).done(), FeedError)
    with pytest.raises(TimeoutError):
        feed.next_batch(1, timeout_s=0.2)


def test_each_row_is_answered_once_and_in_order(feed: DataFeed, programs: Programs) -> None:
    def infer(partition: int, count: int) -> list[int]:
        batches = infer_partition(programs, partition, numbers(count))
        return [value for each in batches for value in each[0].to_pylist()]

    tasks = [Task(infer, 0, 25), Task(infer, 1, 7), Task(infer, 2, 0)]
    answered = 0
    while answered < 32:
        batch = feed.next_batch(8, timeout_s=10)
        feed.put_results((batch["0"] * 2).tolist())
        answered += len(batch["0"])
    assert [task.done() for task in tasks] == [[2 * each for each in range(count)] for count in (25, 7, 0)]
    with pytest.raises(ValueError, match="1 results are more"):
        feed.put_results([1])


def test_a_short_batch_comes_at_the_end_of_a_partition_that_waits_for_results(
    feed: DataFeed, programs: Programs
) -> None:
    task = Task(lambda: [each.num_rows for each in infer_partition(programs, 0, numbers(5))])
    assert len(feed.next_batch(100, timeout_s=10)["0"]) == 5
    feed.put_results(list(range(5)))
    assert task.done() == [5]


def test_more_results_than_sockets_hold_do_not_stop_the_rows(feed: DataFeed, programs: Programs) -> None:
    rows = [numpy.zeros(2000) for _ in range(3000)]
    task = Task(lambda: sum(each.num_rows for each in infer_partition(programs, 0, to_batches(rows, 10))))
    answered = 0
    while answered < len(rows):
        batch = feed.next_batch(50, timeout_s=10)["value"]
        feed.put_results(pyarrow.RecordBatch.from_arrays([pyarrow.array(list(batch))], ["result"]))
        answered += len(batch)
    assert task.done() == len(rows)


def test_a_task_that_has_gone_does_not_end_the_program(feed: DataFeed) -> None:
    ours, other = socket.socketpair()
    with ours:
        partition = _Partition(ours, PartitionHeader("infer"))
        feed._awaited.append((partition, 3000))
        other.close()
        feed.put_results([numpy.zeros(1000)] * 2000)  # more than what waits to be sent
        assert [count for _, count in feed._awaited] == [1000]


def test_a_task_that_wants_no_more_results_reads_no_more_rows(feed: DataFeed, programs: Programs) -> None:
    """As after `take`: Spark's Python then reads where the rows come from."""

    def take() -> list[threading.Thread]:
        results = infer_partition(programs, 0, to_batches([numpy.zeros(100_000)] * 1000, 1))
        next(results)
        results.close()
        return [each for each in threading.enumerate() if isinstance(each, _Writer)]

    task = Task(take)
    while task.is_alive():
        with contextlib.suppress(TimeoutError):
            feed.put_results([numpy.zeros(100_000)] * len(feed.next_batch(1, timeout_s=0.1)["value"]))
    assert task.done() == []


def test_partitions_go_where_the_least_data_waits(programs: Programs) -> None:
    names = [socket_name(programs.cluster, f"worker:{index}") for index in range(2)]
    with DataFeed(names[0], KEY) as one, DataFeed(names[1], KEY) as other:
        for partition in range(4):
            assert Task(feed_partition, programs, partition, numbers(10)).done() == 10
        assert len(one.next_batch(20)["0"]) == len(other.next_batch(20)["0"]) == 20
        one.terminate()
        assert Task(feed_partition, programs, 0, numbers(10)).done() == 10
        assert len(other.next_batch(10)["0"]) == 10


def test_partitions_that_begin_together_go_to_several_nodes(programs: Programs) -> None:
    """Both tasks run on the node of the first program, as they do when Spark keeps both partitions there."""
    ports = [("127.0.0.1", free_port()) for _ in range(2)]
    places = programs._replace(ports=ports)
    with (
        DataFeed(socket_name(programs.cluster, "worker:0"), KEY, *ports[0]) as one,
        DataFeed(f"elsewhere/{programs.cluster}", KEY, *ports[1]) as other,
    ):
        has_begun, may_end = threading.Event(), threading.Event()

        def slow() -> Iterator[pyarrow.RecordBatch]:
            has_begun.set()
            may_end.wait(10)
            yield from numbers(10)

        first = Task(feed_partition, places, 0, slow())
        assert has_begun.wait(10)
        second = Task(feed_partition, places, 1, numbers(10))
        assert len(other.next_batch(10, timeout_s=10)["0"]) == 10
        may_end.set()
        assert len(one.next_batch(10, timeout_s=10)["0"]) == 10
        assert second.done() == first.done() == 10


class Node(NodeContext):
    """A node of a cluster, without a job; Spark's tasks reach it at `port`."""

    rank = 0  # type: ignore[assignment]

    def __init__(self, cluster: str, port: int) -> None:
        super().__init__(cluster, KEY)
        peer = SimpleNamespace(task="worker:0", host="127.0.0.1", ports={FEED_PORT: port})
        self.peers = SimpleNamespace(members=[peer])  # type: ignore[assignment, misc]

    peers = None  # type: ignore[assignment]


@pytest.mark.parametrize("reads", [["second"], ["", "second"], ["second", ""]])
def test_each_feed_of_a_node_ends_with_the_feed(programs: Programs, reads: list[str]) -> None:
    port = free_port()
    node = Node(programs.cluster, port)
    with closing(node):
        for name in reads:
            feed = node.feed(queue=name)
            assert Task(feed_partition, programs.of_queue(name, None), 0, numbers(5)).done() == 5
            assert len(feed.next_batch(5, timeout_s=10)["0"]) == 5
        end_feed("127.0.0.1", port, KEY, 10.0)
        assert [node.feed(queue=name).next_batch(5, timeout_s=10) for name in (*reads, "third")] == [{}] * (
            len(reads) + 1
        )


def test_feeds_that_are_not_named_go_on(programs: Programs) -> None:
    port = free_port()
    with closing(Node(programs.cluster, port)) as node:
        node.feed(), node.feed(queue="second")
        end_feed("127.0.0.1", port, KEY, 10.0, ["second", "third"])
        assert [node.feed(queue=name).should_stop() for name in ("", "second", "third", "fourth")] == [0, 1, 1, 0]
        end_feed("127.0.0.1", port, KEY, 10.0, [""])
        assert [node.feed(queue=name).should_stop() for name in ("", "fourth")] == [1, 0]
        end_feed("127.0.0.1", port, KEY, 10.0)
        assert [node.feed(queue=name).should_stop() for name in ("fourth", "fifth")] == [1, 1]


def test_a_feed_that_a_node_does_not_read_takes_nothing(programs: Programs) -> None:
    """Nor does it keep data from those that read it."""
    ports = [("127.0.0.1", free_port()) for _ in range(2)]
    node, everywhere = Node(programs.cluster, ports[0][1]), programs._replace(ports=ports)
    with closing(node):
        node.feed(queue="second")
        found = Task(feed_partition, everywhere, 0, numbers(5)).done()
        assert "none of 2 training programs listens within 2 s" in str(found)
        with DataFeed(socket_name(programs.cluster, "worker:1"), KEY, *ports[1]) as other:
            assert Task(feed_partition, everywhere, 0, numbers(5)).done() == 5
            assert len(other.next_batch(5, timeout_s=10)["0"]) == 5


def test_a_task_is_told_how_many_of_its_rows_were_used(feed: DataFeed, programs: Programs) -> None:
    """A pass in which every program has had enough before its partitions had ended has still brought rows: it is not
    the sign that nobody wants any."""
    task = Task(feed_partition, programs, 0, numbers(100_000))
    feed.next_batch(30)
    feed.terminate()
    assert task.done() == 30


class Row(tuple[Any, ...]):
    """A row with names, as Spark has it."""

    def __new__(cls, **values: Any) -> Row:
        made = super().__new__(cls, values.values())
        made.__fields__ = list(values)  # type: ignore[attr-defined]
        return made


@pytest.mark.parametrize(
    "rows",
    [
        [{"a": 1}, {"a": 1, "b": 2}],
        [{"a": 1, "b": 2}, {"a": 1, "c": 2}],
        [Row(a=1, b=2), Row(b=2, a=1)],
        [("a", "b"), {"a": 1, "b": 2}],
        [("a", "b"), "ab"],
        [("a", "b"), ("a",)],
        [(), ()],
        [{}, {}],
    ],
)
def test_rows_whose_values_would_be_lost_or_mixed_are_refused(rows: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"^rows must have"):
        list(to_batches(rows, 10))
    if all(rows):
        with pytest.raises(ValueError, match=r"^rows must have"):
            list(to_batches(rows, 1))


def test_a_mapping_that_lacks_a_key_has_a_null_there() -> None:
    rows = [{"a": 1, "b": 2}, {"a": 3}, {"b": 4}, {}]
    for size in (1, 2, 10):
        found = [row for batch in to_batches(rows, size) for row in to_rows(batch)]
        assert found == [{"a": 1, "b": 2}, {"a": 3, "b": None}, {"a": None, "b": 4}, {"a": None, "b": None}]
    for value in (b"x", bytearray(b"x"), "x", [1.0, 2.0], numpy.ones(2)):
        (batch,) = to_batches([{"a": 1, "b": value}, {"a": 2}], 10)
        assert batch.column(1).is_null().to_pylist() == [False, True]


def test_rows_of_every_kind_become_columns() -> None:
    (batch,) = to_batches([{"a": 1, "b": b"x"}, {"a": 2, "b": b"y"}], 10)
    assert batch.to_pydict() == {"a": [1, 2], "b": [b"x", b"y"]}
    (batch,) = to_batches([numpy.ones((2, 3)), numpy.zeros((2, 3))], 10)
    assert to_numpy(batch.column(0)).shape == (2, 2, 3)
    (batch,) = to_batches([[1, [1.0, 2.0]], [2, [3.0]]], 10)
    assert [list(each) for each in to_numpy(batch.column(1))] == [[1.0, 2.0], [3.0]]
    (batch,) = to_batches([(1, [1.0, 2.0]), (2, [3.0, 4.0])], 10)
    assert to_numpy(batch.column(1)).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    (batch,) = to_batches([(1, [1.0, None]), (2, [3.0, 4.0])], 10)
    assert list(to_rows(batch)) == [(1, [1.0, None]), (2, [3.0, 4.0])]
    assert [each.num_rows for each in to_batches(range(5), 2)] == [2, 2, 1]
    assert to_numpy(pyarrow.chunked_array([], pyarrow.int64())).shape == (0,)
