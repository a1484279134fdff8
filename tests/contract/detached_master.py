"""Tells the contract of an allocator where `howdah.engines.detached_master` starts masters again."""

from __future__ import annotations

import os

import pytest

from howdah.engines.detached_master import ATTEMPT, ATTEMPTS


class DetachedMaster:
    """Lets the test's process be the first of two masters, and the second one where a test takes over."""

    @pytest.fixture(autouse=True)
    def _attempt(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(ATTEMPTS, "2")
        if "takes_over" in request.node.name:
            monkeypatch.setenv(ATTEMPT, "2")

    def environment(self) -> dict[str, str]:
        return {**os.environ, ATTEMPT: "1"}
