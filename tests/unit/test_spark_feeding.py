"""Tests how the driver feeds programs: what it tries again, what it raises, and how it counts."""

from __future__ import annotations

import importlib
import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain, count, repeat
from typing import Any

import pyspark_stand_in
import pytest

from howdah.spark.feed import DataFeed
from howdah.spark.feed_messages import FeedError, socket_name
from howdah.spark.feeding_task import CONNECT_S, Programs

KEY = b"k" * 32
MORE_THAN_BUFFERS = [bytes(4000)] * 3000
"""Rows of several batches, more than files and sockets hold."""


class Accumulator:
    """Collects what tasks report."""

    def __init__(self, value: Any, param: Any) -> None:
        self.value, self._param = value, param

    def add(self, term: Any) -> None:
        self.value = self._param.addInPlace(self.value, term)


class Spark:
    """A SparkContext whose tasks run one after another in the driver; `jobs` has the partitions of each job."""

    def __init__(self) -> None:
        self.jobs: list[list[int]] = []
        self.accumulators: list[Accumulator] = []

    def accumulator(self, value: Any, param: Any) -> Accumulator:
        self.accumulators.append(Accumulator(value, param))
        return self.accumulators[-1]

    def setJobGroup(self, *_: Any, **__: Any) -> None:  # noqa: N802 - Spark's names
        pass

    cancelJobGroup = setJobGroup  # noqa: N815

    def runJob(self, rdd: Rdd, _function: Any, partitions: list[int]) -> list[Any]:  # noqa: N802
        self.jobs.append(partitions)
        return [row for number in partitions for row in rdd.compute(number)]


class Rdd:
    """An RDD of partitions that functions make."""

    def __init__(self, *parts: Callable[[], Iterable[Any]]) -> None:
        self._parts, self._function = parts, None  # type: tuple[Any, Any]

    def mapPartitionsWithIndex(self, function: Any) -> Rdd:  # noqa: N802
        made = Rdd(*self._parts)
        made._function = function
        return made

    def getNumPartitions(self) -> int:  # noqa: N802
        return len(self._parts)

    def compute(self, number: int) -> Any:
        return self._function(number, self._parts[number]())


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    pyspark_stand_in.install(monkeypatch)
    return Spark()


@pytest.fixture
def programs() -> Programs:
    return Programs(os.urandom(8).hex(), KEY, connect_s=10.0)


def feeder(spark: Spark, programs: Callable[[], Programs], **more: Any) -> Any:
    from howdah.spark.feeding import SparkFeeder

    given = {"goes_on": lambda: True, "take_data": lambda: True, "runs": lambda: 1, "retry_s": 0.0, **more}
    return SparkFeeder(spark, programs, "job_1", **given)  # type: ignore[arg-type]


def test_a_program_that_takes_nothing_is_an_error_at_once(spark: Spark, programs: Programs) -> None:
    with DataFeed(socket_name(programs.cluster, "worker:0"), KEY, buffer_bytes=1):
        silent = programs._replace(silence_s=0.2)
        with pytest.raises(FeedError, match=r"^job_1: a training program has taken no data, .* for 0\.2 s$"):
            feeder(spark, lambda: silent).train(Rdd(lambda: MORE_THAN_BUFFERS))
    assert spark.jobs == [[0]]


def test_a_program_that_is_started_again_was_not_silent(spark: Spark, programs: Programs) -> None:
    starts = count()
    with DataFeed(socket_name(programs.cluster, "worker:0"), KEY, buffer_bytes=1) as feed:
        limits = chain([0.2, 0.2], repeat(None))

        def take_data() -> bool:
            threading.Thread(target=lambda: list(feed.batches(1000)), daemon=True).start()
            return True

        fed = feeder(
            spark,
            lambda: programs._replace(silence_s=next(limits)),
            take_data=take_data,
            runs=lambda: next(starts),
        )
        assert fed.train(Rdd(lambda: MORE_THAN_BUFFERS)) == 3000
    assert spark.jobs == [[0], [0]]


@pytest.mark.parametrize("error", [ConnectionResetError, BrokenPipeError, TimeoutError, ValueError])
def test_what_reading_the_data_raises_is_raised_once(spark: Spark, programs: Programs, error: type[Exception]) -> None:
    def rows() -> Iterator[int]:
        yield from range(5000)
        raise error("of where the data is")

    is_raised = pytest.raises(error, match="of where the data is")
    with DataFeed(socket_name(programs.cluster, "worker:0"), KEY), is_raised:
        feeder(spark, lambda: programs).train(Rdd(lambda: [1], rows))
    assert spark.jobs == [[0, 1]]


def test_programs_that_were_restarted_are_fed_where_they_listen_now(spark: Spark, programs: Programs) -> None:
    def at(port: int) -> Programs:
        return programs._replace(ports=[("127.0.0.1", port)], connect_s=0.2 if port == gone else 10.0)

    with (
        closing(socket.create_server(("127.0.0.1", 0))) as first,
        closing(socket.create_server(("127.0.0.1", 0))) as free,
    ):
        gone, port = first.getsockname()[1], free.getsockname()[1]
        first.close()
        free.close()
        with DataFeed(f"elsewhere/{programs.cluster}", KEY, "127.0.0.1", port) as feed:
            places = iter([gone, gone, port, port, port])
            fed = feeder(spark, lambda: at(next(places)))
            assert fed.train(Rdd(lambda: range(5), lambda: [], lambda: range(3))) == 8
            assert len(feed.next_batch(8)["value"]) == 8
    assert spark.jobs == [[0, 1, 2], [0, 1, 2]]
    assert [each.value for each in spark.accumulators] == [[]]  # which Spark keeps


def test_what_begins_again_gets_no_rest_of_what_its_earlier_start_had(spark: Spark, programs: Programs) -> None:
    starts, feeds = {"worker:0": 1}, [DataFeed(socket_name(programs.cluster, "worker:0"), KEY)]

    def restart() -> None:
        for partition in list(feeds[-1]._partitions):  # as a program that dies, which says nothing
            partition.connection.shutdown(socket.SHUT_RDWR)
        feeds[-1].close()
        # Of another name: that one is free when the thread has left `accept`.
        feeds.append(DataFeed(socket_name(programs.cluster, f"worker:{len(feeds)}"), KEY))
        starts["worker:0"] += 1

    def last_rows() -> Iterator[int]:
        yield 3
        restart()

    fed, before = feeder(spark, lambda: programs, runs=lambda: dict(starts)), dict(starts)
    try:
        assert fed.train(Rdd(lambda: [1, 2], last_rows), before) == 2
        assert spark.jobs == [[0, 1]]
        assert fed.train(Rdd(lambda: [1, 2]), before) == 0
        assert spark.jobs == [[0, 1]]
        assert fed.train(Rdd(lambda: [1, 2]), dict(starts)) == 2
        assert feeds[-1].next_rows(2) == [1, 2]
    finally:
        feeds[-1].close()


def test_a_feed_ends_as_soon_as_its_programs_begin_again(spark: Spark, programs: Programs) -> None:
    starts, is_cancelled = {"worker:0": 1}, threading.Event()

    def rows() -> Iterator[int]:
        starts["worker:0"] += 1
        assert is_cancelled.wait(60)
        raise InterruptedError("Spark has cancelled the job")
        yield

    spark.cancelJobGroup = lambda _group: is_cancelled.set()  # type: ignore[method-assign]
    fed = feeder(spark, lambda: programs, runs=lambda: dict(starts))
    with DataFeed(socket_name(programs.cluster, "worker:0"), KEY):
        assert fed.train(Rdd(rows), {"worker:0": 1}) == 0
    assert spark.jobs == [[0]]


def test_a_program_that_is_never_reached_is_an_error(
    spark: Spark, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeding = importlib.import_module("howdah.spark.feeding")

    assert feeding.MAX_TRIES * CONNECT_S > 600
    assert 600 < feeding.UNREACHED_S < 900 - feeding.ENOUGH_UNREACHED * CONNECT_S
    monkeypatch.setattr(feeding, "MAX_TRIES", 3)
    with pytest.raises(FeedError, match=r"^job_1: none of 0 training programs listens within 0\.2 s: "):
        feeder(spark, lambda: programs._replace(connect_s=0.2)).train(Rdd(lambda: [1]))
    assert spark.jobs == [[0]] * 3


def test_programs_that_nobody_reaches_are_not_waited_for_with_each_partition(spark: Spark, programs: Programs) -> None:
    is_cancelled, asked = threading.Event(), []  # type: tuple[threading.Event, list[int]]

    def run(rdd: Rdd, _function: Any, partitions: list[int]) -> None:
        asked.append(len(partitions))
        for number in partitions[:4]:
            assert list(rdd.compute(number)) == [0]
        assert is_cancelled.wait(60)
        raise InterruptedError("Spark has cancelled the job")

    spark.runJob = run  # type: ignore[method-assign,assignment]
    spark.cancelJobGroup = lambda _group: is_cancelled.set()  # type: ignore[method-assign]
    fed = feeder(spark, lambda: programs._replace(connect_s=0.0), unreached_s=0.0)
    with pytest.raises(FeedError, match=r"^job_1: none of 0 training programs listens within 0 s: "):
        fed.train(Rdd(*[lambda: [1]] * 200))
    assert asked == [200]


def test_programs_that_begin_again_have_time_to_listen(spark: Spark, programs: Programs) -> None:
    starts = {"worker:0": 1}

    def take_data() -> bool:
        starts["worker:0"] = min(3, starts["worker:0"] + 1)
        return True

    nowhere = programs._replace(connect_s=0.0)
    fed = feeder(spark, lambda: nowhere, take_data=take_data, runs=lambda: dict(starts), unreached_s=0.0)
    with pytest.raises(FeedError, match="none of 0 training programs listens"):
        fed.train(Rdd(lambda: [1]))
    assert spark.jobs == [[0]] * 3
