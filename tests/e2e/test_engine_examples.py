"""Tests that the examples run unchanged on Kubernetes and on hosts that ssh reaches, from data to committed model.

The pods' image has a Python alone: the frameworks come with the environment that howdah sends, or are in one that they
mount.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import CLUSTERS, HOWDAH, Cluster, wait_until_gone

from howdah.storage.content_cache import local_directory

CACHE = local_directory()  # as it is before tests have a home of their own
ROOT = Path(__file__).parents[2]
LIMIT_S = 800

pytestmark = pytest.mark.timeout(900, func_only=True)  # the first one may have to wait until Kubernetes is built


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture(scope="module", params=["kubernetes", "ssh"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Give a cluster, with environments from the user's cache."""
    opened = CLUSTERS[request.param](request, tmp_path_factory.mktemp(request.param))
    with opened.active(), pytest.MonkeyPatch.context() as environment:
        environment.delenv("HOWDAH_HOME", raising=False)
        environment.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield opened


@pytest.fixture
def seen_environments(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the nodes see the environments of the user's cache: those of large frameworks take minutes to send."""
    monkeypatch.setenv("HOWDAH_SHARED_PATHS", str(CACHE))
    volumes = os.environ.get("HOWDAH_KUBERNETES_VOLUMES", "")
    monkeypatch.setenv("HOWDAH_KUBERNETES_VOLUMES", f"{volumes},{CACHE / 'environments'}")


@pytest.mark.usefixtures("seen_environments")
@pytest.mark.parametrize("name", ["digits-tensorflow", "digits-pytorch"])
def test_an_example_runs_unchanged_in_an_environment_that_nodes_see(
    name: str, cluster: Cluster, tmp_path: Path
) -> None:
    run_example(name, cluster, tmp_path)


@pytest.mark.parametrize("name", ["digits-xgboost", "digits-mpi"])
def test_an_example_runs_unchanged(name: str, cluster: Cluster, tmp_path: Path) -> None:
    run_example(name, cluster, tmp_path)


def run_example(name: str, cluster: Cluster, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    job = tmp_path / "examples" / name / "job.yaml"
    command = [HOWDAH, "run", "--on", cluster.name, str(job)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert (job.parent / "models" / name / "_SUCCESS").exists()
    wait_until_gone(report.id for report in cluster.engine().describe())
