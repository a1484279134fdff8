"""Tests that pieces of a log cut no character and repeat nothing, and which tasks a selection names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.api.handlers.logs import MAX_CHARACTER_BYTES, whole_characters
from howdah.errors import InvalidRequest, NotFound
from howdah.logs.line_places import line_streams
from howdah.logs.query import tasks_of
from howdah.logs.stream_index import StreamIndex, read_both
from howdah.spec import JobSpec, Role
from howdah.spec.events import JobStarted
from howdah.spec.fold import fold
from howdah.wire.messages import LogChunk

CHINESE = "第一轮训练完成，损失 0.25；😀 ok\n" * 40


def piece(log: bytes, offset: int, limit: int) -> LogChunk:
    """As an executor reads it."""
    begin = max(0, len(log) + offset) if offset < 0 else min(offset, len(log))
    return LogChunk(request=0, offset=begin, size=len(log), text=log[begin : begin + limit].decode("latin-1"))


def all_of(log: bytes, limit: int, complete: bool, offset: int = 0) -> tuple[str, int]:
    """As a client asks for it, until nothing new comes; where that was."""
    found = ""
    while True:
        _, text, following = whole_characters(piece(log, offset, max(limit, MAX_CHARACTER_BYTES)), complete)
        found += text
        if following == offset or following >= len(log):
            return found, following
        offset = following


@pytest.mark.parametrize("limit", [1, 4, 5, 7, 64, 100_000])
@pytest.mark.parametrize("complete", [True, False])
def test_characters_at_the_borders_of_pieces(limit: int, complete: bool) -> None:
    assert all_of(CHINESE.encode(), limit, complete) == (CHINESE, len(CHINESE.encode()))


@given(st.text(), st.integers(1, 9))
def test_any_text_in_any_pieces(text: str, limit: int) -> None:
    assert all_of(text.encode(), limit, True)[0] == text


@given(st.binary(max_size=60), st.integers(1, 9), st.booleans())
def test_what_is_no_text_comes_to_its_end(log: bytes, limit: int, complete: bool) -> None:
    _, end = all_of(log, limit, complete)
    assert len(log) - end < (1 if complete else MAX_CHARACTER_BYTES)


def test_a_log_that_grows_byte_by_byte_is_shown_whole() -> None:
    log, shown, offset = CHINESE.encode()[:400], "", 0
    for size in range(len(log) + 1):
        begin, text, following = whole_characters(piece(log[:size], offset, 65536), complete=False)
        assert begin == offset
        shown, offset = shown + text, following
        assert "\ufffd" not in shown
    assert shown == log[:offset].decode()
    assert len(log) - offset < MAX_CHARACTER_BYTES


@pytest.mark.parametrize("back", range(MAX_CHARACTER_BYTES, 12))
def test_the_end_begins_at_a_character_and_says_where(back: int) -> None:
    log = "损失 😀".encode()
    begin, text, end = whole_characters(piece(log, -back, back), complete=True)
    assert (log[begin:].decode(), len(log)) == (text, end)
    assert len(log) - back <= begin < len(log) - back + MAX_CHARACTER_BYTES


def test_half_a_character_is_shown_when_nothing_will_follow() -> None:
    log = "完".encode()[:2]
    assert whole_characters(piece(log, 0, 100), complete=False) == (0, "", 0)
    assert whole_characters(piece(log, 0, 100), complete=True) == (0, "\ufffd", 2)
    before_a_gap = LogChunk(request=0, offset=0, size=1000, text=log.decode("latin-1"))
    assert whole_characters(before_a_gap, complete=False) == (0, "\ufffd", 2)


def test_what_is_in_another_encoding_loses_no_more_than_a_border() -> None:
    log = ("训练完成" * 500).encode("gbk")
    found, end = all_of(log, 64, complete=True)
    assert end == len(log)
    assert len(found) > len(log) * 0.6


def test_tasks_are_named_one_by_one_by_role_and_by_ranks() -> None:
    job = JobSpec({"ps": Role("true", 1), "worker": Role("true", 12)})
    view = fold([JobStarted(0.0, "local-1", "local", "me", job)])
    assert list(map(str, tasks_of(view, "worker:3"))) == ["worker:3"]
    assert list(map(str, tasks_of(view, "worker:9-11,ps"))) == ["worker:9", "worker:10", "worker:11", "ps:0"]
    assert len(tasks_of(view, "")) == len(tasks_of(view, "*")) == 13
    for unknown in ("worker:12", "worker:12-14", "nope", "nope:0", "worker:3,ps:1"):
        with pytest.raises(NotFound, match="the job has no task"):
            tasks_of(view, unknown)
    for malformed in ("worker:x", "worker:", "worker:-1", "worker:3:1", "worker:3,ps:last"):
        with pytest.raises(InvalidRequest, match="is not a task: write role:index"):
            tasks_of(view, malformed)


@pytest.mark.parametrize("known", [0, 1, 2, 3])
def test_lines_of_both_streams_are_of_the_stream_that_they_were_printed_to(known: int) -> None:
    texts = {"stdout": b"out 1\nout 2\nout 3\nout 4\n", "stderr": b"err 1\nerr 2\nerr 3\n"}
    sizes = {stream: len(text) for stream, text in texts.items()}
    index = StreamIndex.parse(b"".join([b"1 6 0 1 0\n", b"2 12 6 2 1\n", b"3 18 12 3 2\n"][:known]))

    def read(stream: str, offset: int, limit: int) -> tuple[int, bytes]:
        return offset, texts[stream][offset : offset + limit]

    for offset in range(0, sum(sizes.values()), 6):
        for limit in (6, 17, 100):
            _, data = read_both(index, sizes, read, offset, limit)
            streams, current = dict(line_streams(index, sizes["stdout"], offset, data)), ""
            for number, line in enumerate(data.decode().splitlines()):
                current = streams.get(number, current)
                assert line.startswith(current[3:])
                assert current
