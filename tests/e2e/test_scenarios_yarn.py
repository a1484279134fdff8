"""Tests the table of scenarios on YARN."""

from __future__ import annotations

from scenarios import GrowingScenarios


class TestYarn(GrowingScenarios):
    name = "yarn"
