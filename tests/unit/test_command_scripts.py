"""Tests that launchers in a job's scripts are found, and refused where their tasks would not find each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from howdah.client.command_scripts import launches_of_job
from howdah.client.submit import prepare
from howdah.errors import Mistake, SpecError
from howdah.spec import JobSpec, Role
from howdah.spec.launchers import unconnected


def found(base: Path, command: str | tuple[str, ...], files: tuple[str, ...], **changes: Any) -> list[Mistake | str]:
    job = JobSpec({"worker": Role(command, 2)}, files=files, **{"framework": "pytorch", **changes})
    return list(unconnected(job, launches_of_job(job, base)))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for name, text in {
        "run.sh": "#!/bin/bash\ntorchrun train.py\n",
        "launch": "#!/usr/bin/env bash\ntorchrun train.py\n",
        "deep/er/run.sh": "torchrun train.py",
        "scripts/outer.sh": 'cd "$(dirname "$0")" || exit\nbash inner.sh\n',
        "scripts/other.sh": 'HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\nbash "$HERE/inner.sh"\n',
        "scripts/inner.sh": "torchrun train.py\n",
        "acc.sh": "accelerate \\\n  launch train.py\n",
        "options.sh": 'torchrun "$@"\n',
        "either.sh": "if [ $N -gt 1 ]; then torchrun --nnodes $N train.py; else torchrun train.py; fi\n",
        "conf.sh": "accelerate launch --config_file conf.yaml train.py\n",
        "conf.yaml": "num_machines: 1\n",
        "Makefile": "NP = 2\nall: train\ntrain:\n\ttorchrun --nproc_per_node=$(NP) train.py\nother:\n\ttrue\n",
        "train.py": "import torch\n",
        "tool.py": "#!/usr/bin/env python3\ntorchrun = 1\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "files", "shown"),
    [
        ("bash run.sh", ("run.sh",), "torchrun (run.sh)"),
        ("./launch", ("launch",), "torchrun (launch)"),
        ("timeout 100 ./launch", ("launch",), "torchrun (launch)"),
        (("bash", "-x", "go"), ("run.sh#go",), "torchrun (go)"),
        ("bash deep/er/run.sh", ("deep",), "torchrun (deep/er/run.sh)"),
        ("bash er/run.sh", ("deep#.",), "torchrun (er/run.sh)"),
        ("cd deep/er && . ./run.sh", ("deep",), "torchrun (run.sh)"),
        ("bash scripts/outer.sh", ("scripts",), "torchrun (inner.sh)"),
        ("bash scripts/other.sh", ("scripts",), "torchrun (scripts/inner.sh)"),
        ("bash acc.sh", ("acc.sh",), "accelerate launch (acc.sh)"),
        ("bash options.sh --nnodes=1 train.py", ("options.sh",), "torchrun (options.sh)"),
        ("bash conf.sh", ("conf.sh", "conf.yaml"), "accelerate launch (conf.sh)"),
        ("make", ("Makefile",), "torchrun (Makefile)"),
        ("make -f build train", ("Makefile#build",), "torchrun (build)"),
    ],
)
def test_a_launcher_in_a_script_is_refused(base: Path, command: Any, files: tuple[str, ...], shown: str) -> None:
    (mistake,) = found(base, command, files)
    assert isinstance(mistake, Mistake)
    assert mistake.place == "roles.worker.command"
    assert mistake.problem.startswith(f"runs {shown} in each of 2 tasks, which would not find each other")


@pytest.mark.parametrize(
    ("command", "files", "changes"),
    [
        ("bash run.sh", ("run.sh",), {"framework": "torchrun"}),
        ("bash run.sh", ("run.sh",), {"gang": False}),
        ("bash run.sh", (), {}),
        ("cat run.sh", ("run.sh",), {}),
        ("python train.py run.sh", ("run.sh", "train.py"), {}),
        ("./tool.py", ("tool.py",), {}),
        ("bash options.sh --nnodes=2 train.py", ("options.sh",), {}),
        ("make other", ("Makefile",), {}),
    ],
)
def test_what_a_script_may_do(base: Path, command: str, files: tuple[str, ...], changes: dict[str, Any]) -> None:
    assert found(base, command, files, **changes) == []


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("bash either.sh", ("either.sh",)),
        ("bash conf.sh", ("conf.sh",)),
        ("torchrun $UNKNOWN train.py", ()),
    ],
)
def test_what_only_a_run_can_tell_is_said(base: Path, command: str, files: tuple[str, ...]) -> None:
    (sentence,) = found(base, command, files)
    assert not isinstance(sentence, Mistake)
    assert "perhaps with options by which they do not find each other" in sentence


@pytest.mark.parametrize(
    "text",
    [
        'if [ "$1" = single ]; then torchrun t.py; else python t.py; fi\n',
        'case "$MODE" in ddp) torchrun t.py;; plain) python t.py;; esac\n',
        'if [ "$RANK" = 0 ]; then accelerate launch eval.py; fi\npython t.py\n',
        "train() {\n  torchrun t.py\n}\npython t.py\n",
        "function train {\n  torchrun t.py\n}\npython t.py\n",
        'if [ "$DEBUG" ]; then gdb --args mpirun ./solve; fi\n./solve\n',
        "grep -q ddp conf && torchrun t.py\npython t.py\n",
        "test -f done || torchrun t.py\n",
        "for i in 1 2; do torchrun t.py; done\n",
        "while false; do torchrun t.py; done\n",
        "[ $1 ] && bash run.sh\n",
        "source lib.sh\npython t.py\n",
        "python t.py\nexit\ntorchrun t.py\n",
    ],
)
def test_what_may_never_run_is_said_and_not_refused(base: Path, text: str) -> None:
    (base / "lib.sh").write_text("train() { torchrun t.py; }\n")
    (base / "any.sh").write_text(text)
    (sentence,) = found(base, "bash any.sh", ("any.sh", "lib.sh", "run.sh"))
    assert not isinstance(sentence, Mistake)
    assert "which would not find each other, and each would train a model of its own" in sentence
    assert sentence.startswith("worker may run ")


@pytest.mark.parametrize("before", ["export NNODES=2", ". ./conf", "read NNODES < f"])
def test_a_value_that_the_caller_of_a_script_may_set_is_not_known(base: Path, before: str) -> None:
    (base / "nodes.sh").write_text("torchrun --nnodes $NNODES t.py\n")
    (base / "any.sh").write_text(f"{before}\nbash nodes.sh\n")
    for command in ("bash any.sh", f"{before}; bash nodes.sh"):
        assert not any(
            isinstance(each, Mistake) for each in found(base, command, ("any.sh", "nodes.sh"), env={"NNODES": "1"})
        )


@pytest.mark.parametrize("text", ["set " * 16000, "\n" * 65000, "'exit " * 10000, "f" * 65000, " (" * 30000])
def test_a_strange_script_takes_no_time(base: Path, text: str) -> None:
    (base / "any.sh").write_text(text)
    assert found(base, "bash any.sh", ("any.sh",)) == []


@pytest.mark.parametrize("command", ["rclone copy ./run.sh remote:x", "bash -c 'hdfs dfs -put ./run.sh /x'"])
def test_a_script_that_is_only_named_does_not_run(base: Path, command: str) -> None:
    assert found(base, command, ("run.sh",)) == []


@pytest.mark.parametrize("name", ["~nosuch/run.sh", f"{'n' * 300}/run.sh"])
def test_a_file_that_cannot_be_looked_for_has_no_launcher(base: Path, name: str) -> None:
    assert found(base, "bash run.sh", (name,)) == []
    assert found(base, f"bash {'n' * 300}.sh", (".#.", "deep#.")) == []


def test_the_number_of_machines_of_a_file_connects(base: Path) -> None:
    (base / "conf.yaml").write_text("distributed_type: MULTI_GPU\nnum_machines: 2\n")
    assert found(base, "bash conf.sh", ("conf.sh", "conf.yaml")) == []


def test_a_job_is_refused_before_anything_starts(base: Path) -> None:
    job = JobSpec({"worker": Role("bash run.sh", 2)}, framework="pytorch", files=("run.sh",))
    with pytest.raises(SpecError, match=r"runs torchrun \(run.sh\) in each of 2 tasks.*\(job.yaml:2\)"):
        prepare(job, base, {}, lambda _: None, origins={"roles.worker.command": "job.yaml:2"})


def test_an_absolute_path_is_that_of_an_image_where_there_is_one(base: Path) -> None:
    image = {"YARN_CONTAINER_RUNTIME_TYPE": "docker", "YARN_CONTAINER_RUNTIME_DOCKER_IMAGE": "torch"}
    assert len(found(base, f"bash {base}/run.sh", ())) == 1
    assert found(base, f"bash {base}/run.sh", (), env=image) == []
