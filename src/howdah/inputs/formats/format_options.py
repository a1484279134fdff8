"""The options of a format, as text from a job file: every mistake in them is found at once, before anything is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from howdah.errors import Mistake, SpecError

_SIZE = re.compile(r"(\d+)\s*(?:([KMG])(?:iB|B)?|B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_ESCAPES = re.compile(r"\\(x[0-9a-fA-F]{2}|[\\nrt0])")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\"}
LARGEST_RECORD = 256 << 20


class FormatOptions:
    """Ask for each option by its type, then `end` says what was wrong."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {str(name): _written(value) for name, value in given.items()}
        self._known: set[str] = set()
        self._mistakes: list[Mistake] = []

    def text(self, name: str, default: str = "") -> str:
        """As it stands."""
        self._known.add(name)
        return self._given.get(name, default)

    def bytes(self, name: str, default: bytes = b"") -> bytes:
        r"""Characters, with `\n`, `\r`, `\t`, `\0`, `\\` and `\x1f` for those hard to write."""
        text = self.text(name)
        plain = _ESCAPES.sub(lambda found: _PLAIN.get(found[1]) or chr(int(found[1][1:], 16)), text)
        return plain.encode() or default

    def words(self, name: str) -> tuple[str, ...]:
        """`a, b`."""
        return tuple(word.strip() for word in self.text(name).split(",") if word.strip())

    def choice(self, name: str, allowed: Sequence[str], default: str = "") -> str:
        """One of `allowed`; the first of them, if there is no default."""
        value = self.text(name, default or allowed[0])
        if value not in allowed:
            self.wrong(name, f"is {value!r}, must be one of {', '.join(allowed)}")
            return allowed[0]
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """true or false."""
        return self.choice(name, ("true", "false"), "true" if default else "false") == "true"

    def number(self, name: str, default: int = 0, least: int = 1) -> int:
        """A whole number, `default` when it isn't given."""
        text = self.text(name)
        if not text:
            return default
        if not re.fullmatch(r"\d{1,18}", text) or int(text) < least:
            self.wrong(name, f"is {text!r}, must be a whole number, at least {least}")
            return default
        return int(text)

    def size(self, name: str, default: int) -> int:
        """Bytes, of `64MiB`, `1G` or a number of bytes."""
        text = self.text(name)
        match = _SIZE.fullmatch(text)
        if not text:
            return default
        if not match or int(match[1]) == 0:
            self.wrong(name, f"is {text!r}, must be a size, like 64MiB, 1GiB, or a number of bytes")
            return default
        return int(match[1]) * _UNITS[(match[2] or "").upper()]

    def max_record(self) -> int:
        """The longest record to accept, in bytes."""
        return self.size("max_record", LARGEST_RECORD)

    def wrong(self, name: str, problem: str) -> None:
        """Note a mistake."""
        self._mistakes.append(Mistake(f"options.{name}", problem))

    def end(self, format_name: str) -> None:
        """All options have been asked for.

        Raises:
            SpecError: some are wrong, or the format has no such option.
        """
        takes = f"takes {', '.join(sorted(self._known))}" if self._known else "takes none"
        for name in self._given:
            if name not in self._known:
                nearest = next(iter(get_close_matches(name, sorted(self._known), 1)), None)
                problem = f"is no option of {format_name}, which {takes}"
                self._mistakes.append(Mistake(f"options.{name}", problem, nearest))
        if self._mistakes:
            raise SpecError(self._mistakes)


def _written(value: object) -> str:
    """YAML reads `true` and `3` as other than text."""
    return str(value).lower() if isinstance(value, bool) else str(value)
