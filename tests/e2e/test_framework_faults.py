"""Tests that a group which loses a member is noticed and formed again, with each framework's own processes.

On this machine: what a framework does when a peer is gone does not depend on the engine.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.config.job_file import load, to_yaml
from howdah.spec import Environment, JobSpec, Role

EXAMPLES = Path(__file__).parents[2] / "examples"
HOWDAH = str(Path(sys.executable).with_name("howdah"))
# Runs train.py; the first time, worker 1 is killed when it says for the third time how far it is.
FALL = """\
import builtins, os, runpy, signal
say, told = builtins.print, []
def told_off(*values, **options):
    say(*values, **options)
    told.extend(value for value in values if "progress:" in str(value))
    if len(told) == 3 and os.environ["HOWDAH_EPOCH"] == "1" and os.environ["HOWDAH_TASK"] == "worker:1":
        os.kill(os.getpid(), signal.SIGKILL)
builtins.print = told_off
runpy.run_path("train.py", run_name="__main__")
"""
OLD_PYTHON = pytest.mark.skipif(sys.version_info >= (3, 12), reason="MXNet needs NumPy < 1.24: Python <= 3.11")

pytestmark = pytest.mark.timeout(900)  # where environments are made first


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of a user whose jobs are in a directory of this test, and whose cache is the real one."""
    kept = {name: value for name, value in os.environ.items() if name not in ("HOWDAH_HOME", "HADOOP_CONF_DIR")}
    return {**kept, "XDG_STATE_HOME": str(tmp_path / "state")}


def run(job: JobSpec, directory: Path, home: dict[str, str]) -> subprocess.CompletedProcess[str]:
    (directory / "job.yaml").write_text(to_yaml(job))
    command = [HOWDAH, "run", "--on", "local", str(directory / "job.yaml")]
    return subprocess.run(command, env=home, capture_output=True, text=True, timeout=600, check=False)


def example(name: str, directory: Path) -> JobSpec:
    """The example, with paths that hold in `directory`, and FALL in place of its program."""
    where = EXAMPLES / f"digits-{name}"
    job = load(where / "job.yaml", {"DIGITS_MODEL": str(directory / "model")}).spec
    (directory / "fall.py").write_text(FALL)
    return dataclasses.replace(
        job,
        roles={role: dataclasses.replace(known, command="python fall.py") for role, known in job.roles.items()},
        files=("fall.py", str(where / "train.py")),
        inputs=tuple(dataclasses.replace(one, path=str(where / str(one.path))) for one in job.inputs),
        environment=Environment(requirements=str(where / job.environment.requirements)),
        retries=1,
    )


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "jax", pytest.param("mxnet", marks=OLD_PYTHON)])
def test_a_killed_worker_is_named_and_the_group_forms_again(name: str, tmp_path: Path, home: dict[str, str]) -> None:
    done = run(example(name, tmp_path), tmp_path, home)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "worker:1 on 127.0.0.1: killed by SIGKILL" in done.stdout + done.stderr
    assert any((tmp_path / "model").iterdir())


def test_a_tracker_without_xgboost_says_so(tmp_path: Path, home: dict[str, str]) -> None:
    environment = Environment(python=sys.executable)
    job = JobSpec({"worker": Role("sleep 30")}, framework="xgboost", environment=environment)
    done = run(job, tmp_path, home)
    assert done.returncode != 0
    assert "tracker:0" in done.stdout + done.stderr
    assert "the job's Python environment has no xgboost package" in done.stdout + done.stderr
