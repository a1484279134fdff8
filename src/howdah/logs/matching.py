"""Finds the next place in a buffer of log bytes that a query may match, at the speed of the C library."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping

from howdah.logs.levels import BEGINNINGS, DAY, LEVELS
from howdah.logs.query import LogQuery

NEWLINE = ord("\n")
Find = Callable[[bytearray, int, int], int]
"""`find(buffer, start, stop)` returns the offset of the first match, or -1."""


def line_finders(query: LogQuery) -> tuple[Find, Find]:
    """Return a function that finds the next match in a buffer, and one that must find a match in the same line, too."""
    text = query.text.encode()
    if not text:
        return _find_level(query.level), lambda _buffer, start, _stop: start
    find = _find_pattern(text) if query.regex else _find_text(text)
    return find, _find_level(query.level) if query.level else lambda _buffer, start, _stop: start


def _find_text(text: bytes) -> Find:
    import ctypes  # here, because the master imports this module and never searches

    memmem = _memmem()
    if memmem is None:
        return lambda buffer, start, stop: buffer.find(text, start, stop)

    def find(buffer: bytearray, start: int, stop: int) -> int:
        if start >= stop:
            return -1
        first = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        found = memmem(first + start, stop - start, text, len(text))
        return found - first if found else -1

    return find


@functools.lru_cache(None)
def _memmem() -> Callable[[int, int, bytes, int], int | None] | None:
    """Return the C library's search, which is twice as fast as Python's."""
    import ctypes

    try:
        memmem = ctypes.CDLL(None).memmem
    except (OSError, AttributeError):
        return None
    memmem.restype = ctypes.c_void_p
    memmem.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    return memmem


def _find_pattern(text: bytes) -> Find:
    pattern = re.compile(text, re.MULTILINE)

    def find(buffer: bytearray, start: int, stop: int) -> int:
        found = pattern.search(buffer, start, stop)
        return found.start() if found else -1

    return find


def _find_level(level: str) -> Find:
    """Return a function that finds the first word that gives a line this level, or a more severe one."""
    levels = [each for each in LEVELS if level in ("warning", each)]
    words = {word: _find_text(word) for each in levels for word in LEVELS[each]}
    beginnings = {start: _find_beginning(start) for each in levels for start in BEGINNINGS[each]}
    return _find_first({**words, **beginnings})


def _find_beginning(begin: bytes) -> Find:
    """Return a function that finds the first line of glog that begins with these two bytes."""
    find_next, pattern = _find_text(b"\n" + begin), re.compile(begin + DAY)

    def find(buffer: bytearray, start: int, stop: int) -> int:
        if (start == 0 or buffer[start - 1] == NEWLINE) and pattern.match(buffer, start, stop):
            return start
        at = find_next(buffer, start, stop)
        while at >= 0 and not pattern.match(buffer, at + 1, stop):
            at = find_next(buffer, at + 1, stop)
        return at + 1 if at >= 0 else -1

    return find


def _find_first(finders: Mapping[bytes, Find]) -> Find:
    """Return a function that finds the first of several words. Each word is searched once per buffer, which is ten
    times as fast as a regular expression."""
    known: dict[bytes, tuple[int, int]] = {}

    def find(buffer: bytearray, start: int, stop: int) -> int:
        if start == 0 or any(limit != stop for _, limit in known.values()):
            known.clear()
        best = -1
        for word, find_next in finders.items():
            at, _ = known.get(word, (-2, stop))
            if at == -2 or 0 <= at < start:
                at = find_next(buffer, start, stop)
                known[word] = (at, stop)
            if at >= 0 and (best < 0 or at < best):
                best = at
        return best

    return find
