"""Tests the numbers and times of lines of a piece of a log, as the index of its streams knows them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.executor.io.task_output import TaskOutput
from howdah.logs import line_places
from howdah.logs.line_places import first_line_number, line_times
from howdah.logs.store import DirectoryLogs
from howdah.logs.stream_index import BOTH, StreamIndex

WRITES = st.lists(
    st.tuples(
        st.sampled_from(["stdout", "stderr"]), st.sampled_from([b"x", b"\n", b"line\n", b"a\nb\n", "第一行\n".encode()])
    ),
    max_size=30,
)


def written(directory: Path, writes: list[tuple[str, bytes]]) -> StreamIndex:
    """Print the writes one second apart, and return the index."""
    printed = TaskOutput(str(directory), 1 << 20)
    for second, (name, data) in enumerate(writes):
        for stream in printed.logs:
            printed.logs[stream].before_write = lambda name=name, now=float(second): printed.times.note(name, now)  # type: ignore[misc]
        printed.logs[name].write(data)
    printed.close()
    return DirectoryLogs(directory).index()


def number_of(index: StreamIndex, stream: str, log: bytes, begin: int, end: int) -> int | None:
    async def read(offset: int, limit: int) -> tuple[int, bytes]:
        return offset, log[offset : offset + limit]

    return asyncio.run(first_line_number(index, stream, begin, log[begin:end], read))


@given(WRITES, st.sampled_from(["stdout", "stderr", BOTH]), st.integers(0, 60), st.integers(1, 40))
def test_the_first_line_has_the_number_that_counting_finds(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, bytes]], stream: str, begin: int, length: int
) -> None:
    directory = tmp_path_factory.mktemp("log")
    index = written(directory, writes)
    log = DirectoryLogs(directory).chunk(stream, 0, 1 << 20)[2]
    begin = min(begin, len(log))
    for order in (index, StreamIndex()):
        assert number_of(order, stream, log, begin, begin + length) == log[:begin].count(b"\n") + 1


@given(WRITES, st.integers(0, 60))
def test_each_line_has_the_time_of_its_place(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, bytes]], begin: int
) -> None:
    index = written(tmp_path_factory.mktemp("log"), writes)
    log = b"".join(data for name, data in writes if name == "stdout")
    begin = log.rfind(b"\n", 0, begin) + 1
    times, when, offset = dict(line_times(index, "stdout", begin, log[begin:])), None, begin
    for number, line in enumerate(log[begin:].splitlines(keepends=True)):
        when = times.get(number, when)
        assert when == index.when("stdout", offset)
        offset += len(line)


def test_a_number_that_would_take_long_to_count_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_places, "MAX_COUNTED_BYTES", 5)
    log, index = b"one\ntwo\nthree\nfour\n", StreamIndex.parse(b"9.0 8 0 2 0\n")
    assert number_of(StreamIndex(), "stdout", log, 5, 9) == 2
    assert number_of(StreamIndex(), "stdout", log, 6, 9) is None
    assert number_of(index, "stdout", log, 6, 9) == 2
    assert number_of(index, "stdout", log, 13, 15) == 3
    assert number_of(index, "stdout", log, 14, 15) is None


def test_bytes_that_are_not_kept_are_not_counted() -> None:
    async def read(offset: int, limit: int) -> tuple[int, bytes]:
        return 7, b"later\n"

    assert asyncio.run(first_line_number(StreamIndex(), "stdout", 9, b"x", read)) is None


def test_many_times_are_thinned_out() -> None:
    lines = "".join(f"{number}.0 {2 * number} 0 {number} 0\n" for number in range(3000))
    times = line_times(StreamIndex.parse(lines.encode()), "stdout", 0, b"x\n" * 3000)
    assert len(times) <= line_places.MAX_TIMES
    assert all(when == line for line, when in times)
    assert times[0] == (0, 0.0)
