"""Provides one Hadoop to all e2e tests of a process, and a Slurm and a Kubernetes to tests that ask for them. The parts
of Hadoop and Kubernetes are in the user's cache, other files are in pytest's directories."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from commandline import CommandLine
from kubernetes_setup import settings
from runtime_archives import share_runtime_archives

from howdah.sandbox import KubernetesSandbox, Sandbox, SlurmSandbox, SparkSandbox
from howdah.storage.content_cache import local_directory

CACHE = local_directory()  # as it is before `sandbox` moves HOWDAH_HOME
LIMIT_S = 900
"""Limit in seconds of a test that names none: a few of the command line's limits, one after the other."""
ENDING_LIMIT_S = 60.0
"""Limit in seconds within which a stopped job has ended for YARN: its programs have some time to save."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            # The first test that wants Kubernetes may have to wait until it is built.
            item.add_marker(pytest.mark.timeout(LIMIT_S, func_only="kubernetes" in getattr(item, "fixturenames", ())))


@pytest.fixture(scope="module", autouse=True)
def _own_object_stores() -> None:
    """Forget fsspec's clients of object stores: they know the server of another module."""
    fsspec.get_filesystem_class("s3").clear_instance_cache()


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for `share_runtime_archives`."""
    return tmp_path_factory.mktemp("runtime")


@pytest.fixture(scope="session", autouse=True)
def sandbox(tmp_path_factory: pytest.TempPathFactory, archives: Path) -> Iterator[Sandbox]:
    """Start a default sandbox, found by `howdah.sandbox.current()` and by child processes (HOWDAH_HOME is set).

    It is started before any other: a module with another cluster restores the HOWDAH_HOME that it found.
    """
    with pytest.MonkeyPatch.context() as environment:
        home = tmp_path_factory.mktemp("howdah")
        share_runtime_archives(home, archives)
        environment.setenv("HOWDAH_HOME", str(home))
        with Sandbox(cache=CACHE) as running:
            yield running


@pytest.fixture(scope="module", autouse=True)
def _end_applications(sandbox: Sandbox | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """End applications that the tests of a file have left on the cluster, where they would take room from the next
    file, and fail the last test of that file. Some files have no Hadoop."""
    yield
    if sandbox is None:
        return
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


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmSandbox]:
    """Start Slurm, which this process and its children find by SLURM_CONF. It stops with the module: it starts within 5
    s, and otherwise each test process would keep one with its database to the end."""
    if shutil.which("munged", path=f"{os.environ['PATH']}:/usr/sbin") is None and os.geteuid() != 0:
        pytest.skip("needs slurmctld, slurmd, slurmdbd, munge and mariadb-server-core")
    with pytest.MonkeyPatch.context() as environment, SlurmSandbox(tmp_path_factory.mktemp("slurm")) as running:
        for name, value in running.env().items():
            environment.setenv(name, value)
        yield running


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSandbox]:
    """Start Spark; `env()` has the variables by which clients find it. It stops with the module."""
    with SparkSandbox(tmp_path_factory.mktemp("spark") / "run", cache=CACHE) as running:
        yield running


@pytest.fixture
def slurm_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, archives: Path) -> Path:
    """Give a separate home in which jobs run on Slurm with the Python of these tests."""
    home = tmp_path_factory.mktemp("home")
    share_runtime_archives(home, archives)
    monkeypatch.setenv("HOWDAH_HOME", str(home))
    monkeypatch.setenv("HOWDAH_PYTHON", os.path.realpath(sys.executable))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    return home


@pytest.fixture(scope="module")
def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesSandbox]:
    """Start Kubernetes; `env()` has the variables by which clients find it and its S3 server. It stops with the module,
    because an idle cluster takes a tenth of the two cores."""
    if os.geteuid() != 0:
        pytest.skip("a Kubernetes sandbox needs root")
    with KubernetesSandbox(tmp_path_factory.mktemp("kubernetes") / "run", cache=CACHE) as running:
        yield running


@pytest.fixture(scope="module")
def kubernetes_settings(kubernetes: KubernetesSandbox) -> Iterator[None]:
    """Let the engine of Kubernetes find the sandbox."""
    with settings(kubernetes):
        yield
