"""A log's parts as the page puts them together: its own script, with the parts that the server makes of a long log."""

from __future__ import annotations

import pytest
from page_script import FRONTEND, run_node
from test_web_logs import piece

from howdah.web.answers import whole_characters

SCRIPT = """
const fs = require("fs");
const [compiler, source] = process.argv.slice(1);
const made = require(compiler).transpileModule(fs.readFileSync(source, "utf8"), { compilerOptions: { module: 1 } });
const page = {};
new Function("exports", made.outputText)(page);
const { live, earlier } = JSON.parse(fs.readFileSync(0, "utf8"));
let log = live.reduce(page.added, page.EMPTY);
const told = [[log.from, log.text]];
if (earlier) log = page.before(log, earlier);
console.log(JSON.stringify([...told, [log.from, log.text]]));
"""


def put_together(live: list[dict[str, object]], earlier: dict[str, object] | None = None) -> list[tuple[int, str]]:
    """Where the page's text begins and what it is, with the parts of a living log, and then with an earlier one."""
    told = run_node(SCRIPT, [str(FRONTEND / "src" / "logs" / "parts.ts")], {"live": live, "earlier": earlier})
    return [(begin, text) for begin, text in told]


def part(log: bytes, offset: int, limit: int = 65536) -> dict[str, object]:
    begin, text, following = whole_characters(piece(log, offset, limit), over=False)
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
