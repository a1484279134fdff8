"""How often a stream is read."""

from __future__ import annotations

from howdah.executor.pace import BUSY, REST_S, Pace


def test_a_stream_that_is_written_to_now_and_then_is_read_at_once() -> None:
    pace = Pace()
    assert not any(pace.rest(number / BUSY) for number in range(BUSY * 3))


def test_a_chatty_one_rests_until_the_second_is_over() -> None:
    pace = Pace()
    rests = [pace.rest(number / 1000) for number in range(1000)]
    assert rests == [0.0] * BUSY + [REST_S] * (1000 - BUSY)
    assert pace.rest(1.0) == 0.0
