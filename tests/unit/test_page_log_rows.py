"""Tests how the page cuts long log lines into rows, and numbers lines of which it has parts."""

from __future__ import annotations

from typing import Any

import pytest
from page_script import FRONTEND, called, run_node
from test_page_log_text import part

NUMBERED = """
const fs = require("fs");
const [compiler, source] = process.argv.slice(1);
const made = require(compiler).transpileModule(fs.readFileSync(source, "utf8"), { compilerOptions: { module: 1 } });
const page = {};
new Function("exports", made.outputText)(page);
const { earlier, chunks } = JSON.parse(fs.readFileSync(0, "utf8"));
let log = chunks.reduce(page.appendChunk, page.EMPTY_LOG);
if (earlier) log = page.prependChunk(log, earlier);
const lines = log.text.split("\\n").slice(0, -1);
let place = 0;
const places = lines.map((line) => (place += line.length + 1) - line.length - 1);
const offsets = page.byteOffsets(log, places);
console.log(JSON.stringify(lines.map((line, at) => {
  const number = log.firstLine + at;
  return [line, page.streamLineNumber(log, number) ?? null, page.lineTime(log, number) ?? null, offsets[at]];
})));
"""
LOG = "".join(f"第{number}轮\n" for number in range(1, 101)).encode()


def rows(text: str, columns: int) -> list[str]:
    line = {"number": 0, "from": 0, "to": len(text), "text": text, "level": "", "runs": []}
    (found,) = called("logs/wrapLines.ts", "wrapLines", [[[line], columns]])
    return [text[row["from"] : row["to"]] for row in found]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("", [""]),
        ("0123456789", ["0123456789"]),
        ("0123456789a", ["0123456789", "a"]),
        ("x" * 25, ["x" * 10, "x" * 10, "x" * 5]),
        ("损失损失损失", ["损失损失损", "失"]),
        ("a\tb\tc", ["a\tb", "\tc"]),
    ],
)
def test_a_row_has_ten_columns(text: str, cut: list[str]) -> None:
    assert rows(text, 10) == cut


def numbered(chunks: list[dict[str, Any]], earlier: dict[str, Any] | None = None) -> list[list[Any]]:
    """Each whole line that the page has, with its number, time and offset."""
    question = {"chunks": chunks, "earlier": earlier}
    found: list[list[Any]] = run_node(NUMBERED, [str(FRONTEND / "src" / "logs" / "logText.ts")], question)
    return found


def chunk(begin: int, end: int, number: bool = True) -> dict[str, Any]:
    """The server's answer for these bytes; each line was printed a second after the one before."""
    found = part(LOG, begin, end - begin)
    first = LOG.count(b"\n", 0, int(str(found["offset"]))) + 1
    count = str(found["text"]).count("\n") + 1
    times = [[line, first + line] for line in range(count)]
    return {**found, "first_line": first if number else None, "times": times if number else []}


def within(line: int) -> int:
    """A place within a line, between two characters."""
    return LOG.index(f"第{line}轮".encode()) + 4


def true_lines(first: int, last: int) -> list[list[Any]]:
    lines = LOG.decode().split("\n")
    return [
        [lines[number - 1], number, number, len("\n".join([*lines[: number - 1], ""]).encode())]
        for number in range(first, last + 1)
    ]


def test_lines_keep_their_numbers_times_and_offsets_over_chunks() -> None:
    found = numbered([chunk(within(20), within(50)), chunk(within(50), len(LOG))], chunk(0, within(20)))
    assert found == true_lines(1, 100)


def test_a_chunk_without_a_number_follows_the_one_before() -> None:
    found = numbered([chunk(0, within(20)), chunk(within(20), len(LOG), number=False)])
    assert [number for _, number, *_ in found] == list(range(1, 101))


def test_lines_get_their_numbers_when_those_before_them_are_read() -> None:
    later = chunk(within(20), len(LOG), number=False)
    assert {number for _, number, *_ in numbered([later])} == {None}
    assert [number for _, number, *_ in numbered([later], chunk(0, within(20)))] == list(range(1, 101))


def test_lines_after_a_gap_have_their_own_numbers() -> None:
    found = numbered([chunk(0, within(20)), chunk(LOG.index("第51轮".encode()), len(LOG))])
    assert found[0][:2] == ["第1轮", 1]
    assert found[-1][:2] == ["第100轮", 100]


def test_after_a_gap_nothing_is_said_of_a_number_that_is_not_known() -> None:
    found = numbered([chunk(0, within(20)), chunk(LOG.index("第51轮".encode()), len(LOG), number=False)])
    assert [number for _, number, *_ in found[:19]] == list(range(1, 20))
    assert {number for _, number, *_ in found[20:]} == {None}
