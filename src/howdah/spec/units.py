"""Parses and writes memory and durations as people write them."""

from __future__ import annotations

import math
import re

# At most 18 digits: a longer text is not meant as a number, and results of calculations must stay numbers.
MEMORY = re.compile(r"(-?\d{1,18}(?:\.\d+)?)\s*(?:([KMGT])(?:iB)?)?", re.IGNORECASE)
LATEST_S = 1e11
"""The latest valid moment, in epoch seconds: no calendar can show a moment that a damaged number may stand for."""
_MIB = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}
_PART = r"\d+(?:\.\d+)?\s*(?:ms|s|min|m|h|d)"
DURATION = re.compile(rf"-?(?:{_PART}\s*)+")
_SECONDS = {"ms": 0.001, "s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}


def memory_mib(text: str) -> int:
    """Return the MiB of `2GiB`, `2G`, `1.5g`, `512MiB`, `2048` (MiB). Parts of a MiB are rounded up.

    Raises:
        ValueError: the text is no memory size; the message says how one is written.
    """
    match = MEMORY.fullmatch(text.strip())
    if not match:
        raise ValueError("must be memory, like 2GiB, 512MiB, 1.5G, or a number of MiB")
    return math.ceil(float(match[1]) * _MIB[(match[2] or "M").upper()])


def seconds(text: str) -> float:
    """Return the seconds of `30s`, `10min`, `2h`, `1d`, `1h30min`, `250ms`, or a number of seconds.

    Raises:
        ValueError: the text is no duration; the message says how one is written.
    """
    text = text.strip()
    if re.fullmatch(r"-?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", text, re.IGNORECASE):
        return float(text)
    if not DURATION.fullmatch(text):
        raise ValueError("must be a duration, like 30s, 10min, 2h, 1d, or a number of seconds")
    parts = re.findall(r"([\d.]+)\s*([a-z]+)", text)
    return (-1 if text[0] == "-" else 1) * sum(float(number) * _SECONDS[unit] for number, unit in parts)


def memory_text(mib: int) -> str:
    """Return the shortest exact text for `mib`, as job files have it."""
    return f"{mib // 1024}GiB" if mib and mib % 1024 == 0 else f"{mib}MiB"


def format_memory(mib: int) -> str:
    """Return an amount of memory as people read it: `4 GiB`, `1.5 GiB`, `512 MiB`."""
    return f"{round(mib / 1024, 1):g} GiB" if mib >= 1024 else f"{mib} MiB"


def duration_text(value: float) -> str:
    """Return the shortest exact text for `value` seconds; a bare number where no unit divides it."""
    for unit in ("d", "h", "min", "s"):
        count = round(value / _SECONDS[unit])
        if count and count * _SECONDS[unit] == value:
            return f"{count}{unit}"
    return repr(float(value))
