"""Tests merging both output streams of a task in the order in which they were written."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from howdah.executor.io.log_file import StreamLog
from howdah.executor.io.log_times import MAX_LINES, LogTimes, MergedLog
from howdah.logs.stream_index import StreamIndex, read_both


def logs(directory: Path, limit: int = 1 << 20) -> tuple[dict[str, StreamLog], LogTimes]:
    streams = {name: StreamLog(str(directory / name), limit) for name in ("stdout", "stderr")}
    return streams, LogTimes(str(directory), streams)


def close(streams: dict[str, StreamLog], times: LogTimes) -> None:
    times.close()
    for log in streams.values():
        log.close()


def test_lines_are_merged_as_they_came(tmp_path: Path) -> None:
    streams, times = logs(tmp_path)
    for second, (name, text) in enumerate(
        [("stdout", "a\n"), ("stderr", "b\n"), ("stdout", "c\nd"), ("stdout", "e\n")]
    ):
        streams[name].before_write = lambda name=name, now=float(second): times.note(name, now)
        streams[name].write(text.encode())
    both = MergedLog(times)
    assert both.read(0, 100) == (0, b"a\nb\nc\nde\n")
    assert both.read(-3, 100) == (6, b"de\n")
    assert both.read(2, 3) == (2, b"b\nc")
    assert times.index.when("stdout", 2) == 2.0
    assert times.index.when("stderr", 0) == 1.0
    close(streams, times)
    order = StreamIndex.parse((tmp_path / "times").read_bytes())
    files = {name: (tmp_path / name).read_bytes() for name in streams}
    read = lambda stream, start, maximum: (start, files[stream][start : start + maximum])  # noqa: E731
    assert read_both(order, {name: len(data) for name, data in files.items()}, read, 0, 99)[1] == b"a\nb\nc\nde\n"


@given(
    st.lists(st.tuples(st.floats(0, 9), st.integers(0, 9), st.integers(0, 9)), max_size=20),
    st.binary(max_size=60),
    st.binary(max_size=60),
    st.integers(-130, 130),
    st.integers(1, 50),
)
def test_every_byte_is_read_once_whatever_the_index_says(
    lines: list[tuple[float, int, int]], stdout: bytes, stderr: bytes, offset: int, limit: int
) -> None:
    order, at = StreamIndex(), (0, 0)
    for time, first, second in lines:
        at = (at[0] + first, at[1] + second)
        order.add(time, (at[0], 0), (at[1], 0))
    files = {"stdout": stdout, "stderr": stderr}
    sizes = {name: len(data) for name, data in files.items()}
    read = lambda stream, start, maximum: (start, files[stream][start : start + min(maximum, 7)])  # noqa: E731
    whole = read_both(order, sizes, read, 0, 1000)
    assert whole[0] == 0 or not whole[1]
    assert sorted(whole[1]) == sorted(stdout + stderr)
    start, part = read_both(order, sizes, read, offset, limit)
    begin = max(0, len(whole[1]) + offset) if offset < 0 else offset
    assert part == whole[1][begin : begin + limit]
    assert not part or start == begin


def test_what_was_dropped_from_the_middle_is_skipped_and_places_in_the_file_are_right(tmp_path: Path) -> None:
    streams, times = logs(tmp_path, limit=4096)
    for number in range(1000):
        streams["stdout"].before_write = lambda now=number * 1.0: times.note("stdout", now)
        streams["stdout"].write(b"line %06d\n" % number)
    both, found, offset = MergedLog(times), b"", 0
    while piece := both.read(offset, 500)[1]:
        offset = both.read(offset, 500)[0] + len(piece)
        found += piece
    assert found.startswith(b"line 000000\n")
    assert found.endswith(b"line 000999\n")
    assert both.size == offset == 12000
    close(streams, times)
    order, data = StreamIndex.parse((tmp_path / "times").read_bytes()), (tmp_path / "stdout").read_bytes()
    at = data.index(b"line 000990")
    assert order.when("stdout", at) == 990.0
    assert order.before("stdout", at) == (at, data[:at].count(b"\n"))
    assert order.before("stdout", 7 * 12) == (7 * 12, 7)


def test_the_index_is_bounded_and_knows_the_last_moments_best(tmp_path: Path) -> None:
    streams, times = logs(tmp_path)
    for number in range(5 * MAX_LINES):
        streams["stdout"].before_write = lambda now=number * 1.0: times.note("stdout", now)
        streams["stdout"].write(b"x\n")
    assert len(times.index) < MAX_LINES
    assert times.size < 40 * MAX_LINES
    last = 5 * MAX_LINES - 10
    assert times.index.when("stdout", 2 * last) == last
    assert times.read(-10, 5)[1] == (tmp_path / "times").read_bytes()[-10:-5]
    close(streams, times)


def test_an_index_of_rubbish_is_none() -> None:
    order = StreamIndex.parse(b"\xff\xfe\n1 2\nx y z 1 2\n5.0 3 4 1 1\n6.0 1 9 2 2\n7.0 9 9 3 4")
    assert [order.line(number) for number in range(len(order))] == ["5.000 3 4 1 1\n", "7.000 9 9 3 4\n"]
    assert StreamIndex.parse(b"").when("stdout", 5) is None


def test_lines_that_say_the_impossible_are_skipped() -> None:
    whole = b"5.0 0 0 0 0\n6.0 4 4 1 1\n"
    for wrong in ("1e300", "-1e300", "nan", "inf"):
        assert len(StreamIndex.parse(whole + f"{wrong} 9 9 2 2\n".encode())) == 2
    for numbers in (f"{10**30} 9 2 2", f"9 {10**30} 2 2", f"9 9 {10**30} 2", f"9 9 2 {10**30}", "-1 9 2 2", "9 9 2 -1"):
        index = StreamIndex.parse(whole + f"7.0 {numbers}\n".encode() + b"8.0 12 12 3 3\n")
        assert [index.place("stderr", number) for number in range(len(index))] == [(0, 0), (4, 1), (12, 3)]
