"""Tests that a program's metrics reach MLflow, Trackio and Weights & Biases, each with a store on this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HOWDAH = str(Path(sys.executable).with_name("howdah"))
INSTALL_LIMIT_S = 900
REQUIREMENTS = "mlflow-skinny==3.17.2\ntrackio==0.43.0\nwandb==0.31.0\n"
PROGRAM = """
import os
os.environ.update(WANDB_MODE="offline", TRACKIO_DIR=os.path.abspath("trackio"), MLFLOW_ALLOW_FILE_STORE="true")
import mlflow, trackio, wandb
from howdah import here

mlflow.set_tracking_uri("file:" + os.path.abspath("mlruns"))
here.metric("loss", 9.0, step=0)  # no run has begun
wandb.init(project="digits")
trackio.init(project="digits")
with mlflow.start_run() as run:
    for step in range(1, 4):
        here.metric("loss", 1 / step, step=step)
    mlflow.flush_async_logging()
history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")
print("in mlflow", [(point.step, round(point.value, 2)) for point in history])
wandb.finish()  # prints the last value of each metric
trackio.finish()
from trackio.sqlite_storage import SQLiteStorage

(name,) = SQLiteStorage.get_runs("digits")
print("in trackio", [(point["step"], round(point["loss"], 2)) for point in SQLiteStorage.get_logs("digits", name)])
"""

pytestmark = pytest.mark.timeout(INSTALL_LIMIT_S + 60)


def test_metrics_reach_each_tracker_that_has_a_run(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(REQUIREMENTS)
    (tmp_path / "train.py").write_text(PROGRAM)
    command = [HOWDAH, "run", "--on", "local", "--memory", "2GiB", "--requirements", "requirements.txt"]
    command += ["--env", "HOWDAH_METRICS_TO=mlflow, trackio,wandb", "--", "python", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False)
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed[-3000:]
    points = "[(1, 1.0), (2, 0.5), (3, 0.33)]"
    for line in (f"in mlflow {points}", "wandb: loss 0.33333", f"in trackio {points}"):
        assert line in printed, printed[-3000:]
    assert "do not reach" not in printed
