"""Tests Python functions as jobs on YARN, with a real framework, real data, and results by way of HDFS."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.hadoop import conf
from howdah.sandbox import Sandbox
from howdah.spec import uris
from howdah.storage.factory import filesystem

ROOT = Path(__file__).parents[2]
PROGRAM = """
import howdah

def fails(number):
    from howdah import here

    if here.rank == 1:
        raise KeyError(f"no number {number}")
    here.barrier("never")

if __name__ == "__main__":
    print("doubled", howdah.map(lambda number: 2 * number, range(3), on="yarn", replicas=2, memory="256MiB"))
    howdah.run(fails, 7, on="yarn", replicas=2, memory="256MiB")
"""

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def environment(sandbox: Sandbox, tmp_path: Path) -> dict[str, str]:
    """Return variables with which jobs have a home of their own on HDFS. Environments are made in the user's cache."""
    root = conf.default_filesystem(conf.load(str(sandbox.conf_dir)))
    home = {"HOWDAH_STAGING_DIR": f"{root}/tmp{tmp_path}", "HOWDAH_PYTHON": os.path.realpath(sys.executable)}
    kept = {name: value for name, value in os.environ.items() if name != "HOWDAH_HOME"}
    return {**kept, **home, "HADOOP_CONF_DIR": str(sandbox.conf_dir)}


def test_the_example_returns_its_accuracy(environment: dict[str, str], tmp_path: Path) -> None:
    """Its environment, with all of PyTorch, is shipped: nodes fetch and unpack it before they start an executor."""
    data = f"{environment['HOWDAH_STAGING_DIR']}-digits"
    howdah = str(Path(sys.executable).with_name("howdah"))
    stored = [howdah, "data", "put", str(ROOT / "examples" / "data" / "digits"), data]
    subprocess.run(stored, env=environment, check=True, capture_output=True, timeout=120)
    command = [sys.executable, str(ROOT / "examples" / "function-digits-pytorch" / "train.py"), "yarn"]
    variables = {**environment, "DIGITS_DATA": data}
    done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("test accuracy 0.9")
    assert "epoch 10: loss" in done.stderr


def test_an_exception_comes_back_and_nothing_stays(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "program.py"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr[-3000:]
    assert done.stdout == "doubled [0, 2, 4]\n"
    assert done.stderr.endswith("KeyError: 'no number 7'\n")
    assert re.search(r"in worker:1 on 127\.0\.0\.1\d:\nTraceback", done.stderr)
    assert "/results/" not in done.stderr, "a place that is gone"
    home = environment["HOWDAH_STAGING_DIR"]
    files = filesystem(home, environment["HADOOP_CONF_DIR"])
    assert [entry.uri for entry in files.children(uris.join(home, "results"))] == []
