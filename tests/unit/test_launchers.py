"""Tests that launchers in commands are recognised, and refused where their tasks would not find each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.client.command_job import CommandOptions, load_command
from howdah.frameworks import names
from howdah.spec import JobSpec, Role
from howdah.spec.launchers import find_launches, unconnected
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
        ("srun --exclusive torchrun train.py", "torchrun"),
        ("srun -n 2 -u torchrun train.py", "torchrun"),
        ("env -i torchrun train.py", "torchrun"),
        ("setsid -w torchrun train.py", "torchrun"),
        ("sudo -n -u joe torchrun train.py", "torchrun"),
        (("bash", "-lc", "torchrun train.py"), "torchrun"),
        ("cd src && bash -ec 'set -u; torchrun train.py'", "torchrun"),
        ("python3 -mtorch.distributed.run train.py", "torchrun"),
        ("# don't stop\ntorchrun train.py # it's all", "torchrun"),
        ("uvx torchrun train.py", "torchrun"),
        ("pdm run torchrun train.py", "torchrun"),
        ("pixi run --frozen torchrun train.py", "torchrun"),
        ("chrt -i 0 torchrun train.py", "torchrun"),
        ("flock lock torchrun train.py", "torchrun"),
        ("tini -- torchrun train.py", "torchrun"),
        ("singularity exec --nv image torchrun train.py", "torchrun"),
        ("eval torchrun train.py", "torchrun"),
        ("eval 'exec torchrun train.py'", "torchrun"),
        ("bash -euo pipefail -c 'torchrun train.py'", "torchrun"),
        ("bash -l -c 'torchrun train.py'", "torchrun"),
        (("bash", "--login", "-e", "-c", "torchrun train.py"), "torchrun"),
        (">log torchrun train.py", "torchrun"),
        ("until torchrun train.py; do sleep 1; done", "torchrun"),
        ('"$(which torchrun)" train.py', "torchrun"),
        ("RUN='torchrun --nproc_per_node 2'\n$RUN train.py", "torchrun"),
        ("python /usr/bin/torchrun train.py", "torchrun"),
        ("coverage run -m torch.distributed.run train.py", "torchrun"),
        ("python -m coverage run -m torch.distributed.run train.py", "torchrun"),
        ("cat > note.txt <<EOF\ndon't worry\nEOF\ntorchrun train.py", "torchrun"),
        ("bash <<EOF\ntorchrun train.py\nEOF", "torchrun"),
        ("echo don't\ntorchrun train.py", "torchrun"),
        ("accelerate \\\n  launch train.py", "accelerate launch"),
        ("python -m accelerate.commands.accelerate_cli launch train.py", "accelerate launch"),
        ("python -m deepspeed train.py", "deepspeed"),
        ("orterun -np 2 ./solve", "mpirun"),
        ("mpirun.openmpi -np 2 ./solve", "mpirun"),
        ("python -m horovod.runner -np 2 python train.py", "horovodrun"),
        ("fabric run --devices 2 train.py", "fabric run"),
        ("colossalai run --nproc_per_node 2 train.py", "colossalai run"),
        ("fabric consolidate checkpoints", ""),
        ("colossalai check -i", ""),
        ("cat > README <<EOF\ntorchrun train.py\nEOF", ""),
        ("pip install deepspeed accelerate", ""),
        ("conda install -y deepspeed accelerate", ""),
        ("command -v torchrun >/dev/null", ""),
        ("torchrun --version", ""),
        ("gdb --args mpirun ./solve", "mpirun"),
        ("timeout 100 nice -n 5 numactl --cpunodebind=0 torchrun train.py", "torchrun"),
        ("hdfs dfs -put deepspeed /models/", ""),
        ("rclone copy deepspeed remote:x", ""),
        ("tensorboard --logdir deepspeed --port 1", ""),
        ("./train.sh deepspeed config.json", ""),
        ("timeout 100 ./train.sh deepspeed config.json", ""),
        ("pytest tests -k deepspeed -x", ""),
        ("make deepspeed test", ""),
        ("npm run deepspeed test", ""),
        ("tmux new -s deepspeed -d", ""),
        ("wandb init -p deepspeed x", ""),
        ("conda run -n deepspeed python t.py", ""),
        ("uv run --with deepspeed python t.py", ""),
        ("./tool bash -c 'torchrun train.py'", ""),
        ("for x in torchrun deepspeed; do echo $x; done", ""),
        ("tool out/deepspeed x", ""),
        ("./train --launcher torchrun x", ""),
        ("eval " * 5000, ""),
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
    found = next(find_launches(command), None)
    assert (found.launcher.name if found else "") == name


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
        ("fabric run --devices 2 train.py", "pytorch", "in place of `fabric run … PROGRAM …`"),
        ("fabric run --num-nodes=1 train.py", "pytorch", "in place of `fabric run … PROGRAM …`"),
        ("colossalai run --nproc_per_node 2 train.py", "generic", "in place of `colossalai run … PROGRAM …`"),
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
        ("if [ $MODE = ddp ]; then torchrun train.py; else python train.py; fi", "generic", 2),
        ("[ $MODE = ddp ] && torchrun train.py", "generic", 2),
        ("python prepare.py || torchrun train.py", "generic", 2),
        ("accelerate launch --num_machines 2 --machine_rank $HOWDAH_RANK train.py", "generic", 2),
        ("mpirun --hostfile hosts ./solve", "generic", 2),
        ("torchrun \\\n  --nnodes=2 \\\n  --node_rank=$HOWDAH_RANK --master_addr=127.0.0.1 train.py", "pytorch", 2),
        ('ARGS=(\n --nproc_per_node 8  # GPUs\n --nnodes $N\n)\ntorchrun "${ARGS[@]}" train.py', "pytorch", 2),
        ("torchrun --nnodes 1:4 --rdzv_endpoint=$HOST:29500 train.py", "generic", 2),
        ("torchrun $OPTIONS train.py", "generic", 2),
        ("accelerate launch --multi_gpu $OPTIONS train.py", "generic", 2),
        ("accelerate launch --config_file two.yaml train.py", "generic", 2),
        ("deepspeed --hostfile=hosts train.py", "generic", 2),
        ("fabric run --num-nodes 2 --node-rank $RANK --main-address $MASTER_ADDR train.py", "pytorch", 2),
        ("fabric run --devices 2 train.py", "pytorch", 1),
        ("colossalai run --host a,b train.py", "generic", 2),
        ("mpirun --mca btl tcp,self -H a:2,b:2 ./solve", "generic", 2),
        ("horovodrun -np 4 -H a:2,b:2 python train.py", "generic", 2),
        ("torchrun --nnodes=1 train.py", "torchrun", 1),
        ("torchrun --master_port 29501 train.py", "torchrun", 2),
        ("python train.py", "pytorch", 2),
    ],
)
def test_what_is_connected_or_alone_is_allowed(command: str, framework: str, replicas: int) -> None:
    assert problems(command, framework, replicas) == []


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --rdzv_backend=c10d --rdzv_endpoint=localhost:0 train.py",
        "torchrun --nnodes=1 train.py",
        "torchrun --nnodes 1:4 --rdzv_endpoint=localhost:0 train.py",
        "torchrun --master_port 29501 --master_addr localhost train.py",
        "torchrun train.py --nnodes 2",
        "NODES=1\ntorchrun --nnodes $NODES --rdzv_endpoint=$HOST:29500 train.py",
        "accelerate launch --main_process_port 29501 train.py",
        "accelerate launch --num_machines 1 train.py",
        "deepspeed --include localhost:0,1 train.py",
        "deepspeed --num_nodes 1 train.py",
        "deepspeed --no_ssh train.py",
        "mpirun --host localhost:2 ./solve",
        "mpirun -np 4 ./solve -f conf",
        "horovodrun -np 2 -H 127.0.0.1:2 python train.py",
        "torchrun --standalone prepare.py; torchrun train.py",
    ],
)
def test_options_that_connect_nothing_do_not_count(command: str) -> None:
    (problem,) = problems(command, "generic")
    assert "would not find each other with framework 'generic'" in problem


GROUP = "torchrun --nnodes=$WORLD_SIZE --node_rank=$RANK --master_addr=$MASTER_ADDR --master_port=$MASTER_PORT"
OF_GROUP = f"write `{GROUP} PROGRAM …`, under PyTorch's framework"
ALONE = "write the program alone, which the framework connects in each task"


@pytest.mark.parametrize(
    ("command", "framework", "remedy"),
    [
        ("torchrun --nproc_per_node=2 train.py", "tony-pytorch", OF_GROUP),
        ("torchrun train.py", "submarine-pytorch", OF_GROUP),
        ("deepspeed train.py", "xlearning-pytorch", OF_GROUP),
        ("mpirun -np 2 ./solve", "xlearning-mpi", ALONE),
        ("horovodrun -np 2 python train.py", "tony-horovod", ALONE),
        ("torchrun train.py", "xgboost", "write `framework: torchrun`"),
    ],
)
def test_all_of_howdahs_frameworks_are_known(command: str, framework: str, remedy: str) -> None:
    (problem,) = problems(command, framework)
    assert remedy in problem


@pytest.mark.parametrize("framework", ["pytorch", "tony-pytorch", "submarine-pytorch", "xlearning-pytorch"])
def test_a_torchrun_of_the_groups_variables_is_connected(framework: str) -> None:
    assert problems(f"{GROUP} train.py", framework) == []


@pytest.mark.parametrize("command", ["accelerate launch train.py", "mpirun -np 2 ./solve", "horovodrun -np 2 ./x"])
@pytest.mark.parametrize("framework", ["tony-pytorch", "xlearning-xgboost", "submarine-tensorflow"])
def test_what_may_work_under_another_systems_framework_is_told_only(command: str, framework: str) -> None:
    assert problems(command, framework) == []


@pytest.mark.parametrize("framework", ["tony", "submarine", "xlearning", "xlearning-tensorflow-single"])
def test_tasks_that_were_strangers_to_each_other_may_be_alone(framework: str) -> None:
    assert problems("torchrun train.py", framework) == []
    job = JobSpec({"worker": Role("torchrun train.py", 2)}, framework=framework)
    assert list(unconnected(job, {"worker": list(find_launches("torchrun train.py"))})) == [
        "worker runs torchrun in each of 2 tasks, which are not told of each other with framework"
        f" {framework}: each trains a model of its own"
    ]


def test_the_first_task_of_ray_alone_runs_the_command() -> None:
    assert problems("torchrun train.py", "ray") == []
    roles = {"head": Role("python t.py"), "worker": Role("torchrun train.py", 2)}
    assert len(find_mistakes(JobSpec(roles, framework="ray"), names())) == 1


def test_nothing_is_known_of_a_framework_of_another_package() -> None:
    job = JobSpec({"worker": Role("torchrun train.py", 2)}, framework="theirs")
    assert list(unconnected(job, {"worker": list(find_launches("torchrun train.py"))})) == []


@pytest.mark.parametrize("option", ["--standalone", "--nnodes=1", "--rdzv_endpoint=localhost:0"])
def test_options_that_keep_torchrun_from_the_others_are_refused_with_its_framework(option: str) -> None:
    (problem,) = problems(f"torchrun {option} train.py", "torchrun")
    assert f"runs torchrun with `{option}` in each of 2 tasks, which would not find each other: leave it out" in problem


def test_a_role_of_one_task_may_be_alone() -> None:
    roles = {"worker": Role("torchrun train.py", 4), "eval": Role("torchrun --standalone evaluate.py")}
    assert find_mistakes(JobSpec(roles, framework="torchrun"), names()) == []


def test_only_the_tasks_of_its_role_count_for_an_option() -> None:
    roles = {"worker": Role("torchrun train.py", 4), "eval": Role("torchrun --standalone evaluate.py", 2)}
    (mistake,) = find_mistakes(JobSpec(roles, framework="torchrun"), names())
    assert mistake.place == "roles.eval.command"
    assert "in each of 2 tasks" in mistake.problem


@pytest.mark.parametrize(
    "before",
    [
        ". ./conf.sh;",
        "source conf.sh\n",
        "eval $(./conf);",
        "read NNODES < f;",
        "printf -v NNODES 2;",
        "mapfile NNODES < f;",
    ],
)
def test_a_value_that_other_code_may_set_is_not_known(before: str) -> None:
    assert problems(f"NNODES=1; {before} torchrun --nnodes $NNODES train.py", "generic") == []
    job = JobSpec({"worker": Role(f"{before} torchrun --nnodes $NNODES train.py", 2)}, env={"NNODES": "1"})
    assert find_mistakes(job, names()) == []


@pytest.mark.parametrize(
    "before", ["cd src &&", "cd src || exit 1;", "source venv/bin/activate;", "python prepare.py &&"]
)
def test_what_comes_before_a_launcher_that_runs_each_time(before: str) -> None:
    assert len(problems(f"{before} torchrun train.py", "generic")) == 1


def test_a_role_beside_the_group_may_be_alone() -> None:
    roles = {"worker": Role("torchrun train.py"), "evaluator": Role("torchrun --standalone evaluate.py")}
    assert find_mistakes(JobSpec(roles, framework="torchrun"), names()) == []


def test_tasks_that_are_no_gang_may_be_alone() -> None:
    job = JobSpec({"worker": Role("torchrun train.py --seed $HOWDAH_RANK", 4)}, gang=False)
    assert find_mistakes(job, names()) == []


def test_variables_of_the_job_are_options() -> None:
    worker = Role("torchrun $OPTIONS train.py", 2)
    assert find_mistakes(JobSpec({"worker": worker}, env={"OPTIONS": "--nnodes=1"}), names()) != []
    assert find_mistakes(JobSpec({"worker": worker}, env={"OPTIONS": "--nnodes=2"}), names()) == []
    assert find_mistakes(JobSpec({"worker": worker}, env={"OPTIONS": "", "PET_NNODES": "2"}), names()) == []


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


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (("bash", "run.sh"), "run.sh"),
        (("bash", "scripts/train.sh"), "scripts/train.sh"),
        (("./launch",), "launch"),
        (("cd scripts && bash train.sh",), "train.sh"),
        (("make", "train"), "Makefile"),
        (("bash", "outer.sh"), "run.sh"),
    ],
)
def test_a_script_with_a_launcher_chooses_its_framework(tmp_path: Path, words: tuple[str, ...], script: str) -> None:
    (tmp_path / "scripts").mkdir()
    for name in ("run.sh", "launch", "scripts/train.sh"):
        (tmp_path / name).write_text("#!/bin/bash\ntorchrun train.py\n")
    (tmp_path / "outer.sh").write_text("exec ./run.sh\n")
    (tmp_path / "Makefile").write_text("data:\n\ttrue\ntrain: data\n\t@torchrun train.py\n")
    told: list[str] = []
    options = CommandOptions(replicas="2", files=("Makefile", "outer.sh", "run.sh"))
    loaded = load_command(words, options, tmp_path, {}, {}, told.append)
    assert loaded.spec.framework == "torchrun"
    assert f"framework: torchrun, for {script} runs torchrun (--framework says otherwise)" in told


def test_a_launcher_that_a_script_may_pass_over_chooses_no_framework(tmp_path: Path) -> None:
    (tmp_path / "branch.sh").write_text('case "$1" in ddp) torchrun t.py;; plain) python t.py;; esac\n')
    loaded = load_command(("bash", "branch.sh", "plain"), CommandOptions(replicas="2"), tmp_path, {}, {}, print)
    assert loaded.spec.framework != "torchrun"
