"""Tests that copying leaves CPU cores to the program beside it."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from howdah.storage import cpu_throttle
from howdah.storage.cpu_throttle import CpuThrottle, copy_throttled
from howdah.storage.filesystem import CHUNK

MIB = 1 << 20


class Clock:
    """What a process and its threads spent, told by the test; sleeping passes time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.ran = self.waited = 0.0
        self.slept: list[float] = []
        monkeypatch.setattr(cpu_throttle.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(cpu_throttle.time, "process_time", lambda: self.ran)
        monkeypatch.setattr(cpu_throttle.time, "sleep", self._sleep)
        monkeypatch.setattr(cpu_throttle, "_cpu_wait_s", lambda: self.waited)
        monkeypatch.setattr(cpu_throttle.os, "sched_setscheduler", lambda *_: None)
        monkeypatch.setattr(cpu_throttle.os, "sched_getaffinity", lambda _: {0, 1})

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def work(self, ran: float, waited: float) -> None:
        self.ran, self.waited, self.now = self.ran + ran, self.waited + waited, self.now + ran + waited


def test_idle_cores_are_used(monkeypatch: pytest.MonkeyPatch):
    clock = Clock(monkeypatch)
    mine = CpuThrottle(cpu_throttle.SHARE)
    for _ in range(100):
        clock.work(ran=0.010, waited=0.001)
        mine.throttle()
    assert clock.slept == []


def test_of_cores_that_are_wanted_a_small_share_is_used(monkeypatch: pytest.MonkeyPatch):
    clock = Clock(monkeypatch)
    mine = CpuThrottle(cpu_throttle.SHARE)
    for _ in range(100):
        clock.work(ran=0.010, waited=0.1)
        mine.throttle()
    assert clock.ran / clock.now == pytest.approx(2 * cpu_throttle.SHARE, rel=0.02)


def test_a_long_piece_of_work_is_not_paid_for_with_a_long_silence(monkeypatch: pytest.MonkeyPatch):
    clock = Clock(monkeypatch)
    mine = CpuThrottle(cpu_throttle.SHARE)
    mine.throttle()
    clock.work(ran=10, waited=100)
    mine.throttle()
    assert clock.slept == [cpu_throttle.MAX_PAUSE_S]


def test_what_led_to_the_first_piece_is_not_paid_for(monkeypatch: pytest.MonkeyPatch):
    clock = Clock(monkeypatch)
    mine = CpuThrottle(cpu_throttle.SHARE)
    clock.work(ran=1, waited=10)
    mine.throttle()
    assert clock.slept == []


def test_pour_copies_what_was_asked_for():
    sink = io.BytesIO()
    copy_throttled(io.BytesIO(b"a" * (CHUNK + 10)), sink, CHUNK + 3)
    assert sink.getvalue() == b"a" * (CHUNK + 3)
    copy_throttled(io.BytesIO(b"b"), sink, 10)
    assert len(sink.getvalue()) == CHUNK + 4


def test_waiting_for_a_core_is_seen():
    """Two that want the same core: each waits about as long as it runs."""
    core = min(os.sched_getaffinity(0))
    pinned = f"import os, time; os.sched_setaffinity(0, {{{core}}})"
    spin = f"{pinned}\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE) as rival:
        try:
            rival.stdout.readline()
            look = f"{pinned}\nfrom howdah.storage import cpu_throttle\nwhile time.process_time() < 1: pass"
            argv = [sys.executable, "-c", f"{look}\nprint(cpu_throttle._cpu_wait_s())"]
            waited = float(subprocess.run(argv, capture_output=True, text=True, timeout=100, check=True).stdout)
        finally:
            rival.kill()
    assert waited > 0.2
