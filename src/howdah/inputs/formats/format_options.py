"""Parses the options of a format. All mistakes in them are reported at once, before anything is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from howdah.errors import Mistake, SpecError

_SIZE = re.compile(r"(\d+)\s*(?:([KMG])(?:iB|B)?|B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_ESCAPES = re.compile(r"\\(x[0-9a-fA-F]{2}|[\\nrt0])")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\"}
MAX_RECORD = 256 << 20


class FormatOptions:
    """Parses options: a format calls a method for each of its options, then `finish`, which raises an error with all
    mistakes."""

    def __init__(self, options: Mapping[str, str]) -> None:
        # YAML reads `true` and `3` as other than text.
        self._options = {
            str(name): str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()
        }
        self._known: set[str] = set()
        self._mistakes: list[Mistake] = []

    def text(self, name: str, default: str = "") -> str:
        """Return the option as it is written."""
        self._known.add(name)
        return self._options.get(name, default)

    def bytes(self, name: str, default: bytes = b"") -> bytes:
        r"""Return characters, with `\n`, `\r`, `\t`, `\0`, `\\` and `\x1f` for those that are hard to write."""
        text = self.text(name)
        plain = _ESCAPES.sub(lambda found: _PLAIN.get(found[1]) or chr(int(found[1][1:], 16)), text)
        return plain.encode() or default

    def names(self, name: str) -> tuple[str, ...]:
        """Return the names in a comma-separated list."""
        return tuple(each.strip() for each in self.text(name).split(",") if each.strip())

    def choice(self, name: str, allowed: Sequence[str], default: str = "") -> str:
        """Return one of `allowed`; the first of them if there is no default."""
        value = self.text(name, default or allowed[0])
        if value not in allowed:
            self.add_mistake(name, f"is {value!r}, must be one of {', '.join(allowed)}")
            return allowed[0]
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """Return whether the option is true."""
        return self.choice(name, ("true", "false"), "true" if default else "false") == "true"

    def number(self, name: str, default: int = 0, minimum: int = 1) -> int:
        """Return a whole number; `default` when the option is absent."""
        text = self.text(name)
        if not text:
            return default
        if not re.fullmatch(r"\d{1,18}", text) or int(text) < minimum:
            self.add_mistake(name, f"is {text!r}, must be a whole number, at least {minimum}")
            return default
        return int(text)

    def size(self, name: str, default: int) -> int:
        """Return the bytes of `64MiB`, `1G` or a number of bytes."""
        text = self.text(name)
        match = _SIZE.fullmatch(text)
        if not text:
            return default
        if not match or int(match[1]) == 0:
            self.add_mistake(name, f"is {text!r}, must be a size, like 64MiB, 1GiB, or a number of bytes")
            return default
        return int(match[1]) * _UNITS[(match[2] or "").upper()]

    def max_record(self) -> int:
        """Return the greatest length of a record, in bytes."""
        return self.size("max_record", MAX_RECORD)

    def add_mistake(self, name: str, problem: str) -> None:
        """Add a mistake in an option."""
        self._mistakes.append(Mistake(f"options.{name}", problem))

    def finish(self, format_name: str) -> None:
        """Raise the mistakes, after all known options were read.

        Raises:
            SpecError: options are wrong, or the format has no such option.
        """
        known = f"takes {', '.join(sorted(self._known))}" if self._known else "takes none"
        for name in self._options:
            if name not in self._known:
                nearest = next(iter(get_close_matches(name, sorted(self._known), 1)), None)
                problem = f"is not an option of {format_name}, which {known}"
                self._mistakes.append(Mistake(f"options.{name}", problem, nearest))
        if self._mistakes:
            raise SpecError(self._mistakes)
