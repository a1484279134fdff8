"""Tests the engine of Slurm by the engines' contract, on a real Slurm."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from howdah.sandbox import SlurmSandbox
from howdah.testing.engine_contract import EngineContract


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture(scope="module", autouse=True)
def _on_slurm(slurm: SlurmSandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let every test run where Slurm is configured, in one home."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOWDAH_HOME", str(tmp_path_factory.mktemp("home")))
        environment.setenv("HOWDAH_PYTHON", os.path.realpath(sys.executable))
        environment.delenv("HADOOP_CONF_DIR", raising=False)
        yield


class TestSlurmEngine(EngineContract):
    name = "slurm"
