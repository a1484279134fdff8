"""Tests a user's first job on this machine: a program and nothing else, without a job file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from local_jobs import HOWDAH, run_command

Howdah = Callable[..., "subprocess.CompletedProcess[str]"]
PROGRAM = """
import os, sys
import model
assert open("conf.txt").read() == "c"
os.makedirs("out", exist_ok=True)
open("out/" + os.environ["HOWDAH_RANK"], "w").write(" ".join([model.NAME, *sys.argv[1:], *sorted(os.listdir("in"))]))
print("done", os.environ["HOWDAH_WORLD_SIZE"], os.environ["MASTER_PORT"].isdigit())
if False:
    import torch
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "directory"
    (directory / "data").mkdir(parents=True)
    for name, text in {
        "train.py": PROGRAM,
        "model.py": "NAME = 'm'\n",
        "conf.txt": "c",
        "data/a": "1",
        "data/b": "2",
        "ok.py": "print('ok')\n",
    }.items():
        (directory / name).write_text(text)
    return directory


@pytest.fixture
def howdah(directory: Path, howdah_home: Path) -> Howdah:
    dropped = ("HADOOP_CONF_DIR", "HOWDAH_", "CUDA_", "LANG", "LC_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    env = {**kept, "HOWDAH_HOME": str(howdah_home), "LANG": "C.UTF-8"}

    def call(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return run_command([HOWDAH, *arguments], env={**env, **more}, cwd=directory)

    return call


COMMAND = ("--", sys.executable, "train.py", "--conf=conf.txt", "a b", "$HOME")
OPTIONS = ("--replicas", "2", "--memory", "128MiB", "--input", "data#in", "--output", "kept#out")


def test_a_command_runs_as_a_job(directory: Path, howdah: Howdah) -> None:
    done = howdah("run", "--logs", "all", *OPTIONS, *COMMAND)
    assert done.returncode == 0, done
    assert "files sent along: train.py, model.py, conf.txt (--file adds others)" in done.stderr
    assert "framework: pytorch, for train.py imports torch" in done.stderr
    assert done.stdout.count("| done 2 True") == 2
    found = [(directory / f"kept/worker-{rank}/{rank}").read_text() for rank in (0, 1)]
    assert found == ["m --conf=conf.txt a b $HOME a", "m --conf=conf.txt a b $HOME b"]


def test_init_writes_what_runs(directory: Path, howdah: Howdah) -> None:
    written = howdah("init", "--memory", "128MiB", "ok.py")
    assert (written.returncode, written.stdout) == (0, "written: job.yaml; try it: howdah run job.yaml\n")
    done = howdah("run", "job.yaml")
    assert done.returncode == 0, done
    assert "worker:0 | ok" in done.stdout
    assert howdah("init", "ok.py").returncode == 66


def test_a_plan_is_one_screen(howdah: Howdah) -> None:
    plan = howdah("plan", "--on", "local", *OPTIONS, *COMMAND)
    assert (plan.returncode, len(plan.stdout.splitlines()) <= 24) == (0, True), plan
    for words in (
        "train: pytorch on local",
        "worker  2      128 MiB  1       0 ",
        "train.py --conf=conf.txt 'a b'",
        "in all 2 containers: 256 MiB, 2 vcores, 0 GPUs; this machine has ",
        "files: train.py  ",
        "inputs: 2 files, 2 B, from ",
        " to in, shared among every role with data",
        "outputs: out (every task) → ",
        "to upload: 3 files, ",
    ):
        assert words in plan.stdout, plan.stdout
    chinese = howdah("plan", *OPTIONS, *COMMAND, HOWDAH_LANGUAGE="zh")
    assert "待上传：3 个文件" in chinese.stdout, chinese.stdout
    assert "随作业发送的文件：train.py" in chinese.stderr


def test_what_is_there_is_not_uploaded_again(howdah: Howdah) -> None:
    before = howdah("plan", *OPTIONS, *COMMAND).stdout
    assert "to upload: 3 files, " in before
    assert howdah("run", *OPTIONS, *COMMAND).returncode == 0
    assert (
        "to upload: nothing: all 3 files are there already" in howdah("plan", "--overwrite", *OPTIONS, *COMMAND).stdout
    )


def test_mistakes_name_what_was_typed(howdah: Howdah) -> None:
    done = howdah("run", "--replicas", "many", "--memory", "1 elephant", *COMMAND)
    assert done.returncode == 64
    assert "roles.worker.replicas: is 'many', must be a whole number (--replicas)" in done.stderr
    assert "(--memory)" in done.stderr


def test_a_name_is_the_jobs_name(directory: Path, howdah: Howdah) -> None:
    (directory / "j.yaml").write_text("vars: {name: x}\nname: job-${name}\nroles: {worker: {command: 'true'}}\n")
    assert howdah("plan", "--name", "mine", "j.yaml").stdout.startswith("mine: generic on local")
    assert howdah("plan", "--set", "name=y", "j.yaml").stdout.startswith("job-y: generic on local")


AGAIN = """
retries: 1
roles:
  worker: {command: 'echo once; [ $HOWDAH_EPOCH = 2 ] || exit 3', resources: {memory: 64MiB}}
"""


def test_a_program_that_is_started_again_is_its_second_attempt(directory: Path, howdah: Howdah) -> None:
    (directory / "again.yaml").write_text(AGAIN)
    done = howdah("run", "again.yaml")
    assert done.returncode == 0, done.stderr
    assert "epoch" not in done.stdout
    job_id = done.stdout.split()[1]
    (row,) = (line for line in howdah("status", job_id).stdout.splitlines() if line.startswith("worker:0 "))
    assert row.split()[:3] == ["worker:0", "SUCCEEDED", "2"]
    for name, code, told in (
        ("worker:9", 66, "the job has no task worker:9"),
        ("nope", 66, "the job has no task nope"),
        ("worker:x", 64, "'worker:x' is not a task: write role:index, such as worker:0"),
    ):
        unknown = howdah("logs", job_id, name)
        assert (unknown.returncode, unknown.stdout, unknown.stderr) == (code, "", f"howdah: {told}\n")
    seventh = howdah("logs", job_id, "--attempt", "7")
    assert (seventh.returncode, seventh.stdout) == (64, "")
    assert "--attempt: is 7, but the last attempt of worker:0 was 2" in seventh.stderr
    second = howdah("logs", job_id, "--attempt", "2")
    assert (
        second.stdout == "==> worker:0 attempt 1 stdout <==\nonce\nonce\n" + second.stdout.partition("once\nonce\n")[2]
    )
    assert "attempt 2 of worker:0 ran in the container of attempt 1, and printed into its files" in second.stderr


REPORTS = """
import json, os, urllib.request
def report(progress, **metrics):
    status = {"lastUpdatedTime": "2026-06-12T03:00:00+00:00", "progressPercentage": progress}
    status["metrics"] = [{"name": name, "value": str(value)} for name, value in metrics.items()]
    token = open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read().strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = json.dumps({"trainerStatus": status}).encode()
    request = urllib.request.Request(os.environ["KUBEFLOW_TRAINER_SERVER_URL"], body, headers, method="POST")
    with urllib.request.urlopen(request, timeout=5) as answer:
        assert answer.read() == body
report(0, total_steps=8)
report(50, loss=0.5, current_step=4, total_steps=8)
report(100, loss=0.25)
"""


def test_what_the_trainer_reports_is_kept(directory: Path, howdah: Howdah, howdah_home: Path) -> None:
    (directory / "train.py").write_text(REPORTS)
    done = howdah("run", "--memory", "128MiB", "--", sys.executable, "train.py")
    assert done.returncode == 0, done
    (log,) = howdah_home.glob("state/jobs/*/events.jsonl")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    points = [(event["name"], event["step"], event["value"]) for event in events if event["kind"] == "Measured"]
    assert points == [("loss", 4, 0.5), ("loss", 8, 0.25)]
