"""Tests how often a program's output is read."""

from __future__ import annotations

from howdah.executor.process.read_throttle import BURST, REST_S, ReadThrottle

ROOM = 1 << 20


def test_what_is_printed_now_and_then_is_read_at_once() -> None:
    pace = ReadThrottle(ROOM)
    assert not any(pace.pause_s(number * REST_S, 100) for number in range(1000))


def test_a_burst_is_read_at_once_and_chatter_now_and_then() -> None:
    pace = ReadThrottle(ROOM)
    assert [pace.pause_s(number / 1000, 100) for number in range(BURST)] == [0.0] * BURST
    now, reads = 1.0, 0
    while now < 101.0:
        now, reads = now + max(0.001, pace.pause_s(now, 100)), reads + 1
    assert 100 / REST_S <= reads <= 1.2 * 100 / REST_S


def test_silence_earns_bursts_again() -> None:
    pace = ReadThrottle(ROOM)
    rests = [pace.pause_s(number / 1000, 100) for number in range(BURST + 20)]
    assert rests[-1] == REST_S
    assert pace.pause_s(100.0, 100) == 0.0


def test_the_pipe_is_not_left_to_fill() -> None:
    """Of a program that prints 10 MB/s: what comes during a rest is less than there is room for."""
    pace, now, size = ReadThrottle(1 << 16), 0.0, 100
    for _ in range(1000):
        rest = max(0.0005, pace.pause_s(now, size))
        now, size = now + rest, int(rest * 10e6)
    assert size < 1 << 16
