"""Calls into a library that may never return: each is made by a thread that nobody waits for longer than a limit.

A thread that is stuck stays behind, alone: it is a daemon, so it keeps no process from ending.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class CallTimeout(Exception):
    """The call has not returned within its limit, and may never."""


class _Worker:
    """One thread; it goes back to the idle ones by itself when its call has returned, however late."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], queue.SimpleQueue[Any]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True, name="bounded").start()

    def give(self, call: Callable[[], Any], answer: queue.SimpleQueue[Any]) -> None:
        self._calls.put((call, answer))

    def _run(self) -> None:
        while True:
            call, answer = self._calls.get()
            try:
                result = True, call()
            except BaseException as error:  # the library's panics are no Exception
                result = False, error
            _idle.append(self)
            answer.put(result)
            del call, answer, result  # while idle, it keeps nothing alive


# Appending and popping a list are atomic.
_idle: list[_Worker] = []
os.register_at_fork(after_in_child=_idle.clear)


def call_with_timeout(function: Callable[[], T], limit_s: float) -> T:
    """What `function()` returns or raises, if it does so within `limit_s`.

    Raises:
        Overdue: it does not; it goes on in the background.
    """
    answer = _begun(function)
    try:
        returned, value = answer.get(timeout=limit_s)
    except queue.Empty:
        raise CallTimeout from None
    if not returned:
        raise value
    return value  # type: ignore[no-any-return]


def stream_with_timeout(read: Callable[[], T | None], take: Callable[[T], object], limit_s: float) -> None:
    """Hand what `read()` returns to `take`, until that is None, all in one thread: handing over costs as much as
    reading a megabyte. No read may last longer than `limit_s`; what one brings that does is not taken any more.

    Raises:
        Overdue: one does, and goes on in the background.
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

    answer = _begun(run)
    while True:
        try:
            returned, error = answer.get(timeout=max(0.01, moved + limit_s - time.monotonic()))
        except queue.Empty:
            with lock:
                over = time.monotonic() - moved >= limit_s
            if over:
                raise CallTimeout from None
        else:
            if not returned:
                raise error
            return


def _begun(function: Callable[[], Any]) -> queue.SimpleQueue[Any]:
    answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    worker.give(function, answer)
    return answer
