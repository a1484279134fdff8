"""Tests that each of several reads in one thread has its own time limit, and that late results are dropped."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from howdah.storage.hdfs.call_timeout import CallTimeout, start_call, stream_with_timeout


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


def test_the_limit_holds_though_a_signal_is_handled_while_it_passes() -> None:
    release = threading.Event()
    in_vain = threading.Timer(30, release.set)
    before = signal.signal(signal.SIGALRM, lambda number, frame: time.sleep(0.2))
    in_vain.start()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(CallTimeout):
            start_call(lambda: release.wait(60)).result(0.1)
    finally:
        signal.signal(signal.SIGALRM, before)
        in_vain.cancel()
        release.set()
