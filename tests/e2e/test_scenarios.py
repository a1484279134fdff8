"""Tests that every engine runs the table of scenarios."""

from __future__ import annotations

import importlib

import pytest
from clusters import CLUSTERS
from scenarios import GROWTH, SCENARIOS, GrowingScenarios, Scenarios

from howdah.spec.plugins import BUILT_IN


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


def test_the_table_has_every_scenario_for_every_engine() -> None:
    """What an engine cannot have is a scenario of the table."""
    assert CLUSTERS.keys() == BUILT_IN["howdah.engines"].keys()
    for cluster in CLUSTERS.values():
        assert cluster.lacks.keys() <= {*SCENARIOS, GROWTH}


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_table_runs_on_every_engine(name: str) -> None:
    module = importlib.import_module(f"test_scenarios_{name}")
    found = [each for each in vars(module).values() if isinstance(each, type) and getattr(each, "name", "") == name]
    assert len(found) == 1
    assert issubclass(found[0], Scenarios)
    assert issubclass(found[0], GrowingScenarios) == (GROWTH not in CLUSTERS[name].lacks)
