"""Provides one Hadoop to all e2e tests of a run. Its jars stay in the user's cache, the rest with pytest's files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.sandbox import Sandbox
from howdah.storage.content_cache import local_directory

LIMIT_S = 900
"""Of a test that names none: a few of the command line's limits, one after the other."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT_S))


@pytest.fixture(scope="session", autouse=True)
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Start a default sandbox, found by `howdah.sandbox.current()` and by child processes (HOWDAH_HOME is set).

    It is there before any other: a module with a cluster of its own gives back the HOWDAH_HOME that it found.
    """
    jars = local_directory()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOWDAH_HOME", str(tmp_path_factory.mktemp("howdah")))
        with Sandbox(cache=jars) as running:
            yield running
