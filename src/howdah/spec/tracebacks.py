"""Finds what the last lines of a failed Python program say: its exception, and the frames of the user's own code."""

from __future__ import annotations

import re
from typing import List, Sequence

_RANK = re.compile(r"^\[(?:rank)?\d+\]:? ?")  # which torch puts before each line
_BEGIN = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s+File "([^"]+)", line \d+')
_NAMED = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit)(?:: .*)?")
_LIBRARY = re.compile(r"[/\\](?:site-packages|dist-packages|lib[/\\]python3[^/\\]*)[/\\]|^<")
MAX_LETTERS = 300


def exception_line(lines: Sequence[str]) -> str:
    """Return the line with the exception that ended the program, without the frames before it; "" if there is none."""
    found, in_frames = "", False
    for line in (_RANK.sub("", line) for line in lines):
        if line.strip() == _BEGIN:
            in_frames = True
        elif in_frames and line[:1].strip():
            found, in_frames = line, False
        elif not in_frames and _NAMED.fullmatch(line):  # the traceback may have begun above the lines
            found = line
    return found[:MAX_LETTERS]


def user_frames(lines: Sequence[str]) -> List[int]:
    """Return the numbers, from 0, of the lines about frames that are in no library: the place, and the source line."""
    found: List[int] = []
    for number, line in enumerate(_RANK.sub("", line) for line in lines):
        frame = _FRAME.match(line)
        if frame is not None and not _LIBRARY.search(frame[1]):
            found.append(number)
            following = _RANK.sub("", lines[number + 1]) if number + 1 < len(lines) else ""
            if following.startswith("    ") and not _FRAME.match(following):
                found.append(number + 1)
    return found
