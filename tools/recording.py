"""Records docs/screens/first-job.svg from a real run: `tools/recording.py [FILE]`, by .venv's Python.

Runs an example in a terminal and draws what it shows as an SVG that moves by CSS alone. Who wants no motion sees its
end. Paths of this machine are shown as `~`, and the token of the page's link as `…`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import pexpect
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from local_jobs import howdah_home  # noqa: E402 - from tests/browser

KEPT = ROOT / "docs" / "screens" / "first-job.svg"
EXAMPLE = "examples/here-rendezvous"
COMMAND = f"howdah run {EXAMPLE}/job.yaml"
COLUMNS, ROWS = 100, 60
MAX_SILENCE_S = 120
MAX_GAP_S, HOLD_S = 0.8, 6.0  # how long the picture stays the same at most, and at the end, before it begins again
WIDTH, LINE = 7.83, 18  # of a character, and the height of a line, in a font of 13 pixels
CONTROL = re.compile(r"\r|\n|\x1b\[\d*[AK]|\x1b\[\?25[lh]|(?:[^\r\n\x1b]|\x1b\[[\d;]*m)+")
COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan")
LIGHT = ("#b3261e", "#116329", "#7d4e00", "#0a51b8", "#8430c4", "#0b5f74")
DARK = ("#ff8f85", "#5fd37a", "#e8b64c", "#85bdff", "#d8a9ff", "#62cfe8")


class Shown(NamedTuple):
    """One line in one row, from a moment of the recording, in seconds, until another."""

    row: int
    line: str
    since: float
    until: float


def run_example(folder: Path) -> Iterator[tuple[float, str]]:
    """Run the example below `folder` in a terminal; yield what it prints, with the seconds since it began."""
    shutil.copytree(ROOT / EXAMPLE, folder / EXAMPLE, ignore=shutil.ignore_patterns("model", "__pycache__"))
    environment = {name: os.environ[name] for name in ("PATH", "USER", "TMPDIR") if name in os.environ}
    environment |= {"HOME": str(folder), "HOWDAH_HOME": str(folder / "home"), "TERM": "xterm-256color"}
    where = {"cwd": str(folder), "env": environment, "dimensions": (ROWS, COLUMNS), "encoding": "utf-8"}
    run, began = pexpect.spawn(f"{Path(sys.executable).parent}/{COMMAND}", **where), time.monotonic()
    try:
        while True:
            yield time.monotonic() - began, run.read_nonblocking(1 << 16, MAX_SILENCE_S)
    except pexpect.EOF:
        run.close()
        if run.exitstatus != 0:
            sys.exit(f"{COMMAND}: exit status {run.exitstatus}")


def hide_places(line: str, folder: str) -> str:
    """Return a printed line without the paths of this machine and the token of the page."""
    return re.sub(r"(#token=)\w+", r"\1…", re.sub(r"(pid \d+, )\S+/", r"\1", line.replace(folder, "~"))).rstrip()


def screens(pieces: Iterable[tuple[float, str]], folder: str) -> Iterator[tuple[float, list[str]]]:
    """Yield each screen, as lines with their colours, and its moment. No wait is longer than MAX_GAP_S."""
    lines, row, moment, heard = [f"$ {COMMAND}", ""], 1, 0.0, 0.0
    yield moment, lines[:1]
    for at, piece in pieces:
        moment, heard = moment + min(at - heard, MAX_GAP_S), at
        for word in CONTROL.findall(piece):
            if word == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif word[0] == "\x1b" and word[-1] == "A":
                row -= int(word[2:-1] or 1)
            elif word[0] == "\x1b" and word[-1] == "K":
                lines[row] = ""
            elif word != "\r" and "\x1b[?" not in word:
                lines[row] += word
        yield moment, [hide_places(line, folder) for line in lines]


def lines_in_time(found: Iterable[tuple[float, list[str]]]) -> list[Shown]:
    """Return each line with its row and the time in which it is seen; the last screen stays for HOLD_S."""
    done, begun, moment = list[Shown](), dict[int, tuple[str, float]](), 0.0
    for moment, lines in found:
        for row, line in enumerate(lines):
            before, since = begun.get(row, ("", 0.0))
            if line != before:
                done += [Shown(row, before, since, moment)] if before and since < moment else []
                begun[row] = (line, moment)
    return done + [Shown(row, line, since, moment + HOLD_S) for row, (line, since) in begun.items() if line]


def coloured(line: str) -> str:
    """Return a line's text, with its colours as spans."""
    parts: list[tuple[str, str]] = []
    for text, style, _ in Text.from_ansi(line).render(Console(width=1000)):
        number = style.color.number if style and style.color else None
        colour = (
            COLOURS[(number - 1) % 8] if number is not None and 0 < number < 15 and number % 8 not in (0, 7) else ""
        )
        names = f"{'bold ' * bool(style and style.bold)}{colour}".strip()
        goes_on = parts and (parts[-1][0] == names or not text.strip())
        parts[-1 if goes_on else len(parts) :] = [(parts[-1][0], parts[-1][1] + text) if goes_on else (names, text)]
    return "".join(f'<tspan class="{names}">{escape(text)}</tspan>' if names else escape(text) for names, text in parts)


def draw(shown: list[Shown]) -> str:
    """Return the recording as an SVG."""
    length, rows = max(each.until for each in shown), max(each.row for each in shown) + 1
    width, height = round(COLUMNS * WIDTH) + 24, rows * LINE + 24
    light, dark = ("".join(map(".{}{{fill:{}}}".format, COLOURS, each)) for each in (LIGHT, DARK))
    style = [
        "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre;visibility:hidden}",
        f"text{{fill:#1f2328}}rect{{fill:#f6f8fa;stroke:#d1d9e0}}{light}.last{{visibility:visible}}.bold{{font-weight:bold}}",
        f"@media(prefers-color-scheme:dark){{text{{fill:#e6edf3}}rect{{fill:#161b22;stroke:#3d444d}}{dark}}}",
        f"@media(prefers-reduced-motion:no-preference){{text{{animation:{length:.1f}s step-end infinite}}}}",
    ]
    texts = []
    for number, each in enumerate(sorted(shown)):
        begin, end = (f"{100 * moment / length:.2f}%" for moment in (each.since, each.until))
        last = ' class="last"' * (each.until == length)
        after = "" if last else f"{end},to{{visibility:hidden}}"
        style.append(f"@keyframes k{number}{{0%{{visibility:hidden}}{begin}{{visibility:visible}}{after}}}")
        place = f'x="12" y="{each.row * LINE + 26}" style="animation-name:k{number}"{last}'
        texts.append(f"<text {place}>{coloured(each.line)}</text>")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    frame = f'<title>{COMMAND}</title><rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>'
    return "\n".join([head, "<style>", *style, "</style>", frame, *texts, "</svg>\n"])


def main() -> None:
    """Run the example with a home of its own and write the recording."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else KEPT
    with tempfile.TemporaryDirectory(prefix="howdah-") as folder, howdah_home(Path(folder) / "home"):
        target.write_text(draw(lines_in_time(screens(run_example(Path(folder)), folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
