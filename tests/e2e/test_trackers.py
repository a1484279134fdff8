"""Tests that a program's metrics reach MLflow, Trackio and Weights & Biases, each with a store on this machine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HOWDAH = str(Path(sys.executable).with_name("howdah"))
INSTALL_LIMIT_S = 900
REQUIREMENTS = "mlflow-skinny==3.17.2\ntrackio==0.43.0\nwandb==0.31.0\n"
PROGRAM = """
import os, threading, time
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
    for value in (5.0, 6.0):
        here.metric("uncounted", value)  # its steps are smaller than those before
    thread = threading.Thread(target=here.metric, args=("elsewhere", 7.0, 2))
    thread.start()
    thread.join()
    client = mlflow.MlflowClient()
    deadline = time.monotonic() + 60
    while "elsewhere" not in client.get_run(run.info.run_id).data.metrics and time.monotonic() < deadline:
        time.sleep(0.1)


def told(name, points):
    print(name, [(step, round(value, 2)) for step, value in points])


for metric in ("loss", "uncounted", "elsewhere"):
    history = client.get_metric_history(run.info.run_id, metric)
    told(f"mlflow {metric}", [(point.step, point.value) for point in history])
wandb.finish()  # prints the last value of each metric
trackio.finish()
from trackio.sqlite_storage import SQLiteStorage

(name,) = SQLiteStorage.get_runs("digits")
points = SQLiteStorage.get_logs("digits", name)
for metric in ("loss", "uncounted", "elsewhere"):
    told(f"trackio {metric}", [(point["step"], point[metric]) for point in points if metric in point])
"""

pytestmark = pytest.mark.timeout(INSTALL_LIMIT_S + 60)


def test_metrics_reach_each_tracker_that_has_a_run(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(REQUIREMENTS)
    (tmp_path / "train.py").write_text(PROGRAM)
    command = [HOWDAH, "run", "--on", "local", "--memory", "2GiB", "--requirements", "requirements.txt"]
    command += ["--env", "HOWDAH_METRICS_TO=mlflow, trackio,wandb", "--", "python", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False)
    printed = re.sub(" +", " ", done.stdout + done.stderr)  # Weights & Biases aligns names
    assert done.returncode == 0, printed[-3000:]
    points = {"loss": "[(1, 1.0), (2, 0.5), (3, 0.33)]", "uncounted": "[(0, 5.0), (1, 6.0)]", "elsewhere": "[(2, 7.0)]"}
    for line in (
        *(f"{tracker} {metric} {found}" for tracker in ("mlflow", "trackio") for metric, found in points.items()),
        *("wandb: loss 0.33333", "wandb: uncounted 6", "wandb: elsewhere 7"),
    ):
        assert line in printed, f"{line}\n{printed[-5000:]}"
    assert "do not reach" not in printed
