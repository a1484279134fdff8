"""Tests that launchers in commands are recognised, and refused where their tasks would not find each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.client.command_job import CommandOptions, load_command
from howdah.frameworks import names
from howdah.spec import JobSpec, Role
from howdah.spec.launchers import find_launcher
from howdah.spec.validation import find_mistakes


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("torchrun train.py", "torchrun"),
        (("torchrun", "--nproc-per-node", "8", "train.py"), "torchrun"),
        ("cd src && OMP_NUM_THREADS=1 exec torchrun train.py", "torchrun"),
        ("/opt/venv/bin/torchrun train.py 2>&1 | tee log", "torchrun"),
        ("python3.11 -u -m torch.distributed.run train.py", "torchrun"),
        (("python", "-m", "torch.distributed.launch", "train.py"), "torchrun"),
        ("set -e\nuv run torchrun train.py", "torchrun"),
        (("bash", "-c", "source env.sh; torchrun train.py"), "torchrun"),
        ("if true; then torchrun train.py; fi", "torchrun"),
        ("timeout 100 torchrun train.py", "torchrun"),
        (("nice", "-n", "5", "torchrun", "train.py"), "torchrun"),
        ("env -u A torchrun train.py", "torchrun"),
        ("uv run --with torch torchrun train.py", "torchrun"),
        ("conda run -n x torchrun train.py", "torchrun"),
        ("srun --label python -m torch.distributed.run train.py", "torchrun"),
        (("bash", "-lc", "torchrun train.py"), "torchrun"),
        ("cd src && bash -ec 'set -u; torchrun train.py'", "torchrun"),
        ("python3 -mtorch.distributed.run train.py", "torchrun"),
        ("# don't stop\ntorchrun train.py # it's all", "torchrun"),
        ("accelerate config", ""),
        ("accelerate --help", ""),
        ("timeout 100 python train.py torchrun", ""),
        ("accelerate launch train.py", "accelerate launch"),
        ("deepspeed train.py --deepspeed ds.json", "deepspeed"),
        ("mpirun -np 4 ./solve", "mpirun"),
        ("mpiexec ./solve", "mpirun"),
        ("horovodrun -np 2 python train.py", "horovodrun"),
        ("python train.py --launcher torchrun", ""),
        ("echo torchrun", ""),
        ("cat torchrun", ""),
        ("python -m trainer", ""),
        ("echo 'no end", ""),
        ("", ""),
    ],
)
def test_what_a_command_launches(command: str | tuple[str, ...], name: str) -> None:
    found = find_launcher(command)
    assert (found[0].name if found else "") == name


def problems(command: str | tuple[str, ...], framework: str, replicas: int = 2) -> list[str]:
    job = JobSpec({"worker": Role(command, replicas)}, framework=framework)
    return [str(mistake) for mistake in find_mistakes(job, names())]


@pytest.mark.parametrize("framework", ["generic", "pytorch", "tensorflow"])
def test_a_torchrun_that_is_told_of_no_other_is_refused(framework: str) -> None:
    assert problems("torchrun train.py", framework) == [
        f"roles.worker.command: runs torchrun in each of 2 tasks, which would not find each other with framework"
        f" {framework!r}: write `framework: torchrun` (`--framework torchrun`)"
    ]


@pytest.mark.parametrize(
    ("command", "framework", "remedy"),
    [
        ("accelerate launch train.py", "pytorch", "write `torchrun PROGRAM …` in place of `accelerate launch …"),
        ("accelerate launch train.py", "torchrun", "write `torchrun PROGRAM …` in place of `accelerate launch …"),
        ("deepspeed train.py", "generic", "write `torchrun PROGRAM …` in place of `deepspeed … PROGRAM …`"),
        ("mpirun -np 2 ./solve", "mpi", "write the program alone, with `framework: mpi`"),
        ("horovodrun -np 2 python train.py", "horovod", "write the program alone, with `framework: horovod`"),
    ],
)
def test_other_launchers_are_refused_with_the_line_to_write(command: str, framework: str, remedy: str) -> None:
    (problem,) = problems(command, framework)
    assert remedy in problem


@pytest.mark.parametrize(
    ("command", "framework", "replicas"),
    [
        ("torchrun train.py", "torchrun", 2),
        ("torchrun train.py", "pytorch", 1),
        ("mpirun -np 4 ./solve", "generic", 1),
        ("torchrun --nnodes=2 --node-rank=$HOWDAH_RANK --master-addr=$H train.py", "generic", 2),
        ("torchrun --standalone sweep.py", "generic", 2),
        ("accelerate launch --num_machines 2 --machine_rank $HOWDAH_RANK train.py", "generic", 2),
        ("mpirun --hostfile hosts ./solve", "generic", 2),
        ("python train.py", "pytorch", 2),
    ],
)
def test_what_is_connected_or_alone_is_allowed(command: str, framework: str, replicas: int) -> None:
    assert problems(command, framework, replicas) == []


def test_tasks_of_several_roles_count_together() -> None:
    job = JobSpec({"chief": Role("torchrun train.py"), "worker": Role("torchrun train.py")}, framework="pytorch")
    assert [mistake.place for mistake in find_mistakes(job, names())] == [
        "roles.chief.command",
        "roles.worker.command",
    ]


@pytest.mark.parametrize("words", [("torchrun", "train.py"), ("torchrun train.py",)])
def test_a_command_with_a_launcher_chooses_its_framework(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "train.py").write_text("import torch")
    told: list[str] = []
    loaded = load_command(words, CommandOptions(replicas="2"), tmp_path, {}, {}, told.append)
    assert loaded.spec.framework == "torchrun"
    assert "framework: torchrun, for the command runs torchrun (--framework says otherwise)" in told


def test_copies_that_are_not_told_of_each_other_are_named(tmp_path: Path) -> None:
    told: list[str] = []
    load_command(("./run.sh",), CommandOptions(replicas="3"), tmp_path, {}, {}, told.append)
    assert told == [
        "framework: generic, so the 3 tasks are copies that are not told of each other (--framework says otherwise)"
    ]
