"""Tests that the page colours log lines by the levels that the server finds."""

from __future__ import annotations

from page_script import called
from test_log_search import TRACEBACK, hits

from howdah.logs.levels import LEVELS, level_of
from howdah.logs.query import LogQuery

WORDS = [f"a {word.decode()} b" for words in LEVELS.values() for word in words]
DAYS = ["E1121 18:06", "F0101 00:00", "W0731 9", "E11210 9", "E2101 9", "Epoch 1", " E1121 9", "I1121 9", "W1121 error"]


def test_a_line_is_of_the_same_level_on_the_page() -> None:
    lines = [*WORDS, *DAYS, "loss 0.1", "Warning: 3 ERRORS", "INFO 7"]
    shown = [found[0]["level"] for found in called("logs/logLines.ts", "parseLogLines", lines)]
    assert dict(zip(lines, shown, strict=True)) == {line: level_of(line.encode()) for line in lines}


def test_the_page_keeps_the_tracebacks_that_a_search_finds() -> None:
    (lines,) = called("logs/logLines.ts", "parseLogLines", [TRACEBACK])
    for level in ("error", "warning"):
        (shown,) = called("logs/logLines.ts", "filterByLevel", [[lines, level]])
        searched = hits(TRACEBACK.encode(), LogQuery(level=level))
        assert [line["number"] + 1 for line in shown] == [hit.line for hit in searched]
        assert {line["level"] for line in shown} == {"error"}


def test_lines_of_another_stream_may_come_within_a_traceback() -> None:
    printed = [(line, "stderr") for line in TRACEBACK.splitlines()]
    places = range(len(printed) + 1)
    whole, *others = filtered(
        [printed, *([*printed[:place], ("step 7", "stdout"), *printed[place:]] for place in places)]
    )
    assert others == [whole for _ in places]


def filtered(logs: list[list[tuple[str, str]]]) -> list[list[str]]:
    """The lines that the page shows of level error, of each log, whose lines have their streams."""
    parsed = called("logs/logLines.ts", "parseLogLines", ["".join(f"{text}\n" for text, _ in log) for log in logs])
    streams = [[{"line": number, "value": stream} for number, (_, stream) in enumerate(log)] for log in logs]
    questions = [[lines, "error", each] for lines, each in zip(parsed, streams, strict=True)]
    return [[line["text"] for line in shown] for shown in called("logs/logLines.ts", "filterByLevel", questions)]
