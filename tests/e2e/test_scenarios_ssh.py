"""Tests the table of scenarios on hosts of ssh."""

from __future__ import annotations

import pytest
from scenarios import GrowingScenarios


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


class TestSsh(GrowingScenarios):
    name = "ssh"
