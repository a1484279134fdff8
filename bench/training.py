"""Compares epochs a second of the PyTorch example under howdah and started by hand.

Both print through bench/timer.py, so each epoch's line carries its time and the program is the example's, unchanged.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

from bench.processes import of_job, ran_s
from bench.report import Report, alternate, ratios
from bench.temp_home import HOWDAH, LIMIT_S, run, temp_home
from howdah.staging.virtual_environments import ensure_environment

ROUNDS, RANKS = 9, 2
EPOCHS, SKIPPED = 240, 20
LEAST = 0.99
START_S, WINDOW_S = 4.0, 8.0
HERE = Path(__file__).parent
EXAMPLE = HERE.parent / "examples" / "digits-pytorch"
DATA = HERE.parent / "examples" / "data" / "digits"
ARGUMENTS = ["timer.py", "train.py", "--epochs", str(EPOCHS)]
JOB = f"""name: training
framework: pytorch
roles:
  worker:
    command: [python, {", ".join(f'"{argument}"' for argument in ARGUMENTS)}]
    replicas: {RANKS}
    resources: {{ memory: 2GiB, vcores: 1 }}
files: ["{EXAMPLE}/train.py", "{HERE}/timer.py"]
environment:
  requirements: "{EXAMPLE}/requirements.lock"
inputs:
  - {{ path: "{DATA}/train", to: data }}
  - {{ path: "{DATA}/test", to: test, share: all }}
"""


def measure(report: Report) -> None:
    """The rate counts from a moment when both ranks are warm; how long the start takes is no part of it."""
    with temp_home() as home:
        (home / "job.yaml").write_text(JOB)
        python = ensure_environment(EXAMPLE / "requirements.lock", print) / "bin" / "python"
        directories = [_directory(home, rank) for rank in range(RANKS)]
        subjects = {
            "howdah": lambda: _rate(run([HOWDAH, "run", str(home / "job.yaml")]).output),
            "bare": lambda: _rate(_bare(python, directories)),
        }
        rates = alternate(subjects, ROUNDS)
        share = _own_share(home)
    report.figure("under howdah", rates["howdah"], "ep/s")
    report.figure("started by hand", rates["bare"], "ep/s")
    ratio = report.figure("ratio", ratios(rates["howdah"], rates["bare"]), "")
    report.figure("CPU of howdah's own processes, of the programs'", [share * 100], "%")
    report.target("training under howdah, of bare", ratio, LEAST, at_least=True)


def _directory(home: Path, rank: int) -> Path:
    """What howdah gives this rank: the program, its part of the training files, the test files."""
    directory = home / f"bare-{rank}"
    (directory / "data").mkdir(parents=True)
    for file in sorted((DATA / "train").iterdir())[rank::RANKS]:
        (directory / "data" / file.name).symlink_to(file)
    (directory / "test").symlink_to(DATA / "test")
    shutil.copy(EXAMPLE / "train.py", directory)
    shutil.copy(HERE / "timer.py", directory)
    return directory


def _bare(python: Path, directories: list[Path]) -> str:
    """What rank 0 printed."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = str(reserved.getsockname()[1])
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(RANKS), "PYTHONUNBUFFERED": "1"}
    ranks = []
    for rank, directory in enumerate(directories):
        environment = {**os.environ, **meeting, "RANK": str(rank), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        output = (directory / "stdout").open("w")
        with output:
            ranks.append(
                subprocess.Popen(
                    [str(python), *ARGUMENTS], cwd=directory, env=environment, stdout=output, stderr=output
                )
            )
    for process, directory in zip(ranks, directories, strict=True):
        if status := process.wait(LIMIT_S):
            raise SystemExit(f"the bare run failed ({status}):\n{(directory / 'stdout').read_text()[-3000:]}")
    return (directories[0] / "stdout").read_text()


def _own_share(home: Path) -> float:
    """What master and executors use while the programs train; unlike rates it hardly depends on the machine's load."""
    job = run([HOWDAH, "submit", str(home / "job.yaml")]).find(r"local-\S+")
    modules = {"ours": ("howdah.master", "howdah.executor"), "programs": ("train.py",)}
    while len(of_job("train.py", job)) < RANKS:
        time.sleep(0.2)
    time.sleep(START_S)
    pids = {name: [pid for one in group for pid in of_job(one, job)] for name, group in modules.items()}
    before = {name: sum(map(ran_s, group)) for name, group in pids.items()}
    time.sleep(WINDOW_S)
    used = {name: sum(map(ran_s, group)) - before[name] for name, group in pids.items()}
    run([HOWDAH, "cancel", job])
    return used["ours"] / used["programs"]


def _rate(output: str) -> float:
    """Epochs a second after the first ones."""
    times = {int(epoch): float(time) for time, epoch in re.findall(r"(\d+\.\d+) epoch (\d+):", output)}
    if EPOCHS not in times:
        raise SystemExit(f"no epoch {EPOCHS} in:\n{output}")
    return (EPOCHS - SKIPPED) / (times[EPOCHS] - times[SKIPPED])
