"""Tests the table of scenarios on this machine."""

from __future__ import annotations

import pytest
from scenarios import Scenarios


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


class TestLocalMachine(Scenarios):
    name = "local"
