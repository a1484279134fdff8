"""Tests what the chart of hours by day shows."""

from __future__ import annotations

from typing import Any

from page_script import called


def days(*rows: tuple[str, float], hours: str = "gpu_hours") -> list[list[Any]]:
    asked = [[{"group": group, hours: value} for group, value in rows], hours]
    (found,) = called("history/usageByDay.ts", "usageByDay", [asked])
    return list(found)


def test_days_without_jobs_are_in_it_and_jobs_that_have_not_started_are_not() -> None:
    shown = days(("2027-01-02", 3.5), ("", 9), ("2026-12-30", 1))
    assert shown == [["2026-12-30", 1], ["2026-12-31", 0], ["2027-01-01", 0], ["2027-01-02", 3.5]]
    assert days(("2026-12-30", 2), hours="memory_gib_hours") == [["2026-12-30", 2]]
    assert days() == []


def test_the_day_of_a_wrong_clock_adds_no_thousands_of_days() -> None:
    assert days(("2026-12-30", 1), ("1970-01-01", 2)) == [["1970-01-01", 2], ["2026-12-30", 1]]
