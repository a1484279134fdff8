"""Tests that `howdah kernel install` replaces its own kernels alone: Jupyter removes what has the name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from howdah.errors import StagingError
from howdah.jupyter.commands import kernel
from howdah.jupyter.kernel_provisioner import HowdahProvisioner, plan


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOWDAH_HOME", "JUPYTER_DATA_DIR", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "HOME").mkdir()
    return tmp_path / "JUPYTER_DATA_DIR/kernels"


def install(*options: str) -> None:
    done = CliRunner().invoke(kernel, ["install", "--on", "local", *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("content", ['{"argv": ["python3"], "env": {"KEY": "mine"}}', "[]", None])
def test_another_kernel_stays(kernels: Path, content: str | None) -> None:
    place = kernels / "python3"
    place.mkdir(parents=True)
    if content is not None:
        (place / "kernel.json").write_text(content)
    with pytest.raises(
        StagingError, match="kernels/python3 exists, and is no kernel of howdah's: choose another --name"
    ):
        install("--name", "Python3")
    assert [path.read_text() for path in place.iterdir()] == ([content] if content else [])


def test_an_own_one_is_replaced(kernels: Path) -> None:
    for gpus in ("0", "1"):
        install("--name", "big", "--memory", f"{gpus}64MiB")
    found = json.loads((kernels / "big/kernel.json").read_text())
    assert "164MiB" in found["metadata"]["kernel_provisioner"]["config"]["arguments"]


def test_relative_paths_start_where_it_was_installed(
    kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "rates.txt").write_text("mine")
    (elsewhere / "rates.txt").write_text("another's")
    install("--name", "big", "--file", "rates.txt", "--memory", "164MiB")
    found = json.loads((kernels / "big/kernel.json").read_text())["metadata"]["kernel_provisioner"]["config"]
    assert set(found) <= set(HowdahProvisioner.class_trait_names(config=True))
    monkeypatch.chdir(elsewhere)  # as Jupyter, which runs in another directory
    (tmp_path / "key").touch()
    files = plan(found["arguments"], tmp_path / "key", found["directory"]).plan.job.files
    assert str(tmp_path / "rates.txt") in [each.source for each in files]
    old = plan(found["arguments"], tmp_path / "key").plan.job.files  # of a kernel that an earlier version installed
    assert str(elsewhere / "rates.txt") in [each.source for each in old]
