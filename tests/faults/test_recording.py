"""Tests the recording in README: drawn from a real run by tools/recording.py, small, with nothing of its machine."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from recording import COMMAND, KEPT, draw, hide_places, lines_in_time, screens  # noqa: E402 - from tools

MAX_BYTES = 60_000
LIMIT_S = 240
CERTAIN = re.compile(r"\$ howdah run|submitted|page:|joined on|runs: pid|worker:0 \||exit code 0$|SUCCEEDED$")
"""What each run prints. Which task comes first, and what the table shows meanwhile, depend on the moment."""


def lines_at_the_end(svg: str) -> list[str]:
    """Return the last screen's lines that each run has, without what differs, in the order of their words."""
    texts = ["".join(text.itertext()) for text in ET.fromstring(svg).iter() if text.get("class") == "last"]
    changing = r"local-[\w-]+|(?<=worker:)\d(?! \|)|\d\d:\d\d:\d\d|:\d{4,5}|pid \d+"
    return sorted(re.sub(changing, "N", line) for line in texts if CERTAIN.search(line) and "MiB" not in line)


def test_the_recording_is_what_the_tool_makes(tmp_path: Path) -> None:
    made = tmp_path / "made.svg"
    command = [sys.executable, str(ROOT / "tools" / "recording.py"), str(made)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    kept = lines_at_the_end(KEPT.read_text(encoding="utf-8"))
    assert f"$ {COMMAND}" in kept
    assert lines_at_the_end(made.read_text(encoding="utf-8")) == kept


def test_the_recording_is_small_and_of_no_machine() -> None:
    svg = KEPT.read_text(encoding="utf-8")
    assert len(svg.encode()) <= MAX_BYTES
    assert not re.search(r"/(work|root|home|tmp|usr)\b|#token=\w|<script|href|url\(|@import", svg)
    assert "prefers-color-scheme:dark" in svg
    for readme in ("README.md", "README.zh-CN.md"):
        assert KEPT.relative_to(ROOT).as_posix() in (ROOT / readme).read_text(encoding="utf-8"), readme


def test_a_line_is_seen_until_another_takes_its_place() -> None:
    pieces = [
        (1.0, "\x1b[?25l\x1b[1mTask\x1b[0m\r\nworker:0  \x1b[36mRUNNING\x1b[0m"),
        (9.0, "\r\x1b[2K\x1b[1A\x1b[2K<done>\r\n"),
    ]
    shown = {each.line: each for each in lines_in_time(screens(pieces, "/nowhere"))}
    command, table, done = (shown[line] for line in (f"$ {COMMAND}", "\x1b[1mTask\x1b[0m", "<done>"))
    assert (command.row, command.since) == (0, 0.0)
    assert (table.row, done.row) == (1, 1)
    assert table.until == done.since < 2.0  # long waits are cut short
    svg = draw(list(shown.values()))
    assert ["".join(text.itertext()) for text in ET.fromstring(svg) if text.get("class") == "last"] == [
        f"$ {COMMAND}",
        "<done>",
    ]
    assert '<tspan class="cyan">RUNNING</tspan>' in svg
    assert '<tspan class="bold">Task</tspan>' in svg


def test_paths_and_tokens_are_hidden() -> None:
    assert hide_places("page: http://127.0.0.1:1/#token=abc", "/tmp/x") == "page: http://127.0.0.1:1/#token=…"
    assert hide_places("worker:0 runs: pid 7, /opt/bin/python3", "/tmp/x") == "worker:0 runs: pid 7, python3"
    assert hide_places("output: file:///tmp/x/model", "/tmp/x") == "output: file://~/model"
