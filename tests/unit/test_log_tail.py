"""Tests what is kept in memory of a program's output, for the search of why it ended."""

from __future__ import annotations

import pytest

from howdah.executor.io.log_tail import LogTail
from howdah.logs.last_lines import END_BYTES, LAST_BYTES

HEAD = b"Traceback (most recent call last):\n"


@pytest.mark.parametrize("piece", [1000, 1 << 16])
def test_a_long_line_does_not_push_out_what_stands_before_it(piece: int) -> None:
    tail, text = LogTail(), HEAD + b"ValueError: " + b"x" * 1_000_000 + b"\nlast\n"
    for begin in range(0, len(text), piece):
        tail.feed(text[begin : begin + piece])
    first, second, third, rest = tail.end.split(b"\n")
    assert (first + b"\n", second[:15], len(second), third, rest) == (
        HEAD,
        b"ValueError: xxx",
        LAST_BYTES,
        b"last",
        b"",
    )


def test_of_a_progress_bar_the_newest_is_kept() -> None:
    tail = LogTail()
    tail.feed(b"\r".join(b"step %d" % number for number in range(40_000)) + b"\n" + HEAD)
    assert tail.end == b"step 39999\n" + HEAD


def test_no_more_than_an_end_of_much_output_is_kept() -> None:
    tail = LogTail()
    for number in range(100_000):
        tail.feed(b"line %d\n" % number)
    assert len(tail.end) == END_BYTES
    assert tail.end.endswith(b"line 99999\n")
