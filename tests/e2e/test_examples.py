"""Tests the examples as people run them: `howdah run` of unmodified programs, and the model they leave.

The rule: an example counts as trained when check.py, which loads the saved model and nothing else, says so.
Environments stay in the user's own cache, for they are big; everything else goes to pytest's directories.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from planned_environment import planned_python

from howdah.inputs.transfer import download, upload
from howdah.sandbox import Sandbox
from howdah.spec import uris
from howdah.storage.factory import filesystem
from howdah.wire.helper_messages import FileCopy

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
HOWDAH = str(Path(sys.executable).with_name("howdah"))
# Making an environment takes the longest by far, on a fresh machine: torch brings 5 GB along.
LONGEST_S = 900
NAMES = [
    "digits-tensorflow",
    "digits-tensorflow-v1",
    "digits-tensorflow-mwms",
    "digits-tensorflow-sync",
    "digits-tensorflow-in-graph",
    "digits-tensorflow-evaluator",
    "digits-pytorch",
    "digits-fsdp",
    "digits-mpi",
    "digits-xgboost",
    "digits-lightgbm",
    "digits-jax",
    "digits-search",
    "digits-ray",
    "digits-pytensor",
    pytest.param(
        "digits-mxnet",
        marks=pytest.mark.skipif(sys.version_info >= (3, 12), reason="MXNet needs NumPy < 1.24: Python <= 3.11"),
    ),
]
CHECKED_AS = {
    "digits-tensorflow-v1": "digits-tensorflow-sync",
    "digits-tensorflow-in-graph": "digits-tensorflow-sync",
}
"""Their checkpoints hold the same variables."""

pytestmark = pytest.mark.timeout(LONGEST_S)


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of a user whose jobs are in a directory of this test, and whose cache is the real one."""
    kept = {name: value for name, value in os.environ.items() if name not in ("HOWDAH_HOME", "HADOOP_CONF_DIR")}
    # The nodes are this machine and see the environments where they are; that they can be shipped is tested elsewhere.
    return {**kept, "XDG_STATE_HOME": str(tmp_path / "state"), "HOWDAH_SHARED_PATHS": "/"}


@pytest.fixture(scope="module")
def hdfs(sandbox: Sandbox) -> Iterator[str]:
    """The root of the sandbox's HDFS, which this process's own file system calls know too; the digits are in it."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HADOOP_CONF_DIR", str(sandbox.conf_dir))
        settings = ElementTree.parse(sandbox.conf_dir / "core-site.xml").iter("property")
        root = next(item.findtext("value") for item in settings if item.findtext("name") == "fs.defaultFS")
        assert root is not None
        parts = (EXAMPLES / "data" / "digits").rglob("*.csv")
        upload([FileCopy(str(part), f"{root}/data/digits/{part.parent.name}/{part.name}") for part in parts], ignored)
        yield root


def ignored(files: int, size: int) -> None:
    """Nobody watches this transfer."""


def howdah(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [HOWDAH, *arguments], env=env, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done


def check(name: str, model: Path, env: dict[str, str]) -> None:
    """Run the example's check in the example's own environment."""
    python = planned_python(howdah("plan", "--on", "local", "--json", f"examples/{name}/job.yaml", env=env).stdout)
    script = EXAMPLES / CHECKED_AS.get(name, name) / "check.py"
    done = subprocess.run([python, script, model], env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "test accuracy 0.9" in done.stdout


def test_on_this_machine(tmp_path: Path, home: dict[str, str]) -> None:
    model = tmp_path / "model"
    done = howdah(
        "run", "--on", "local", "--set", f"DIGITS_MODEL={model}", "examples/digits-tensorflow/job.yaml", env=home
    )
    assert "test accuracy" in done.stdout
    check("digits-tensorflow", model, home)


@pytest.mark.parametrize("name", NAMES)
def test_on_hadoop(name: str, sandbox: Sandbox, hdfs: str, tmp_path: Path, home: dict[str, str]) -> None:
    target = f"{hdfs}/models/{name}"
    sets = ["--set", f"DIGITS_DATA={hdfs}/data/digits", "--set", f"DIGITS_MODEL={target}"]
    if name == "digits-tensorflow-evaluator":
        sets += ["--set", f"DIGITS_SHARED={(tmp_path / 'shared').as_uri()}"]
    howdah("run", "--on", "yarn", *sets, f"examples/{name}/job.yaml", env={**home, **sandbox.env()})
    saved = files_below(target)
    assert "_SUCCESS" in saved
    download([FileCopy(str(tmp_path / "model" / file), f"{target}/{file}") for file in saved], ignored)
    check(name, tmp_path / "model", home)
    if name == "digits-tensorflow-evaluator":
        assert len(filesystem(hdfs).read_bytes(f"{target}-evaluations/accuracy.csv").splitlines()) == 10
    if name == "digits-tensorflow-v1":
        assert any(file.startswith("events.out.tfevents.") for file in files_below(f"{target}-events"))


def files_below(uri: str) -> list[str]:
    return [uris.below(entry.uri, uri) for entry in filesystem(uri).walk(uri)]
