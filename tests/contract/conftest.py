"""Provides a real ResourceManager alone, which starts in seconds, for tests that run no process in containers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from howdah.engines.yarn.conf import Configuration, load
from howdah.sandbox import Sandbox


@pytest.fixture(scope="session")
def resourcemanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with Sandbox(tmp_path_factory.mktemp("rm") / "run", nodes=0, hdfs=False, expiry_s=600) as alone:
        yield alone


@pytest.fixture
def configuration(resourcemanager: Sandbox) -> Configuration:
    """Return how clients reach the ResourceManager that runs alone."""
    return load(str(resourcemanager.conf_dir))
