"""Tests that answers are computed once a second, and that their version changes when they do."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

from howdah.api.response_cache import FRESH_S, MAX_BYTES, ResponseCache, unpack


class Maker:
    """Makes what it is told, and counts."""

    def __init__(self, value: Any) -> None:
        self.value, self.made = value, 0

    async def __call__(self) -> Any:
        self.made += 1
        return self.value


def get(rendered: ResponseCache, maker: Maker, version: int, now: float, asked: str = "/x") -> tuple[int, Any]:
    found, packed = asyncio.run(rendered.get(asked, version, now, maker))
    return found, json.loads(unpack(packed))


def test_a_response_is_made_when_the_source_has_changed_and_once_a_second_at_most() -> None:
    rendered, maker = ResponseCache(), Maker({"a": 1})
    assert get(rendered, maker, 5, 0.0) == (5, {"version": 5, "a": 1})
    assert get(rendered, maker, 5, 100.0) == (5, {"version": 5, "a": 1})
    maker.value = {"a": 2}
    assert get(rendered, maker, 6, 100.0)[0] == 6
    maker.value = {"a": 3}
    assert get(rendered, maker, 7, 100.0 + FRESH_S / 2) == (6, {"version": 6, "a": 2})
    assert get(rendered, maker, 7, 100.0 + FRESH_S) == (7, {"version": 7, "a": 3})
    assert maker.made == 3


def test_the_same_content_keeps_its_version() -> None:
    rendered, maker = ResponseCache(), Maker({})
    assert get(rendered, maker, 1, 0.0) == (1, {"version": 1})
    assert get(rendered, maker, 9, 10.0) == (1, {"version": 1})
    assert get(rendered, maker, 9, 10.1) == (1, {"version": 1})
    assert maker.made == 2


def test_the_least_recently_requested_responses_are_dropped_first() -> None:
    rendered = ResponseCache()
    large, small = Maker({"noise": random.Random(1).randbytes(MAX_BYTES // 3).hex()}), Maker({})
    get(rendered, small, 1, 0.0, "/small")
    for number in range(6):
        get(rendered, large, 1, 0.0, f"/{number}")
    get(rendered, small, 1, 0.0, "/small")
    assert list(rendered._answers) == ["/4", "/5", "/small"]
    assert rendered._bytes == sum(len(kept.packed) for kept in rendered._answers.values()) <= MAX_BYTES
