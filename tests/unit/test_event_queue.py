"""Tests the queue from which an allocator's `poll` returns events."""

from __future__ import annotations

import asyncio
import time

from howdah.engines.event_queue import EventQueue
from howdah.spec.events import Noted

FOREVER = 600.0


def test_events_come_once_and_a_note_once_a_topic() -> None:
    async def play() -> list[list[str]]:
        queue, found = EventQueue(), []

        async def advance() -> float:
            return FOREVER

        for _ in range(2):
            queue.note("no room", "room")
            queue.put(Noted(time.time(), "more"))
            found.append(
                [event.text for event in await queue.next_events(advance, FOREVER) if isinstance(event, Noted)]
            )
        queue.forget_note("room")
        queue.note("no room", "room")
        found.append([event.text for event in await queue.next_events(advance, FOREVER) if isinstance(event, Noted)])
        return found

    assert asyncio.run(play()) == [["no room", "more"], ["more"], ["no room"]]


def test_what_waits_looks_again_after_a_change_and_when_it_is_time() -> None:
    async def play() -> int:
        queue, looks = EventQueue(), 0

        async def advance() -> float:
            nonlocal looks
            looks += 1
            if looks == 1:
                asyncio.get_running_loop().call_soon(queue.wake)
                return FOREVER
            if looks == 3:
                queue.put(Noted(0.0, "done"))
            return 0.01

        assert await queue.next_events(advance, FOREVER)
        return looks

    assert asyncio.run(play()) == 3


def test_a_change_during_a_look_is_not_lost() -> None:
    async def play() -> int:
        queue, looks = EventQueue(), 0

        async def advance() -> float:
            nonlocal looks
            looks += 1
            if looks == 1:
                queue.wake()
                await asyncio.sleep(0)
            else:
                queue.put(Noted(0.0, "done"))
            return FOREVER

        await queue.next_events(advance, FOREVER)
        return looks

    assert asyncio.run(play()) == 2


def test_without_events_the_answer_comes_in_time() -> None:
    async def play() -> int:
        queue = EventQueue()

        async def advance() -> float:
            return FOREVER

        await queue.wait_while(lambda: True, 0.01, FOREVER)
        return len(await queue.next_events(advance, 0.01))

    assert asyncio.run(play()) == 0
