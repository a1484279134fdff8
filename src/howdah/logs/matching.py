"""Finds the next place in a buffer of log bytes that a query may match, at the speed of the C library."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping

from howdah.logs.levels import BEGINNINGS, DAY, LEVELS
from howdah.logs.query import LogQuery

NEWLINE = ord("\n")
Find = Callable[[bytearray, int, int], int]
"""`find(buffer, start, stop)` returns the first place, or -1."""


def line_finders(query: LogQuery) -> tuple[Find, Find]:
    """Return what finds the next place in a buffer, and what a line with such a place must hold besides."""
    text = query.text.encode()
    if not text:
        return _of_level(query.level), lambda _buffer, start, _stop: start
    find = _matching(text) if query.regex else _holding(text)
    return find, _of_level(query.level) if query.level else lambda _buffer, start, _stop: start


def _holding(text: bytes) -> Find:
    import ctypes  # the master knows this module, and never searches

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


def _matching(text: bytes) -> Find:
    pattern = re.compile(text, re.MULTILINE)

    def find(buffer: bytearray, start: int, stop: int) -> int:
        found = pattern.search(buffer, start, stop)
        return found.start() if found else -1

    return find


def _of_level(level: str) -> Find:
    """Find the first place that gives a line this level, or a worse one."""
    levels = [one for one in LEVELS if level in ("warning", one)]
    finders = {word: _holding(word) for one in levels for word in LEVELS[one]}
    begins = {start: _beginning(start) for one in levels for start in BEGINNINGS[one]}
    return _any({**finders, **begins})


def _beginning(start: bytes) -> Find:
    """Find the first line that begins as one of glog's, with these two bytes."""
    next_of, pattern = _holding(b"\n" + start), re.compile(start + DAY)

    def find(buffer: bytearray, place: int, stop: int) -> int:
        if (place == 0 or buffer[place - 1] == NEWLINE) and pattern.match(buffer, place, stop):
            return place
        at = next_of(buffer, place, stop)
        while at >= 0 and not pattern.match(buffer, at + 1, stop):
            at = next_of(buffer, at + 1, stop)
        return at + 1 if at >= 0 else -1

    return find


def _any(finders: Mapping[bytes, Find]) -> Find:
    """Find the first of several words: each is searched once per buffer, ten times as fast as by an expression."""
    known: dict[bytes, tuple[int, int]] = {}

    def find(buffer: bytearray, start: int, stop: int) -> int:
        if start == 0 or any(limit != stop for _, limit in known.values()):
            known.clear()
        best = -1
        for word, next_of in finders.items():
            at, _ = known.get(word, (-2, stop))
            if at == -2 or 0 <= at < start:
                at = next_of(buffer, start, stop)
                known[word] = (at, stop)
            if at >= 0 and (best < 0 or at < best):
                best = at
        return best

    return find
