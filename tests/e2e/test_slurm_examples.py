"""Tests that the examples run unchanged on a real Slurm, from data to committed model; and the doctor there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from planned_environment import planned_python

from howdah.sandbox import SlurmSandbox

ROOT = Path(__file__).parents[2]
HOWDAH = str(Path(sys.executable).with_name("howdah"))
LIMIT_S = 800


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture
def environment(slurm: SlurmSandbox, tmp_path: Path) -> dict[str, str]:
    """Return variables with which jobs are staged in a directory of the test, and environments in the user's cache."""
    kept = {name: value for name, value in os.environ.items() if name not in ("HOWDAH_HOME", "HADOOP_CONF_DIR")}
    own = {"HOWDAH_STAGING_DIR": str(tmp_path / "home"), "HOWDAH_PYTHON": os.path.realpath(sys.executable)}
    return {**kept, **own}


@pytest.mark.parametrize("name", ["digits-xgboost", "digits-mpi", "digits-pytorch", "digits-tensorflow"])
def test_an_example_runs_unchanged(name: str, environment: dict[str, str], tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    job = tmp_path / "examples" / name / "job.yaml"
    command = [HOWDAH, "run", "--on", "slurm", str(job)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    model = job.parent / "models" / name
    assert (model / "_SUCCESS").exists()
    planned = subprocess.run(
        [HOWDAH, "plan", "--on", "slurm", "--json", str(job)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    python = planned_python(planned.stdout)
    checked = subprocess.run([python, job.parent / "check.py", model], capture_output=True, text=True, timeout=300)
    assert "test accuracy 0.9" in checked.stdout, checked.stdout + checked.stderr[-2000:]


def test_the_doctor_finds_all_well(environment: dict[str, str]) -> None:
    command = [HOWDAH, "doctor", "--on", "slurm"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    rows = dict(line.partition(":")[::2] for line in done.stdout.splitlines())
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"ok    slurmctld", "ok    nodes", "ok    queues", "ok    sacct", "ok    staging"} <= rows.keys(), (
        done.stdout
    )


def test_the_doctor_names_a_controller_that_is_down(slurm: SlurmSandbox, environment: dict[str, str]) -> None:
    slurm.stop("slurmctld")
    try:
        command = [HOWDAH, "doctor", "--on", "slurm"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    finally:
        slurm.start("slurmctld")
    assert done.returncode != 0
    assert "fail  slurmctld" in done.stdout
