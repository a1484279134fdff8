"""Tests Python functions as jobs on hosts of ssh, on Slurm, Spark and Kubernetes, as a user's program calls them."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import CLUSTERS, Cluster, wait_until_gone
from kubernetes_setup import object_store_home
from submitted_job import LIMIT_S

from howdah.sandbox import KubernetesSandbox
from howdah.spec import State, uris
from howdah.storage.factory import filesystem

OBJECT_STORE = "kubernetes on an object store"
QUICK_S = 60.0
"""An exception comes back within a second, or a few if the machine does much else."""
PROGRAM = """
import os, sys, time
import helper
import howdah
from howdah import here

KEYS = {"on": sys.argv[1], "memory": "256MiB"}


def more(number):
    return number + 1


def scorer(factor):
    def score(offset):
        return factor * helper.double(here.rank) + more(offset)

    return score


def slow(number):
    time.sleep(number / 10)
    return number * number


def fails():
    if here.rank == 1:
        raise KeyError(time.time())
    here.barrier("never")


def waits():
    print("waits now", flush=True)
    time.sleep(600)


def main():
    if sys.argv[2] == "wait":
        howdah.run(waits, replicas=2, **KEYS)
    print("scores", howdah.run_all(scorer(10), 4, replicas=2, **KEYS))
    print("squares", howdah.map(slow, [5, 0, 1, 3, 0], replicas=2, **KEYS), flush=True)
    try:
        howdah.run(fails, replicas=2, **KEYS)
    except KeyError as error:
        print(f"raised after {time.time() - error.args[0]:.1f} s")
        raise


if __name__ == "__main__":
    main()
"""
HELPER = "def double(number):\n    return 2 * number\n"


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture(scope="module", params=["ssh", "slurm", "spark", "kubernetes", OBJECT_STORE])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Give a cluster. Pods see nothing of this machine but the home, or nothing at all."""
    opened = CLUSTERS[request.param.split()[0]](request, tmp_path_factory.mktemp("cluster"))
    with opened.active(), pytest.MonkeyPatch.context() as environment:
        if opened.name == "kubernetes":
            kubernetes: KubernetesSandbox = request.getfixturevalue("kubernetes")
            environment.setenv("HOWDAH_KUBERNETES_VOLUMES", kubernetes.settings()["kubernetes.volumes"])
        if request.param == OBJECT_STORE:
            with object_store_home(kubernetes):
                yield opened
        else:
            yield opened


@pytest.fixture
def program(cluster: Cluster, tmp_path: Path) -> list[str]:
    """Write the program; return its command line."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "helper.py").write_text(HELPER)
    return [sys.executable, str(tmp_path / "program.py"), cluster.name]


def test_results_and_an_exception_come_back(cluster: Cluster, program: list[str]) -> None:
    done = subprocess.run([*program, "call"], capture_output=True, text=True, timeout=3 * LIMIT_S)
    assert done.returncode == 1, done.stderr[-3000:]
    scores, squares, raised = done.stdout.splitlines()
    assert (scores, squares) == ("scores [5, 25]", "squares [25, 0, 1, 9, 0]")
    assert float(raised.split()[2]) < QUICK_S
    assert re.search(r"\nin worker:1 on \S+:\nTraceback", done.stderr), done.stderr[-3000:]
    assert f'File "{program[1]}", line ' in done.stderr.partition("direct cause")[0]
    assert "    raise KeyError(time.time())\n" in done.stderr.partition("direct cause")[0]
    assert "/results/" not in done.stderr, "a place that is gone"
    nothing_is_left(cluster)


def test_an_interrupt_cancels_the_job_and_leaves_nothing(cluster: Cluster, program: list[str]) -> None:
    before = {report.id for report in cluster.engine().describe()}
    with subprocess.Popen([*program, "wait"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = next(line for line in process.stderr if "waits now" in line)
        process.send_signal(signal.SIGINT)
        said += process.stderr.read()
    assert process.returncode == -signal.SIGINT, said
    (report,) = (report for report in cluster.engine().describe() if report.id not in before)
    assert report.state is State.CANCELLED
    assert f"{report.id} is cancelled\n" in said
    nothing_is_left(cluster)


def nothing_is_left(cluster: Cluster) -> None:
    """Look for results, and wait for the end of all processes: masters answer for some seconds after their jobs."""
    engine = cluster.engine()
    files, results = filesystem(engine.home), uris.join(engine.home, "results")
    assert not files.exists(results) or files.children(results) == []
    wait_until_gone(report.id for report in engine.describe())
