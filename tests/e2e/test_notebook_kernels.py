"""Tests kernels of Jupyter's that run as jobs, on this machine and on YARN."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager
from notebook_kernel import Message, NotebookKernel, text_of

from howdah.sandbox import Sandbox

HOWDAH = str(Path(sys.executable).with_name("howdah"))
START_LIMIT_S = 180.0


@pytest.fixture(params=["local", "yarn"])
def kernel(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NotebookKernel]:
    """Install a kernel, and start it as a notebook does."""
    if request.param == "yarn":
        sandbox: Sandbox = request.getfixturevalue("sandbox")
        monkeypatch.setenv("HADOOP_CONF_DIR", str(sandbox.conf_dir))
        monkeypatch.setenv("HOWDAH_PYTHON", os.path.realpath(sys.executable))
    else:
        monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "howdah"))
        monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    # The job's Python is this one, which has ipykernel.
    options = ["--on", request.param, "--set", f"environment.python={sys.executable}"]
    done = subprocess.run([HOWDAH, "kernel", "install", "--name", "gpu", *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"kernel gpu runs on {request.param}" in done.stdout
    manager = KernelManager(kernel_name="gpu")
    manager.start_kernel(cwd=str(tmp_path))
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(START_LIMIT_S)
        yield NotebookKernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_kernel_runs_as_a_job(kernel: NotebookKernel) -> None:
    """It keeps its variables, is interrupted, and starts again as another job."""
    done = kernel.run("import os\nx = 6 * 7\nprint(x, os.environ['HOWDAH_JOB_ID'], 'HOWDAH_KERNEL_KEY' in os.environ)")
    assert done.error == "", done.traceback
    value, job_id, has_key = done.printed.split()
    assert (value, has_key) == ("42", "False")
    sent: list[bool] = []

    def interrupt(message: Message) -> None:
        if "waits now" in text_of(message) and not sent:
            sent.append(True)
            kernel.interrupt()

    assert kernel.run("import time\nprint('waits now', flush=True)\ntime.sleep(600)", interrupt).error
    assert kernel.run("print(x)").printed == "42\n"
    kernel.restart(START_LIMIT_S)
    assert kernel.run("x").error == "NameError"
    again = kernel.run("import os; print(os.environ['HOWDAH_JOB_ID'])").printed.strip()
    assert again != job_id


def test_wrong_options_are_told_when_a_kernel_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    command = [HOWDAH, "kernel", "install", "--name", "bad", "--on", "local", "--gpus", "many"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 64, done.stderr
    assert "--gpus" in done.stderr
    assert not (tmp_path / "jupyter").exists()
