"""Tests how the page's own script puts together the parts that the server makes of a long log."""

from __future__ import annotations

import pytest
from page_script import FRONTEND, run_node
from test_api_logs import piece

from howdah.api.handlers.logs import whole_characters

SCRIPT = """
const fs = require("fs");
const [compiler, source] = process.argv.slice(1);
const made = require(compiler).transpileModule(fs.readFileSync(source, "utf8"), { compilerOptions: { module: 1 } });
const page = {};
new Function("exports", made.outputText)(page);
const { live, earlier } = JSON.parse(fs.readFileSync(0, "utf8"));
let log = live.reduce(page.appendChunk, page.EMPTY_LOG);
const told = [[log.from, log.text]];
if (earlier) log = page.prependChunk(log, earlier);
console.log(JSON.stringify([...told, [log.from, log.text]]));
"""
READ_BACK = """
const fs = require("fs");
const [compiler, source] = process.argv.slice(1);
const made = require(compiler).transpileModule(fs.readFileSync(source, "utf8"), { compilerOptions: { module: 1 } });
const page = {};
new Function("exports", made.outputText)(page);
const parts = JSON.parse(fs.readFileSync(0, "utf8"));
const logs = [page.appendChunk(page.EMPTY_LOG, parts[0])];
for (const part of parts.slice(1)) logs.push(page.prependChunk(logs.at(-1), part));
const told = ({ from, to, firstLine, text }) => [from, to, firstLine, text.match(/^.*/)[0]];
console.log(JSON.stringify([...logs.map(told), page.lineNumberAt(logs.at(-1), parts.at(-1).offset + 1000)]));
"""


def put_together(live: list[dict[str, object]], earlier: dict[str, object] | None = None) -> list[tuple[int, str]]:
    """Where the page's text begins and what it is, with the parts of a living log, and then with an earlier one."""
    told = run_node(SCRIPT, [str(FRONTEND / "src" / "logs" / "logText.ts")], {"live": live, "earlier": earlier})
    return [(begin, text) for begin, text in told]


def part(log: bytes, offset: int, limit: int = 65536) -> dict[str, object]:
    begin, text, following = whole_characters(piece(log, offset, limit), complete=False)
    return {"offset": begin, "size": len(log), "next": following, "text": text, "complete": False, "attempts": [1]}


def tail(log: bytes, begin: int) -> list[dict[str, object]]:
    parts = [part(log, begin)]
    while (following := parts[-1]["next"]) != len(log):
        assert isinstance(following, int)
        parts.append(part(log, following))
    return parts


@pytest.mark.parametrize("lines", [10, 20_000, 400_000])
def test_the_place_of_its_beginning_is_that_of_the_stream(lines: int) -> None:
    whole = "".join(f"第{number}轮 损失 😀\n" for number in range(lines))
    log = whole.encode()
    live = tail(log, 1)  # within a character
    ((begin, text), (sooner, longer)) = put_together(live, part(log, 0, 3) if lines == 10 else None)
    assert log[begin:].decode() == text
    assert begin == 3 if lines < 400_000 else len(text.encode("utf-16-le")) // 2 > 4_000_000
    assert (sooner, longer) == ((0, whole) if lines == 10 else (begin, text))


def test_a_log_that_is_read_back_leaves_out_its_end_and_its_lines_keep_their_numbers() -> None:
    log = "".join(f"第{number}轮 损失 😀\n" for number in range(400_000)).encode()
    begins = [begin + 1 for begin in range(0, len(log), 1_000_000)]  # mostly within a line, or a character
    offsets = [part(log, begin, 4)["offset"] for begin in begins]
    ends = [*offsets[1:], len(log)]
    parts = [part(log, begin, end - begin) for begin, end in zip(offsets, ends, strict=True)]  # type: ignore[operator]
    *logs, place = run_node(READ_BACK, [str(FRONTEND / "src" / "logs" / "logText.ts")], parts[::-1])
    last = log.count(b"\n", 0, logs[0][0])  # the number of the line that is read first
    for begin, end, first, text in logs:
        assert log[begin:].decode().startswith(text)
        assert log.count(b"\n", 0, begin) == last + first
        assert end == len(log) or log[begin:end].decode()
    assert logs[-1][0] == offsets[0]
    assert logs[-1][1] < len(log)
    assert log.count(b"\n", 0, 1000 + logs[-1][0]) == last + place
