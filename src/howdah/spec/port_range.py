"""A range of ports as people write it: `20000-30000`, both ends included."""

from __future__ import annotations

import re
from typing import Iterator, Sequence

from howdah.errors import Mistake

_RANGE = re.compile(r"([0-9]{4,5})-([0-9]{4,5})")
_ALLOWED = "must be two ports from 1024 to 65535, the lower first, such as 20000-30000"


def ports(text: str) -> Sequence[int]:
    """Those of the range; none where there is no text.

    Raises:
        ValueError: it is no range of ports that users may have; says what is allowed.
    """
    match = _RANGE.fullmatch(text)
    first, last = (int(match[1]), int(match[2])) if match else (0, 0)
    if text and not 1024 <= first <= last <= 65535:
        raise ValueError(_ALLOWED)
    return range(first, last + 1) if text else ()


def mistakes(place: str, text: str) -> Iterator[Mistake]:
    """What is wrong with it."""
    try:
        ports(text)
    except ValueError as error:
        yield Mistake(place, f"is {text!r}, {error}")
