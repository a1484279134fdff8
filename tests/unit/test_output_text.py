"""Tests that what programs print is shown as a terminal would show it, and can't control the reader's terminal."""

from __future__ import annotations

import io
import re

import pytest

from howdah.cli.terminal import BAR_S, Plain
from howdah.client.follow import Update
from howdah.logs.output_text import readable
from howdah.spec import JobReport, State, TaskId
from howdah.spec.view import JobView

TASK = TaskId("worker", 0)


@pytest.mark.parametrize(
    ("line", "plain", "coloured"),
    [
        (b"plain \xe4\xb8\xad\ttext", "plain 中\ttext", "plain 中\ttext"),
        (b"\r 10%\r 20%\r", " 20%", " 20%"),
        (b"done\r", "done", "done"),
        (b"\x1b[32mINFO\x1b[0m ready", "INFO ready", "\x1b[32mINFO\x1b[0m ready\x1b[0m"),
        (b"\x1b[1;38;5;9mred", "red", "\x1b[1;38;5;9mred\x1b[0m"),
        (b"\x1b[2K\x1b[1A up", " up", " up"),
        (b"\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link", "textlink", "textlink"),
        (b"bell \x07, odd \xff", "bell \\x07, odd \\xff", "bell \\x07, odd \\xff"),
        (b"cut \x1b[31", "cut ", "cut "),
        (b"cut \x1b]0;tit", "cut ", "cut "),
        (b"cut \x1b", "cut ", "cut "),
    ],
)
def test_a_line(line: bytes, plain: str, coloured: str) -> None:
    assert readable(line) == plain
    assert readable(line, colours=True) == coloured


class Shown:
    """What is printed of one task's standard error, with a clock of its own."""

    def __init__(self) -> None:
        self.out, self.now = io.StringIO(), 100.0
        self.screen = Plain(self.out, lambda: self.now)

    def print(self, data: bytes, after_s: float = 0.0) -> list[str]:
        """Return the lines that are new when this has come."""
        self.now += after_s
        before = len(self.out.getvalue())
        report = JobReport("j", "", State.RUNNING, "local")
        self.screen.show(Update(JobView(), report, [], [(TASK, "stderr", data)] if data else []))
        return self.out.getvalue()[before:].splitlines()


def test_a_progress_bar_is_shown_while_it_grows() -> None:
    shown = Shown()
    assert shown.print(b"\r  0%") == ["worker:0 !   0%"]
    assert shown.print(b"\r 10%\r 2") == []
    assert shown.print(b"0%", after_s=BAR_S / 2) == []
    assert shown.print(b"", after_s=BAR_S / 2) == ["worker:0 !  20%"]
    assert shown.print(b"", after_s=BAR_S) == []
    assert shown.print(b"\r100%\r", after_s=BAR_S) == ["worker:0 ! 100%"]
    assert shown.print(b"\nnext\n") == ["worker:0 ! next"]


def test_a_bar_that_ends_otherwise_than_it_was_shown_has_its_end() -> None:
    shown = Shown()
    assert shown.print(b"\r 10%") == ["worker:0 !  10%"]
    assert shown.print(b"\r100%\n") == ["worker:0 ! 100%"]


def test_a_bar_takes_no_more_memory_the_longer_it_runs() -> None:
    shown = Shown()
    for number in range(2000):
        shown.print(b"\r" + b"%5d " % number * 20)
    assert sum(map(len, shown.screen._rest.values())) < 500


def test_lines_without_carriage_returns_are_printed_when_they_are_whole() -> None:
    shown = Shown()
    assert shown.print(b"half") == []
    assert shown.print(b"", after_s=10 * BAR_S) == []
    assert shown.print(b" and half\r\n") == ["worker:0 ! half and half"]
    assert shown.print(b"\n\nsame\nsame\n") == ["worker:0 ! ", "worker:0 ! ", "worker:0 ! same", "worker:0 ! same"]
    assert not re.search("[\x00-\x09\x1b]", shown.out.getvalue())
