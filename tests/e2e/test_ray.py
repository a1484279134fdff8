"""Tests a job on Ray itself: a node that is killed, a program that is sent into the cluster, and who is let in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from planned_environment import install_environment
from submitted_job import until

ROOT = Path(__file__).parents[2]
HOWDAH = str(Path(sys.executable).with_name("howdah"))
INSTALL_LIMIT_S = 900
LIMIT_S = 240
JOB = """
name: cluster
framework: ray
environment: {{python: {python}}}
roles:
  head: {{command: [sleep, infinity], resources: {{memory: 4GiB}}}}
  node: {{replicas: 2, resources: {{memory: 2GiB}}}}
"""
COUNT = """
import ray
ray.init(log_to_driver=False)
alive = [node for node in ray.nodes() if node["Alive"]]
print("alive", len(alive), "cores", ray.cluster_resources()["CPU"])
"""

pytestmark = pytest.mark.timeout(INSTALL_LIMIT_S + 3 * LIMIT_S)


def howdah(*arguments: str) -> str:
    done = subprocess.run([HOWDAH, *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def python() -> str:
    """The environment of the example, in the user's own cache: it is big."""
    kept = {name: value for name, value in os.environ.items() if name != "HOWDAH_HOME"}
    return install_environment(ROOT / "examples" / "digits-ray" / "job.yaml", kept, INSTALL_LIMIT_S)


@pytest.fixture
def cluster(python: str, tmp_path: Path) -> Iterator[str]:
    (tmp_path / "job.yaml").write_text(JOB.format(python=python))
    job = howdah("submit", str(tmp_path / "job.yaml")).strip()
    yield job
    howdah("cancel", job)


def alive(job: str) -> str:
    """Count the nodes by a program that Ray itself runs in the cluster."""
    command = ["ray", "job", "submit", "--log-style", "record", "--", "python", "-c", COUNT]
    done = subprocess.run(
        [HOWDAH, "exec", job, "head:0", "--", *command], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    return done.stdout


def task(job: str, name: str) -> dict[str, Any]:
    (found,) = (each for each in json.loads(howdah("status", "--json", job))["tasks"] if each["task"] == name)
    return found


def test_a_cluster_that_waits_for_programs(cluster: str) -> None:
    until(lambda: "alive 3 cores 3.0" in alive(cluster), "both nodes have joined")

    dashboard = f"http://127.0.0.1:{task(cluster, 'head:0')['ports']['dashboard']}"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{dashboard}/api/jobs/", timeout=60)
    with refused.value:
        assert refused.value.code == 401, "nobody is let in without the token"
    token = howdah("exec", cluster, "head:0", "--", "printenv", "RAY_AUTH_TOKEN").strip()
    request = urllib.request.Request(f"{dashboard}/api/jobs/", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert len(json.load(answer)) >= 1
    assert token not in howdah("logs", cluster)

    os.kill(task(cluster, "node:1")["pid"], signal.SIGKILL)
    until(lambda: task(cluster, "node:1")["tries"] == 2, "howdah starts the node again")
    until(lambda: "alive 3 cores" in alive(cluster), "the node has joined again")
    assert task(cluster, "head:0")["tries"] == 1
