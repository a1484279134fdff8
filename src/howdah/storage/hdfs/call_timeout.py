"""Calls a library that may never return, in threads for which the caller waits no longer than a limit.

A thread that is stuck is left alone. It is a daemon thread, so it does not keep the process from ending.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class CallTimeout(Exception):
    """The call has not returned within its limit, and may never."""


class _Answer:
    """Whether a call returned, and then its result or error.

    `queue.SimpleQueue` can't do this: up to Python 3.12 its `get` waits without end when a signal comes just before the
    limit and the limit has passed after the signal's handler.
    """

    def __init__(self) -> None:
        self._result: tuple[bool, Any] | None = None
        self._is_there = threading.Lock()
        self._is_there.acquire()

    def put(self, result: tuple[bool, Any]) -> None:
        self._result = result
        self._is_there.release()

    def get(self, limit_s: float) -> tuple[bool, Any] | None:
        """Return the answer; None if it is not there after `limit_s` seconds."""
        if self._result is None and self._is_there.acquire(timeout=limit_s):
            self._is_there.release()
        return self._result


class _Worker:
    """One thread. It becomes idle again by itself when its call has returned, however late."""

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[tuple[Callable[[], Any], _Answer]] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True, name="bounded").start()

    def _run(self) -> None:
        while True:
            call, answer = self.calls.get()
            try:
                result = True, call()
            except BaseException as error:  # the library's panics are not of class Exception
                result = False, error
            _idle.append(self)
            answer.put(result)
            del call, answer, result  # while idle, it keeps nothing alive


# Appending and popping a list are atomic.
_idle: list[_Worker] = []
os.register_at_fork(after_in_child=_idle.clear)


class Call(Generic[T]):
    """A call of a function in another thread; any thread may wait for it."""

    def __init__(self, answer: _Answer) -> None:
        self._answer = answer
        self._result: tuple[bool, Any] | None = None

    @property
    def has_result(self) -> bool:
        """Return whether the function has returned or raised an error."""
        return self._result is not None

    def result(self, limit_s: float) -> T:
        """Return the function's result, or raise its error, within `limit_s` from now.

        Raises:
            CallTimeout: it needs longer, and goes on in the background.
        """
        self._result = self._answer.get(limit_s)
        if self._result is None:
            raise CallTimeout
        returned, value = self._result
        if not returned:
            raise value
        return value  # type: ignore[no-any-return]


def start_call(function: Callable[[], T]) -> Call[T]:
    """Call `function` in another thread, and return at once."""
    return Call(_start(function))


def call_with_timeout(function: Callable[[], T], limit_s: float) -> T:
    """Call `function()`; return its result, or raise its error, within `limit_s`.

    Raises:
        CallTimeout: it needs longer, and goes on in the background.
    """
    return start_call(function).result(limit_s)


def stream_with_timeout(read: Callable[[], T | None], take: Callable[[T], object], limit_s: float) -> None:
    """Pass the results of `read()` to `take` until `read()` returns None. One thread does all of it, because switching
    threads costs as much as reading a megabyte. The result of a read that ends after `limit_s` is not passed on.

    Raises:
        CallTimeout: a read needs longer than `limit_s`, and goes on in the background.
    """
    moved, over, lock = time.monotonic(), False, threading.Lock()

    def run() -> None:
        nonlocal moved
        while (item := read()) is not None:
            with lock:
                if over:
                    return
                take(item)
                moved = time.monotonic()

    answer = _start(run)
    while True:
        ended = answer.get(max(0.01, moved + limit_s - time.monotonic()))
        if ended is None:
            with lock:
                over = time.monotonic() - moved >= limit_s
            if over:
                raise CallTimeout
        else:
            returned, error = ended
            if not returned:
                raise error
            return


def _start(function: Callable[[], Any]) -> _Answer:
    answer = _Answer()
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    worker.calls.put((function, answer))
    return answer
