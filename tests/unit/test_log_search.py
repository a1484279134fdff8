"""Tests searching lines in logs with any content."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.errors import InvalidRequest
from howdah.executor.io.task_output import TaskOutput
from howdah.logs import search as logsearch
from howdah.logs.query import LogMatch, LogQuery, SearchedStream
from howdah.logs.search import Search, piece_filler, search_archive, search_files


def hits(data: bytes, wish: LogQuery, size: int = 0) -> list[LogMatch]:
    pieces = [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
    return list(Search(wish, "worker:0", 1, "stdout").run(piece_filler(pieces)))


def test_lines_have_numbers_offsets_and_levels() -> None:
    data = b"one\ntwo needle\r\n\nERROR needle again\nlast needle"
    found = hits(data, LogQuery("needle"))
    assert [(one.line, one.text, one.level) for one in found] == [
        (2, "two needle", ""),
        (4, "ERROR needle again", "error"),
        (5, "last needle", ""),
    ]
    assert all(data[one.offset :].startswith(one.text[:4].encode()) for one in found)


def test_lines_as_glog_writes_them_are_of_a_level_by_how_they_begin() -> None:
    data = b"E1121 18:06:52.1 7 a.cc:1] one\nWhat\nE11210 two\n E1121 three\nW0102 four\nEpoch 1\nF0731 five\n"
    assert [(one.line, one.level) for one in hits(data, LogQuery(level="error"), 10)] == [(1, "error"), (7, "error")]
    assert [one.line for one in hits(data, LogQuery("o", level="warning"))] == [1, 5]


@given(st.lists(st.sampled_from([b"ab", b"b a", b"", b"xERRORy", b"warn b"]), max_size=30), st.integers(1, 9))
def test_as_looking_at_each_line_finds_them(lines: list[bytes], size: int) -> None:
    data = b"\n".join(lines)
    for wish, holds in (
        (LogQuery("b"), lambda line: b"b" in line),
        (LogQuery("^b", regex=True), lambda line: line.startswith(b"b")),
        (LogQuery(level="error"), lambda line: b"ERROR" in line),
        (LogQuery(level="warning"), lambda line: b"ERROR" in line or b"warn" in line),
        (LogQuery("b", level="warning"), lambda line: b"warn b" in line),
    ):
        expected = [(number, line) for number, line in enumerate(lines, 1) if holds(line)]
        assert [(one.line, one.text.encode()) for one in hits(data, wish, size)] == expected


TRACEBACK = """\
step 1
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 3, in main
[rank0]:     forward(x)
other
Traceback (most recent call last):
  File "train.py", line 9, in <module>
    wait()
    ~~~~^^
Timeout
after
KeyError
"""


@pytest.mark.parametrize("size", [0, 1, 7, 40])
@pytest.mark.parametrize("level", ["error", "warning"])
def test_a_search_for_a_level_finds_whole_tracebacks(size: int, level: str) -> None:
    found = hits(TRACEBACK.encode(), LogQuery(level=level), size)
    assert [one.line for one in found] == [2, 3, 4, 6, 7, 8, 9, 10, 12]
    assert {one.level for one in found} == {"error"}
    lines = TRACEBACK.splitlines()
    assert [one.text for one in found] == [lines[one.line - 1] for one in found]


def test_a_search_for_a_text_of_a_level_finds_lines_with_both() -> None:
    assert [one.line for one in hits(TRACEBACK.encode(), LogQuery("e", level="error"))] == [2, 6, 12]


@pytest.mark.parametrize("block", [64, 100, 150])
def test_a_traceback_across_blocks_is_found_whole(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(logsearch, "BLOCK", block)
    found = hits(TRACEBACK.encode() * 9, LogQuery(level="error"))
    assert [one.line for one in found] == [
        12 * turn + line for turn in range(9) for line in (2, 3, 4, *range(6, 11), 12)
    ]


def test_matches_across_blocks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    data = (b"x" * 99 + b"\n") * (logsearch.BLOCK // 100) + b"a needle\n" + b"y\n" * 10
    assert [one.text for one in hits(data, LogQuery("needle"), 1 << 16)] == ["a needle"]


def test_a_line_of_a_hundred_megabytes_takes_little_memory_and_is_shown_in_part(tmp_path: Path) -> None:
    path = tmp_path / "stdout"
    with path.open("wb") as file:
        for _ in range(50):
            file.write(b"\xff\x00" * (1 << 20))
        file.write(b" needle ")
        for _ in range(50):
            file.write(b"z" * (1 << 20))
        file.write(b"\nafter needle\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = search_files([SearchedStream("w:0", 1, "stdout", path=str(path))], LogQuery("needle"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 << 10
    assert [len(hit["text"]) <= 4 * logsearch.MAX_SHOWN_CHARACTERS for hit in found["hits"]] == [True, True]
    assert found["hits"][1]["text"] == "after needle"
    assert found["scanned_bytes"] == path.stat().st_size


def test_times_come_from_the_index_beside_it(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_bytes(b"early needle\nlate needle\n")
    (tmp_path / "times").write_text("100.0 0 0 0 0\n200.0 13 0 1 0\n")
    one = SearchedStream("w:0", 1, "stdout", path=str(tmp_path / "stdout"))
    assert [hit["time"] for hit in search_files([one], LogQuery("needle"))["hits"]] == [100.0, 200.0]
    late = search_files([one], LogQuery("needle", since=150.0))["hits"]
    assert [hit["text"] for hit in late] == ["late needle"]


EARLY, LATE, LAST = 900, 100, 50
"""Lines, of 10 bytes each, printed at second 100, at 200 and at 300."""


def timed_log(directory: Path) -> bytes:
    lines = b"".join(b"needle%03d\n" % (number % 1000) for number in range(EARLY + LATE + LAST))
    (directory / "stdout").write_bytes(lines)
    places = ((100, 0), (200, EARLY), (300, EARLY + LATE))
    (directory / "times").write_text("".join(f"{when}.0 {10 * line} 0 {line} 0\n" for when, line in places))
    return lines


def numbered(found: dict[str, Any]) -> list[int]:
    assert all(hit["offset"] == 10 * (hit["line"] - 1) for hit in found["hits"])
    return [hit["line"] for hit in found["hits"]]


SPANS: list[tuple[dict[str, Any], range, bool]] = [
    ({"since": 200.0, "until": 200.0}, range(901, 1001), True),
    ({"since": 200.0, "limit": 120}, range(901, 1021), False),
    ({"since": 250.0}, range(1001, 1051), True),
    ({"since": 250.0, "until": 260.0}, range(0), True),
    ({"since": 301.0}, range(0), True),
    ({"until": 99.0}, range(0), True),
    ({"until": 150.0, "limit": 200}, range(1, 201), False),
    ({}, range(1, 201), False),
]


@pytest.mark.parametrize(("wish", "lines", "complete"), SPANS)
@pytest.mark.parametrize("times_first", [True, False])
def test_what_was_printed_at_another_time_does_not_count(
    tmp_path: Path, wish: dict[str, Any], lines: range, complete: bool, times_first: bool
) -> None:
    data = timed_log(tmp_path)
    one = SearchedStream("w:0", 1, "stdout")
    whole = search_files([replace(one, path=str(tmp_path / "stdout"))], LogQuery("needle", **wish))
    assert (numbered(whole), whole["complete"]) == (list(lines), complete)
    with (tmp_path / "tail").open("w+b") as file:  # what a live log keeps: not its beginning
        file.write(data[5000:])
        file.flush()
        times = (tmp_path / "times").read_text()
        kept = replace(one, file=file.fileno(), start=5000, end=len(data), lines=500, times=times)
        found = search_files([kept], LogQuery("needle", **wish))
        in_tail = [line for line in range(501, 1051) if wish.get("until", 1e9) >= 100][: wish.get("limit", 200)]
        assert numbered(found) == (list(lines) if "since" in wish else in_tail)

    def logs() -> Iterator[tuple[str, bytes]]:
        index = "w:0 attempt 1 times", (tmp_path / "times").read_bytes()
        yield from [index] * times_first
        yield from (("w:0 attempt 1 stdout", data[at : at + 999]) for at in range(0, len(data), 999))
        yield from [index] * (not times_first)

    headed = search_archive(logs, LogQuery("needle", **wish), {"w:0"})
    assert (numbered(headed), headed["complete"]) == (list(lines), complete)


def test_only_what_the_index_says_may_be_of_that_time_is_read(tmp_path: Path) -> None:
    timed_log(tmp_path)
    one = SearchedStream("w:0", 1, "stdout", path=str(tmp_path / "stdout"))
    assert search_files([one], LogQuery("needle", since=200.0, until=200.0))["scanned_bytes"] == 10 * LATE
    (tmp_path / "times").write_text("200.0 9000 0 900 0\n")  # nobody knows when the first lines came
    found = search_files([one], LogQuery("needle", since=250.0, limit=2000))
    assert numbered(found) == list(range(1, EARLY + 1))


def test_a_file_that_is_gone_is_told_of(tmp_path: Path) -> None:
    one = SearchedStream("w:0", 1, "stdout", path=str(tmp_path / "gone"))
    found = search_files([one], LogQuery("x"))
    (problem,) = found.pop("problems")
    assert problem.startswith("w:0 attempt 1 stdout: ")
    assert "No such file" in problem
    assert found == {"hits": [], "scanned_bytes": 0, "complete": False}


@pytest.mark.parametrize("head", ["", "Transfer-Encoding: chunked\r\n"])
def test_a_node_that_goes_away_while_it_is_read_is_told_of(head: str) -> None:
    began = "LogLength:1000\nLogContents:\nneedle\n"
    body = f"{len(began):x}\r\n{began}\r\n" if head else began
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(3):  # twice for its index, then for its log
                connection, _ = server.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\n{body}".encode())

        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/node/containerlogs/c1/me"
        found = search_files([SearchedStream("w:0", 1, "stdout", url=url)], LogQuery("needle"))
    (problem,) = found["problems"]
    assert not found["complete"]
    assert problem.startswith("w:0 attempt 1 stdout: http://127.0.0.1")


def test_the_number_of_hits_is_limited() -> None:
    search = Search(LogQuery("x", limit=3), "w:0", 1, "stdout")
    assert len(list(search.run(piece_filler([b"x\n" * 100])))) == 3
    assert not search.complete


@pytest.mark.parametrize("query", [{}, {"text": "(", "regex": "1"}, {"level": "loud"}, {"text": "x", "limit": "many"}])
def test_a_wish_that_makes_no_sense_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest, match=r"\w"):
        LogQuery.from_parameters(query)


def test_the_search_needs_the_standard_library_only() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import howdah.logs.search"
    source = str(Path(logsearch.__file__).parents[2])
    subprocess.run([sys.executable, "-I", "-S", "-c", code, source], check=True)


@given(
    st.lists(st.sampled_from([b"x", b"\n", b"needle\n", b"a longer line\n", b"\n\nneedle"]), max_size=60), st.booleans()
)
def test_numbers_from_the_index_are_those_of_counting(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], small: bool
) -> None:
    directory = tmp_path_factory.mktemp("logs")
    printed = TaskOutput(str(directory), 64 if small else 1 << 20)
    stdout, written = printed.logs["stdout"], b""
    for number, piece in enumerate(pieces):
        stdout.before_write = lambda now=number * 1.0: printed.times.note("stdout", now)  # type: ignore[misc]
        stdout.write(piece)
        written += piece
    one = SearchedStream("worker:0", 1, "stdout")
    times = (directory / "times").read_text()
    for file, start, end, lines in stdout.kept:
        assert lines == written[:start].count(b"\n")
        part = replace(one, file=file, start=start, end=end, lines=lines, times=times)
        for hit in search_files([part], LogQuery("needle"))["hits"]:
            assert hit["line"] == written[: hit["offset"]].count(b"\n") + 1
    printed.close()
    whole = (directory / "stdout").read_bytes()
    found = search_files([replace(one, path=str(directory / "stdout"))], LogQuery("needle"))["hits"]
    assert [(hit["offset"], hit["line"]) for hit in found] == [
        (hit.offset, hit.line) for hit in hits(whole, LogQuery("needle"))
    ]
