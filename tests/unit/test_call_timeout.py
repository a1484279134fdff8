"""Tests that each of several reads in one thread has its own time limit, and that late results are dropped."""

from __future__ import annotations

import threading

import pytest

from howdah.storage.hdfs.call_timeout import CallTimeout, stream_with_timeout


def test_everything_is_taken_in_order() -> None:
    left = iter(range(1000))
    taken: list[int] = []
    stream_with_timeout(lambda: next(left, None), taken.append, 60)
    assert taken == list(range(1000))


def test_an_error_of_either_side_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        stream_with_timeout(lambda: 1 // 0, print, 60)
    with pytest.raises(KeyError):
        stream_with_timeout(lambda: 1, {}.__getitem__, 60)


def test_what_comes_after_the_limit_is_not_taken() -> None:
    release, gone = threading.Event(), threading.Event()
    taken: list[int] = []

    def read() -> int | None:
        release.wait(60)
        gone.set()
        return 2

    with pytest.raises(CallTimeout):
        stream_with_timeout(read, taken.append, 0.05)
    release.set()
    assert gone.wait(60), "the late read has not ended"
    stream_with_timeout(iter([3, None]).__next__, taken.append, 60)  # the worker may be used again, or another is
    assert taken == [3]
