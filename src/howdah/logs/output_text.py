"""Shows a program's output as a terminal would: the newest state of a line, colours if there are colours, and nothing
that controls the terminal. Executors use it, too, which have Python 3.7."""

from __future__ import annotations

import re
import unicodedata

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
# Also one that the end of the line has cut off.
_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*(?:[@-~]|\Z)|\][^\x07\x1b]*(?:\x07|\x1b\\|\x1b?\Z)|[@-Z\\^_=>]|\Z)")
_CONTROL_BYTES = re.compile(_CONTROL.pattern.encode())
_RESET = "\x1b[0m"


def readable(line: bytes, colours: bool = False) -> str:
    """Return a line of a program's output as text.

    If parts of the line overwrite each other, after carriage returns, only the last one is kept. With `colours` colours
    stay, and end with the line. Bytes that are not UTF-8 or would control the terminal are escaped.
    """
    text = newest(line).decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    shown, at = [], 0
    for found in _CONTROL.finditer(text):
        shown.append(_escaped(text[at : found.start()]))
        if colours and _COLOUR.fullmatch(found[0]):
            shown.append(found[0])
        at = found.end()
    plain = "".join([*shown, _escaped(text[at:])])
    return plain + _RESET if "\x1b" in plain else plain


def plain(line: bytes) -> bytes:
    """Return the readable text of a line: its newest state on a terminal, without colours and other controls."""
    if b"\x1b" not in line and b"\r" not in line:
        return line
    return _CONTROL_BYTES.sub(b"", newest(line)).rstrip(b"\r")


def newest(line: bytes) -> bytes:
    """Return the newest state of a line on a terminal: the part after the last carriage return that is followed by
    something."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or _is_harmless(char) else repr(char)[1:-1] for char in text)


def _is_harmless(char: str) -> bool:
    """Return whether a terminal merely shows a letter that Python calls not printable, such as wide spaces of Chinese
    texts, and joiners in emoji. Characters that change the direction of writing are not harmless."""
    return char in "\t\u00ad\u200c\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
