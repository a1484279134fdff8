"""Tests how many unauthenticated clients may be connected, and which of them are disconnected for others."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from howdah.api.connection_limits import LOG_AGAIN_S, ConnectionLimits, Limits


@dataclass(eq=False)
class Connection:
    peer: str
    limits: ConnectionLimits
    since: float = 0.0
    deadline: float = 10.0
    busy: bool = False
    stranger: bool = False
    open: bool = True

    def abort(self) -> None:
        self.open = False
        self.limits.remove(self)  # as when asyncio tells that it is closed


class World:
    """Connections, the time, and what the log was told."""

    def __init__(self, **limits: float) -> None:
        self.now, self.lines = 0.0, list[str]()
        self.limits = ConnectionLimits(Limits(**limits), self.lines.append, lambda: self.now)

    def connect(self, peer: str) -> Connection:
        made = Connection(peer, self.limits, self.now, self.now + 10)
        self.limits.add(made)
        return made

    def sweep(self, now: float) -> None:
        self.now = now
        self.limits.sweep(now)


def test_the_newest_gets_the_place_of_the_oldest_of_whom_has_most() -> None:
    world = World(strangers=10)
    first = world.connect("10.0.0.1")
    crowd = [world.connect("10.0.0.9") for _ in range(9)]
    newest = world.connect("10.0.0.9")
    assert [one.open for one in crowd] == [False] + [True] * 8
    assert first.open
    assert newest.open
    assert world.limits.count == 10
    for _ in range(100):
        world.connect("10.0.0.9")
    assert first.open
    assert world.limits.count == 10


def test_who_has_shown_who_it_is_takes_no_place() -> None:
    world = World(strangers=5)
    executors = [world.connect("10.0.0.9") for _ in range(5)]
    for one in executors:
        world.limits.identified(one, signed=True)
    for _ in range(50):
        world.connect("10.0.0.9")
    world.sweep(100.0)
    assert all(one.open for one in executors)
    assert world.limits.count == 0


def test_one_address_has_few_once_there_was_time_to_say_who_it_is() -> None:
    world = World(strangers=100, per_peer=3, settle_s=1.0)
    crowd = [world.connect("10.0.0.9") for _ in range(8)]
    other = world.connect("10.0.0.1")
    world.sweep(0.5)
    assert all(one.open for one in crowd)
    world.sweep(1.5)
    assert [one.open for one in crowd] == [False] * 5 + [True] * 3
    assert other.open


def test_who_is_overdue_is_closed() -> None:
    world = World()
    slow = world.connect("10.0.0.9")
    world.now = 5.0
    late = world.connect("10.0.0.9")
    world.sweep(9.9)
    assert slow.open
    world.sweep(10.1)
    assert (slow.open, late.open) == (False, True)


def test_connections_with_a_token_have_many_places_but_not_all() -> None:
    world = World(visitors=3)
    visitors = [world.connect("10.0.0.9") for _ in range(3)]
    for one in visitors:
        world.limits.identified(one, signed=False)
    visitors[0].busy = True
    fourth = world.connect("10.0.0.9")
    world.limits.identified(fourth, signed=False)
    assert [one.open for one in (*visitors, fourth)] == [True, False, True, True]


def test_a_closed_connection_leaves_nothing() -> None:
    world = World()
    for one in [world.connect(f"10.0.{number}.1") for number in range(100)]:
        one.abort()
    assert world.limits.count == 0
    assert not world.limits._strangers


@pytest.mark.parametrize("turned_away", [1, 1000])
def test_the_log_gets_one_line_a_minute_however_many_are_refused(turned_away: int) -> None:
    world = World()
    for _ in range(turned_away):
        world.limits.count_refusal("10.0.0.9", "not an HTTP/1.1 request line")
    assert len(world.lines) == 1
    assert "10.0.0.9" in world.lines[0]
    world.sweep(LOG_AGAIN_S / 2)
    assert len(world.lines) == 1
    world.sweep(LOG_AGAIN_S + 1)
    assert len(world.lines) == (1 if turned_away == 1 else 2)
    if turned_away > 1:
        assert f"{turned_away - 1} times: not an HTTP/1.1 request line" in world.lines[1]
