"""Tests `howdah trace` of real local processes: a job's program, its children, and the GPUs assigned to it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from local_jobs import HOWDAH, eventually, howdah_home, run_command

from howdah.cli.trace import _ask_executors
from howdah.client.process_owner import is_here, owner_of

# A child in a session of its own, one of it with no variables left: a data loader's worker, and something odder.
PROGRAM = """
import os, subprocess, time
bare = subprocess.Popen(["sleep", "600"], start_new_session=True, env={})
kept = subprocess.Popen(["sleep", "600"], start_new_session=True)
print("children", os.getpid(), kept.pid, bare.pid, flush=True)
time.sleep(600)
"""


@dataclass(frozen=True)
class Running:
    """A job that runs: worker:1 holds the second of two GPUs. `pids` are its program and two children of that."""

    id: str
    home: Path
    pids: tuple[int, int, int]

    def trace(self, of: object) -> subprocess.CompletedProcess[str]:
        return howdah(self.home, "trace", "--json", str(of))


def howdah(home: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    dropped = ("HADOOP_CONF_DIR", "HOWDAH_", "CUDA_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    env = {**kept, "HOWDAH_HOME": str(home), "HOWDAH_LOCAL_GPUS": "2"}
    return run_command([HOWDAH, *arguments], env=env, cwd=cwd)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("work")
    (directory / "program.py").write_text(PROGRAM)
    resources = {"memory": "128MiB", "gpus": 1}
    role = {"command": f"{sys.executable} program.py", "replicas": 2, "resources": resources}
    job = {"name": "traced", "roles": {"chief": {"command": "sleep 600"}, "worker": role}, "files": ["program.py"]}
    (directory / "job.yaml").write_text(json.dumps({**job, "timeouts": {"stop": "1s"}}))
    with howdah_home(tmp_path_factory.mktemp("home")) as home:
        id_ = howdah(home, "submit", "job.yaml", cwd=directory).stdout.strip()

        def children() -> re.Match[str] | None:
            return re.search(r"children (\d+) (\d+) (\d+)\n", howdah(home, "logs", id_, "worker:1").stdout)

        found = eventually(children, "the pids of its processes", output=lambda: howdah(home, "logs", id_).stdout)
        program, kept, bare = map(int, found.groups())
        yield Running(id_, home, (program, kept, bare))


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("host", ["", "localhost:", "127.0.0.1:"])
def test_any_process_of_the_tree(running: Running, which: int, host: str) -> None:
    found = json.loads(running.trace(f"{host}{running.pids[which]}").stdout)
    assert (found["job"], found["name"], found["task"], found["role"]) == (running.id, "traced", "worker:1", "worker")
    assert (found["index"], found["rank"], found["attempt"], found["state"]) == (1, 2, 1, "RUNNING")
    assert (found["pid"], found["process"], found["gpus"]) == (running.pids[0], running.pids[which], ["1"])
    assert found["user"]


@pytest.mark.parametrize(("gpu", "task"), [("gpu0", "worker:0"), ("localhost/gpu1", "worker:1")])
def test_a_gpu_that_the_engine_dealt(running: Running, gpu: str, task: str) -> None:
    assert json.loads(running.trace(gpu).stdout)["task"] == task


def test_the_text_names_job_task_and_gpus(running: Running) -> None:
    first, *rest = howdah(running.home, "trace", f"{running.pids[2]}").stdout.splitlines()
    assert first == f"{running.id} worker:1"
    assert "job traced, RUNNING, of user " in rest[0]
    assert "role worker, index 1, attempt 1, rank 2" in rest[1]
    assert "GPUs 1" in rest[3]


def test_a_process_or_gpu_of_no_job_is_not_found(running: Running) -> None:
    never = Path("/proc/sys/kernel/pid_max").read_text().strip()  # all pids are below it
    for of, words in ((os.getpid(), "no job of "), (never, "no process "), ("gpu7", "no job of ")):
        done = running.trace(of)
        assert (done.returncode, done.stdout) == (66, "")
        assert words in done.stderr


def test_variables_are_enough_and_not_needed(running: Running) -> None:
    program, kept, bare = running.pids
    assert (owner_of(kept).job, owner_of(kept).task) == (running.id, "worker:1")
    assert owner_of(bare).pids[:2] == (bare, program)


def test_an_executor_elsewhere_is_asked(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(running.home))
    for pid in running.pids:
        assert (_ask_executors("127.0.0.1", pid, "") or {}).get("task") == "worker:1"
    assert _ask_executors("127.0.0.1", os.getpid(), "") is None
    assert _ask_executors("elsewhere", running.pids[0], "") is None


def test_what_is_here() -> None:
    assert is_here("localhost")
    assert is_here("127.0.0.1")
    assert not is_here("192.0.2.1")
    assert not is_here("no such host")
