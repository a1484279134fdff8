"""Parses a range of ports as people write it: `20000-30000`, both ends included."""

from __future__ import annotations

import re
from typing import Iterator, Sequence

from howdah.errors import Mistake

_RANGE = re.compile(r"([0-9]{4,5})-([0-9]{4,5})")
_ALLOWED = "must be two ports from 1024 to 65535, the lower first, such as 20000-30000"


def ports(text: str) -> Sequence[int]:
    """Return the ports of the range; none for an empty text.

    Raises:
        ValueError: `text` is no range of ports that users may have; the message says what is allowed.
    """
    match = _RANGE.fullmatch(text)
    first, last = (int(match[1]), int(match[2])) if match else (0, 0)
    if text and not 1024 <= first <= last <= 65535:
        raise ValueError(_ALLOWED)
    return range(first, last + 1) if text else ()


def mistakes(place: str, text: str) -> Iterator[Mistake]:
    """Find what is wrong with the range."""
    try:
        ports(text)
    except ValueError as error:
        yield Mistake(place, f"is {text!r}, {error}")
