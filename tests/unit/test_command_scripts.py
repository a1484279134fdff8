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
