"""Tests the engine of Slurm by the engines' contract, on a real Slurm."""

from __future__ import annotations

import pytest

from howdah.sandbox import SlurmSandbox
from howdah.testing.engine_contract import EngineContract


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture(autouse=True)
def _on_slurm(slurm: SlurmSandbox, slurm_home: None) -> None:
    """Let every test run where Slurm is configured."""


class TestSlurmEngine(EngineContract):
    name = "slurm"
