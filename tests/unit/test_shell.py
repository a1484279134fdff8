"""Tests when `howdah shell` says that the time of its machine is nearly over."""

from __future__ import annotations

from collections.abc import Callable

from howdah.errors import EngineUnavailable, JobEnded
from howdah.interactive.shell import tell_when_nearly_over

HOUR_S = 3600.0


class Machine:
    """Has a clock, sleeps itself at some moments, and keeps a job until `until`."""

    def __init__(self, until: float, naps: dict[float, float] | None = None) -> None:
        self.now, self.until, self.naps = 0.0, until, naps or {}
        self.told: list[tuple[float, float]] = []
        self.answers: list[Callable[[], float]] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for at in [at for at in self.naps if at <= self.now]:
            self.now += self.naps.pop(at)

    def read_until(self) -> float:
        if self.answers:
            return self.answers.pop(0)()
        if self.now >= self.until:
            raise JobEnded("it has ended")
        return self.until

    def watch(self, seconds: float) -> list[tuple[float, float]]:
        """Return when something was told, and how many minutes were left."""
        tell_when_nearly_over(
            self.read_until, seconds, lambda left: self.told.append((self.now, left)), lambda: self.now, self.sleep
        )
        return self.told


def is_away() -> float:
    raise EngineUnavailable("no master answers")


def test_ten_minutes_before_the_end() -> None:
    assert Machine(4 * HOUR_S).watch(4 * HOUR_S) == [(4 * HOUR_S - 600, 10.0)]


def test_the_sleep_of_a_laptop_counts() -> None:
    (at, left), *more = Machine(4 * HOUR_S, {HOUR_S: 2 * HOUR_S}).watch(4 * HOUR_S)
    assert (4 * HOUR_S - 600 <= at <= 4 * HOUR_S - 570, left <= 10.0, more) == (True, True, [])


def test_a_connection_that_is_lost_in_that_moment() -> None:
    machine = Machine(4 * HOUR_S)
    machine.answers += [is_away, is_away]
    assert machine.watch(4 * HOUR_S) == [(4 * HOUR_S - 540, 9.0)]


def test_each_time_that_it_was_extended() -> None:
    machine = Machine(HOUR_S)
    machine.answers.append(lambda: HOUR_S)

    def extended() -> float:
        machine.until = 3 * HOUR_S
        return machine.until

    machine.answers.append(extended)
    assert machine.watch(HOUR_S) == [(HOUR_S - 600, 10.0), (3 * HOUR_S - 600, 10.0)]
