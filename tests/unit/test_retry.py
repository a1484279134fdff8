"""Tests which errors are retried, and for how long."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from howdah.errors import EngineUnavailable, StagingError
from howdah.storage.filesystem import NoSpace
from howdah.storage.retry import LIMITS_S, retry_until


def failing(times: int, error: Exception) -> Callable[[], int]:
    calls = iter(range(1000))

    def act() -> int:
        number = next(calls)
        if number < times:
            raise error
        return number

    return act


@pytest.mark.parametrize("error", [EngineUnavailable("away"), NoSpace("over the quota")])
def test_a_failed_call_is_repeated(error: Exception) -> None:
    assert retry_until(failing(3, error), pause_s=0.001) == 3


def test_each_error_class_has_its_own_limit() -> None:
    with pytest.raises(NoSpace):
        retry_until(failing(3, NoSpace("over the quota")), {**LIMITS_S, NoSpace: 0.0}, pause_s=0.001)
    with pytest.raises(EngineUnavailable):
        retry_until(failing(3, EngineUnavailable("away")), {**LIMITS_S, EngineUnavailable: 0.0}, pause_s=0.001)


def test_what_waiting_does_not_help_fails_at_once() -> None:
    with pytest.raises(StagingError):
        retry_until(failing(1, StagingError("permission denied")), pause_s=0.001)
