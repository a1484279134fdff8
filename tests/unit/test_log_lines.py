"""Tests which lines of merged logs `howdah logs` chooses."""

from __future__ import annotations

import re

from test_log_search import TRACEBACK

from howdah.logs.levels import Traceback
from howdah.logs.lines import LineFilter, LogLine

LINES = [line.encode() for line in TRACEBACK.splitlines()]


def two_tasks() -> list[LogLine]:
    """The same lines of two tasks, which print in turn."""
    return [LogLine(0.0, task, 1, "stderr", line) for line in LINES for task in ("worker:0", "worker:1")]


def test_a_level_keeps_the_traceback_of_each_task_whole() -> None:
    chosen = [*LineFilter("error").select(two_tasks())]
    for task in ("worker:0", "worker:1"):
        texts = [line.text for line in chosen if line.task == task]
        assert texts == [LINES[number - 1] for number in (2, 3, 4, *range(6, 11), 12)]


def test_a_traceback_that_comes_in_parts_is_whole() -> None:
    tracebacks: dict[object, Traceback] = {}
    lines = [LogLine(0.0, "worker:0", 1, "stderr", line) for line in LINES]
    chosen = [each for line in lines for each in LineFilter("error").select([line], tracebacks)]  # type: ignore[arg-type]
    assert chosen == [*LineFilter("error").select(lines)]


def test_a_pattern_chooses_among_the_lines_of_the_level() -> None:
    filters = LineFilter("error", re.compile(b"File"))
    assert {line.text.strip() for line in filters.select(two_tasks())} == {LINES[2], LINES[6].strip()}
    assert [*LineFilter().select(two_tasks())] == two_tasks()


def in_traceback(text: str) -> str:
    """Return a letter for each line: `x` in a traceback, `.` outside."""
    follows = Traceback()
    return "".join("x" if follows.add(line.encode()) else "." for line in text.splitlines())


BEGIN = "Traceback (most recent call last):"


def test_a_traceback_behind_a_progress_bar_is_whole() -> None:
    assert in_traceback(f" 5%|#  | 5/100 [00:01<?]{BEGIN}\n  File x\n    f()\nValueError: 1\nmore") == "xxxx."
    assert in_traceback(f"2026-11-29 12:00 ERROR {BEGIN}\n  File x\nValueError: 1\nmore") == "xxx."


def test_tracebacks_of_ranks_between_each_other_are_whole() -> None:
    lines = [f"[rank{rank}]: {text}" for text in (BEGIN, "  File x", "ValueError: 1", "more") for rank in (0, 1)]
    assert in_traceback("\n".join(lines)) == "xxxxxx.."
    assert in_traceback(f"{BEGIN}\n  File x\n[rank1]: step 3\n    f()\nValueError: 1") == "xx.xx"
    assert in_traceback(f"(train pid=7) {BEGIN}\n(train pid=7)   File x\n(train pid=7) ValueError: 1\nx") == "xxx."
