"""Tests how long a master stays for pages that are open at its job's end. tests/browser tests that it stays."""

from __future__ import annotations

import asyncio
import time

import pytest

from howdah.master.server.open_pages import HIDDEN_S, VISIBLE_S, OpenPages


@pytest.mark.parametrize(
    ("questions", "visible", "open_"),
    [
        ([(False, 100.0)], 100 + VISIBLE_S, 100 + VISIBLE_S),
        ([(False, 100.0), (False, 103.0)], 103 + VISIBLE_S, 103 + VISIBLE_S),
        ([(False, 100.0), (True, 102.0)], 100 + VISIBLE_S, 102 + HIDDEN_S),
        ([(True, 100.0), (False, 170.0)], 170 + VISIBLE_S, 170 + VISIBLE_S),
    ],
)
def test_a_page_is_open_until_it_would_have_asked_again(
    questions: list[tuple[bool, float]], visible: float, open_: float
) -> None:
    pages = OpenPages()
    for hidden, now in questions:
        pages.note_request(hidden, now)
    assert (pages.visible_until(), pages.open_until()) == (visible, open_)


def test_without_an_open_page_the_master_does_not_wait() -> None:
    async def run() -> None:
        pages = OpenPages()
        pages.note_request(False, time.monotonic() - VISIBLE_S)
        await pages.wait_until_closed()
        await pages.wait_until_seen()

    asyncio.run(asyncio.wait_for(run(), 60.0))


def test_a_master_that_was_told_to_end_does_not_wait() -> None:
    async def run() -> None:
        pages = OpenPages()
        pages.note_request(False, time.monotonic() + 1000)
        waiting = asyncio.ensure_future(pages.wait_until_closed())
        await asyncio.sleep(0)
        assert not waiting.done()
        pages.dismiss()
        await waiting
        await pages.wait_until_seen()

    asyncio.run(asyncio.wait_for(run(), 60.0))
