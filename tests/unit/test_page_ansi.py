"""Tests the colours of log lines on the page: which escapes are heeded, and that the text can be read."""

from __future__ import annotations

import re
from typing import Any

import pytest
from page_script import called

SCRIPT = "logs/ansi.ts"
RED, GREEN = [205, 0, 0], [0, 205, 0]
BACKGROUNDS = {False: ["#ffffff", "#eef1f4"], True: ["#181c20", "#23282e"]}
"""What a line stands on in the light theme and in the dark one (frontend/src/theme.ts): `--surface` and `--raised`."""


def parsed(line: str) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """The text of a line, and its styled parts."""
    (found,) = called("logs/logLines.ts", "parseLine", [line])
    return found["text"], [(found["text"][run["from"] : run["to"]], run["style"]) for run in found["runs"]]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("a\x1b[31mb\x1b[0mc", [("b", {"colour": RED})]),
        ("\x1b[1;32mok\x1b[22m on\x1b[m off", [("ok", {"colour": GREEN, "bold": True}), (" on", {"colour": GREEN})]),
        ("\x1b[4mu\x1b[24mn", [("u", {"underline": True})]),
        ("\x1b[41mx\x1b[49my", [("x", {"background": RED})]),
        ("\x1b[91mx", [("x", {"colour": [255, 0, 0]})]),
        ("\x1b[38;5;208mx", [("x", {"colour": [255, 135, 0]})]),
        ("\x1b[48;5;244mx", [("x", {"background": [128, 128, 128]})]),
        ("\x1b[38;2;1;2;3mx", [("x", {"colour": [1, 2, 3]})]),
        ("\x1b[38:2::1:2:3mx\x1b[38:5:1my", [("x", {"colour": [1, 2, 3]}), ("y", {"colour": RED})]),
        ("\x1b[38;5;999mx\x1b[38;7mz\x1b[38m", []),
        ("50%\r\x1b[32m100%\x1b[0m\r", [("100%", {"colour": GREEN})]),
        ("\x1b[2J\x1b]0;title\x07\x1b[3Ax\x1b[3", []),
    ],
)
def test_what_a_line_looks_like(line: str, parts: list[tuple[str, dict[str, Any]]]) -> None:
    text, found = parsed(line)
    assert "\x1b" not in text
    assert "title" not in text
    assert found == parts


def test_a_long_coloured_line_is_cut_with_its_colours() -> None:
    text, parts = parsed("\x1b[31m" + "x" * 9000 + "\x1b[0m<b>")
    assert text.startswith("x" * 4000)
    assert text.endswith("… (+5003)")
    assert parts == [("x" * 4000, {"colour": RED})]


@pytest.mark.parametrize("dark", [False, True])
def test_every_colour_can_be_read(dark: bool) -> None:
    lines = [f"\x1b[38;5;{number}mx" for number in range(256)]
    lines += [f"\x1b[48;5;{number}mx" for number in range(256)]
    lines += [f"\x1b[38;5;{(7 * number) % 256};48;5;{number}mx" for number in range(256)]
    styles = [runs[0]["style"] for runs in called(SCRIPT, "styledRuns", lines)]
    for line, css in zip(lines, called(SCRIPT, "styleToCss", [[style, dark] for style in styles]), strict=True):
        for background in [css["backgroundColor"]] if "backgroundColor" in css else BACKGROUNDS[dark]:
            assert contrast(numbers(css["color"]), numbers(background)) >= 4.5, (line, css)


def numbers(colour: str) -> list[int]:
    if colour.startswith("#"):
        return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return [int(part) for part in re.findall(r"\d+", colour)]


def contrast(one: list[int], other: list[int]) -> float:
    """As WCAG 2 defines it."""
    low, high = sorted(luminance(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: list[int]) -> float:
    linear = [value / 255 / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4 for value in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
