"""Tests what the exit status of an executor says."""

from __future__ import annotations

import pytest

from howdah.engines.exit_status import exit_of_status


@pytest.mark.parametrize(
    ("status", "cause", "code", "signal"),
    [
        (0, "exit", 0, None),
        (78, "exit", 78, None),
        (128, "exit", 128, None),
        (255, "exit", 255, None),
        (137, "signal", None, 9),
        (-15, "signal", None, 15),
    ],
)
def test_a_shells_status_above_128_is_a_signal(status: int, cause: str, code: int | None, signal: int | None) -> None:
    found = exit_of_status(status, "last words")
    assert (found.cause, found.code, found.signal) == (cause, code, signal)
    assert ("last words" in found.detail) == (cause == "exit" and status != 0)
