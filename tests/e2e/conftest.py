"""Provides one Hadoop to all e2e tests of a run. Its jars stay in the user's cache, the rest with pytest's files."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import CommandLine

from howdah.sandbox import Sandbox
from howdah.storage.content_cache import local_directory

LIMIT_S = 900
"""Of a test that names none: a few of the command line's limits, one after the other."""
ENDING_LIMIT_S = 60.0
"""A job that was told to end may take so long for YARN: its programs have some time to save."""


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


@pytest.fixture(scope="module", autouse=True)
def _end_applications(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail the last test of a file whose tests leave applications on the cluster, where they would take the room of the
    next file's; and end them."""
    yield
    deadline = time.monotonic() + ENDING_LIMIT_S
    while (left := _unended_applications(sandbox)) and time.monotonic() < deadline:
        time.sleep(0.5)
    for application in left:
        CommandLine(sandbox, tmp_path_factory.mktemp("left")).yarn("application", "-kill", application)
    assert not left


def _unended_applications(sandbox: Sandbox) -> dict[str, str]:
    """The names of applications that have not ended, by their ids."""
    web = next((daemon.web for daemon in sandbox.status() if daemon.name == "rm"), "")
    states = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
    with urllib.request.urlopen(f"http://{web}/ws/v1/cluster/apps?states={states}", timeout=60) as answer:
        found = (json.load(answer)["apps"] or {}).get("app", [])
    return {str(application["id"]): str(application["name"]) for application in found}
