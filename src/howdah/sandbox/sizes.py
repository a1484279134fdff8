"""Checks the requested shape of a sandbox, and describes how it differs from that of the running one."""

from __future__ import annotations

from collections.abc import Mapping

from howdah.errors import Mistake


def size_mistakes(shape: object, minimum: Mapping[str, int], maximum: Mapping[str, int]) -> list[Mistake]:
    """Return a mistake for each field of the shape that is below its minimum or above its maximum."""
    values = vars(shape)
    low = [Mistake(n, f"is {values[n]}, must be at least {limit}") for n, limit in minimum.items() if values[n] < limit]
    high = [Mistake(n, f"is {values[n]}, must be at most {limit}") for n, limit in maximum.items() if values[n] > limit]
    return low + high


def describe_difference(found: object, asked: object) -> str:
    """Return `nodes 3 (asked for: 5)` for every field of two shapes that differs."""
    pairs = ((name, value, getattr(asked, name)) for name, value in vars(found).items())
    return ", ".join(f"{name} {value} (asked for: {other})" for name, value, other in pairs if value != other)
