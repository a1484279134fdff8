"""Tests mpirun without ssh on a real cluster, torchrun that restarts processes, and Horovod where it is installed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.sandbox import Sandbox

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = Path(sys.executable).parent
LIMIT_S = 600
pytestmark = pytest.mark.timeout(LIMIT_S)
OPEN_MPI = pytest.mark.skipif(not shutil.which("mpirun"), reason="Open MPI is not installed (openmpi-bin)")
HOROVOD = os.environ.get("HOWDAH_TEST_HOROVOD", "")
# mpi4py finds the library by its usual name: that of the nodes.
REQUIREMENTS = "mpi4py==4.1.2\n"
RANKS = """\
import os, signal, sys
from pathlib import Path
from mpi4py import MPI
world = MPI.COMM_WORLD
assert world.rank == int(os.environ["HOWDAH_RANK"]) and world.size == int(os.environ["HOWDAH_WORLD_SIZE"])
assert "HOWDAH_GANG_KEY" not in os.environ and Path("ranks.py").exists()
version = MPI.Get_library_version().split(",")[0]
told = world.gather((os.environ["HOWDAH_TASK"], os.getcwd(), sys.argv[1:]))
print(f"rank {world.rank} of {world.size}, {version}, sum {world.allreduce(world.rank)}", flush=True)
if world.rank == 0:
    assert [task for task, _, _ in told] == [f"worker:{rank}" for rank in range(world.size)]
    assert len({directory for _, directory, _ in told}) == world.size
    print("words", told[1][2], flush=True)
if len(sys.argv) > 3 and world.rank == 1:
    print("rank 1 has had enough", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL) if sys.argv[3] == "kill" else world.Abort(7)
world.Barrier()
"""
WORLD = """\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
found = torch.ones(1)
dist.all_reduce(found)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}, sum {found.item()}", flush=True)
dist.destroy_process_group()
"""
FALL = """\
import builtins, os, runpy, signal
say, told = builtins.print, []
def told_off(*values, **options):
    say(*values, **options)
    told.extend(value for value in values if "progress:" in str(value))
    first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if len(told) == 3 and first and os.environ["HOWDAH_TASK"] == "worker:1":
        os.kill(os.getpid(), signal.SIGKILL)
builtins.print = told_off
runpy.run_path("train.py", run_name="__main__")
"""
# Adds up, step by step, from the last step that the group has written down, until there are enough steps and both are
# there; one task's executor is killed on the way.
STEPS = """\
import os, signal, sys, time
from pathlib import Path
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, size, kept = dist.get_rank(), dist.get_world_size(), Path(sys.argv[1])
falls = (os.environ["HOWDAH_TASK"], os.environ["HOWDAH_ATTEMPT"]) == (sys.argv[2], "1")
start = int(kept.read_text()) if kept.exists() else 0
print(f"from {start} with {size}", flush=True)
for step in range(start, 4000):
    if step >= 60 and size == 2:
        break
    if falls and step == 20:
        pid = os.getpid()
        while b"howdah.executor" not in Path(f"/proc/{pid}/cmdline").read_bytes():
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(pid, signal.SIGKILL)
        time.sleep(60)
    total = torch.ones(1)
    dist.all_reduce(total)
    assert total.item() == size
    if rank == 0:
        kept.with_suffix(".new").write_text(str(step + 1))
        kept.with_suffix(".new").replace(kept)
    time.sleep(0.05)
dist.barrier()
print("done with", size, flush=True)
dist.destroy_process_group()
"""
# The container that replaces the lost one comes late: when the others have gone on without it.
LATE = "i=0; [ $HOWDAH_ATTEMPT = 1 ] || while [ $(cat step) -lt 30 ] && [ $((i+=1)) -lt 1500 ]; do sleep 0.1; done; "


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of a user whose jobs are in a directory of this test, and whose cache is the real one."""
    kept = {name: value for name, value in os.environ.items() if name not in ("HOWDAH_HOME", "HADOOP_CONF_DIR")}
    return {**kept, "XDG_STATE_HOME": str(tmp_path / "state"), "HOWDAH_SHARED_PATHS": "/"}


def run(directory: Path, env: dict[str, str], program: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAMS / program), *words]
    return subprocess.run(command, env=env, cwd=directory, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def said(directory: Path, env: dict[str, str], done: subprocess.CompletedProcess[str], task: str) -> str:
    """What a task has printed, on either stream."""
    job = next(word for word in done.stdout.split() if word.startswith(("application_", "local-")))
    shown = run(directory, env, "howdah", "logs", job, task)
    return shown.stdout + shown.stderr


def ranks(directory: Path, command: str) -> None:
    (directory / "requirements.txt").write_text(REQUIREMENTS)
    (directory / "ranks.py").write_text(RANKS)
    worker = {"command": command, "replicas": 3, "resources": {"memory": "512MiB"}}
    job = {"framework": "mpi", "roles": {"worker": worker}, "files": ["ranks.py"]}
    (directory / "job.yaml").write_text(json.dumps({**job, "environment": {"requirements": "requirements.txt"}}))


@OPEN_MPI
def test_mpi_runs_without_ssh_on_the_nodes_own_open_mpi(sandbox: Sandbox, tmp_path: Path, home: dict[str, str]) -> None:
    ranks(tmp_path, "cat /dev/null | python -m mpi4py ranks.py 'a b' \"$HOWDAH_TASK\"")
    env = {**home, **sandbox.env()}
    done = run(tmp_path, env, "howdah", "run", "--on", "yarn", "job.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rank 0 of 3, Open MPI v" in done.stdout
    assert "words ['a b', 'worker:1']" in done.stdout
    assert "rank 2 of 3" in said(tmp_path, env, done, "worker:2")


@OPEN_MPI
@pytest.mark.parametrize(("how", "end"), [("kill", "killed by SIGKILL (9)"), ("abort", "exit code 7")])
def test_the_rank_that_fails_is_named(how: str, end: str, tmp_path: Path, home: dict[str, str]) -> None:
    ranks(tmp_path, f"python -m mpi4py ranks.py a b {how}")
    done = run(tmp_path, home, "howdah", "run", "--on", "local", "job.yaml")
    assert done.returncode != 0
    assert f"FAILED: worker:1 on 127.0.0.1: {end}" in done.stdout + done.stderr
    assert "rank 1 has had enough" in done.stdout + done.stderr


@OPEN_MPI
def test_mpi_by_hbox_submit(sandbox: Sandbox, tmp_path: Path, home: dict[str, str]) -> None:
    ranks(tmp_path, "")
    env = {**home, **sandbox.env(), "HOWDAH_ENVIRONMENT": str(tmp_path / "requirements.txt")}
    line = "--app-type mpi --app-name ranks --worker-num 2 --worker-memory 512M --queue default --files ranks.py"
    done = run(tmp_path, env, "hbox-submit", *line.split(), "python", "-m", "mpi4py", "ranks.py", "a b", "c")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "words ['a b', 'c']" in done.stdout


def test_a_task_without_open_mpi_says_so(tmp_path: Path, home: dict[str, str]) -> None:
    """A PATH with Python, and nothing else: as on a node where nobody has installed Open MPI."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(Path(sys.executable).resolve())
    worker = {"command": ["sleep", "60"], "replicas": 2, "env": {"PATH": str(programs)}}
    (tmp_path / "job.yaml").write_text(json.dumps({"framework": "mpi", "roles": {"worker": worker}}))
    done = run(tmp_path, home, "howdah", "run", "--on", "local", "job.yaml")
    assert done.returncode != 0
    assert "worker:0 on 127.0.0.1: exit code 1" in done.stdout + done.stderr
    assert "there is no mpirun on PATH: the nodes need Open MPI" in done.stdout + done.stderr


@pytest.mark.parametrize("launcher", [("torchrun",), ("python", "-m", "torch.distributed.run")], ids=["own", "module"])
def test_tasks_of_a_command_find_each_other(tmp_path: Path, home: dict[str, str], launcher: tuple[str, ...]) -> None:
    (tmp_path / "world.py").write_text(WORLD)
    requirements = str(EXAMPLES / "digits-pytorch/requirements.txt")
    options = ("--on", "local", "--replicas", "2", "--memory", "2GiB", "--requirements", requirements, "--logs", "all")
    done = run(tmp_path, home, "howdah", "run", *options, "--", *launcher, "world.py")
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in range(2):
        assert f"rank {rank} of 2, sum 2.0" in done.stdout


def test_torchrun_starts_a_killed_process_again(tmp_path: Path, home: dict[str, str]) -> None:
    where = EXAMPLES / "digits-fsdp"
    (tmp_path / "fall.py").write_text(FALL)
    text = (where / "job.yaml").read_text().replace("--max-restarts 2 train.py", "--max-restarts 2 fall.py")
    text = text.replace("../", f"{EXAMPLES}/").replace("[train.py]", f'["{where / "train.py"}", fall.py]')
    (tmp_path / "job.yaml").write_text(text)
    model = tmp_path / "model"
    done = run(tmp_path, home, "howdah", "run", "--on", "local", "--set", f"DIGITS_MODEL={model}", "job.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    told = said(tmp_path, home, done, "worker:1")
    assert "start 0: " in told
    assert "start 1: " in told
    assert "epoch 10: " in told.partition("start 1: ")[2]
    assert (model / "model.pt").exists()


def steps(
    directory: Path, env: dict[str, str], fallen: str, before: str = "", **worker: object
) -> tuple[str, list[str]]:
    """What the client said, and what the two tasks' programs did; one task's executor is lost."""
    (directory / "steps.py").write_text(STEPS)
    kept = shlex.quote(str(directory / "step"))
    command = f"{before.replace('step', kept)}exec torchrun --max-restarts 5 steps.py {kept} {fallen}"
    role = {"command": command, "replicas": 2, "on_failure": "restart", "resources": {"memory": "1GiB"}, **worker}
    lock = str(EXAMPLES / "digits-pytorch" / "requirements.lock")
    job = {"framework": "torchrun", "files": ["steps.py"], "environment": {"requirements": lock}}
    (directory / "job.yaml").write_text(json.dumps({**job, "roles": {"worker": role}}))
    done = run(directory, env, "howdah", "run", "--on", "local", "job.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    told = said(directory, env, done, "worker:0").splitlines()
    return done.stdout + done.stderr, [line for line in told if line.startswith(("from ", "done "))]


def test_torchrun_goes_on_without_a_lost_task_and_takes_in_the_next(tmp_path: Path, home: dict[str, str]) -> None:
    """Nobody waits for a container as long as there are enough."""
    client, told = steps(tmp_path, home, "worker:1", LATE, min_replicas=1, resources={"memory": "2GiB"})
    assert "worker:1 on 127.0.0.1: its executor was killed by signal 9" in client
    sizes = [line.rpartition(" ")[2] for line in told]  # a round more where torchrun's own keep-alive comes late
    assert (sizes[0], told[-1]) == ("2", "done with 2")
    assert "1" in sizes[1:-1], told
    assert "exit code 1" not in client  # torchrun itself went on


def test_torchruns_meet_again_when_the_host_of_their_store_is_lost(tmp_path: Path, home: dict[str, str]) -> None:
    """The other's torchrun ends with the store, and is told where the new one is."""
    client, told = steps(tmp_path, home, "worker:0")
    assert "worker:0 on 127.0.0.1: its executor was killed by signal 9" in client
    assert told[-1] == "done with 2"
    assert int(told[-2].split()[1]) >= 20


@pytest.mark.skipif(not HOROVOD, reason="no wheel fits today's Pythons: HOWDAH_TEST_HOROVOD names a directory with one")
def test_horovod_itself(tmp_path: Path, home: dict[str, str]) -> None:
    (tmp_path / "train.py").write_text(
        "import torch, horovod.torch as hvd\n"
        "hvd.init()\n"
        "total = hvd.allreduce(torch.tensor([float(hvd.rank())]), op=hvd.Sum)\n"
        "print(f'rank {hvd.rank()} of {hvd.size()}, sum {total.item():g}', flush=True)\n"
    )
    job = {
        "framework": "horovod",
        "roles": {"worker": {"command": "python train.py", "replicas": 3, "resources": {"memory": "1GiB"}}},
        "env": {"PYTHONPATH": HOROVOD},
        "environment": {"requirements": str(EXAMPLES / "digits-pytorch" / "requirements.lock")},
        "files": ["train.py"],
    }
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    done = run(tmp_path, home, "howdah", "run", "--on", "local", "job.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rank 0 of 3, sum 3" in done.stdout
