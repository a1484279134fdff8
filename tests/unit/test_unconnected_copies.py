"""Tests who is told that tasks are copies which are not told of each other: nobody who may mean it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import howdah
from howdah.client.command_job import CommandOptions, load_command
from howdah.client.command_scripts import launches_of_job
from howdah.client.submit import prepare
from howdah.client.unconnected_copies import unconnected_copies
from howdah.config.job_file import LoadedJob, load
from howdah.errors import SpecError

TOLD = (
    "framework: generic, so the 3 tasks of worker are copies that are not told of each other (naming any framework,"
    " also generic, ends this line)"
)


def told(loaded: LoadedJob) -> str | None:
    launches = launches_of_job(loaded.spec, loaded.base_directory)
    return unconnected_copies(loaded.spec, loaded.base_directory, loaded.sources, launches)


def command(base: Path, *words: str, **options: Any) -> LoadedJob:
    return load_command(words, CommandOptions(replicas="3", **options), base, {}, {}, print)


def job_file(base: Path, line: str, more: str = "") -> LoadedJob:
    (base / "job.yaml").write_text(f"files: [train.py]\nroles: {{worker: {{replicas: 3, command: '{line}'}}}}\n{more}")
    return load(base / "job.yaml")


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import accelerate\n")
    return tmp_path


def test_commands_and_job_files_are_told(base: Path) -> None:
    (base / "run.sh").write_text("cd . && python train.py")
    assert told(command(base, "bash", "run.sh", files=("train.py",))) == TOLD
    assert told(command(base, "python", "train.py")) == TOLD
    loaded = job_file(base, "python train.py")
    assert told(loaded) == TOLD
    said: list[str] = []
    prepare(loaded.spec, base, {"engine": "local"}, said.append, origins=loaded.sources)
    assert said.count(TOLD) == 1


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("python -m paddle.distributed.launch other.py", True),
        ("fleetrun --nproc_per_node=2 other.py", True),
        ("unknown --nnodes 2 other.py", True),
        ("unknown --nnodes 2 --master $MASTER_ADDR other.py", False),
        ("python -m paddle.distributed.launcher other.py", False),
        ("python other.py --nnodes_of_graph 2", False),
    ],
)
def test_a_launcher_that_is_not_known_is_told(base: Path, line: str, is_told: bool) -> None:
    assert told(job_file(base, line)) == (TOLD if is_told else None)


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("python train.py", "framework: generic"),
        ("python train.py", "framework: pytorch"),
        ("python train.py", "gang: false"),
        ("python train.py", "inputs: [{path: train.py, strategy: stream}]"),
        ("python train.py $HOWDAH_INDEX", ""),
        ("MASTER_ADDR=host1 python train.py", ""),
        ("python train.py", "env: {MASTER_ADDR: host1}"),
        ("torchrun --nnodes=3 --master_addr=host1 --node_rank=$R train.py", ""),
    ],
)
def test_who_may_mean_it_is_not(base: Path, line: str, more: str) -> None:
    assert told(job_file(base, line, more)) is None


@pytest.mark.parametrize(
    "asks",
    [
        *("from howdah import here", "from howdah import run, here", "import howdah.here", "import howdah as h"),
        *("os.environ['HOWDAH_RANK']", "os.environ['MASTER_ADDR']"),
    ],
)
def test_a_program_that_asks_for_the_others_is_not(base: Path, asks: str) -> None:
    (base / "train.py").write_text(f"import torch\n{asks}\n")
    (base / "run.sh").write_text("python train.py")
    assert told(job_file(base, "python train.py")) is None
    assert told(job_file(base, "python -m train")) is None
    assert told(command(base, "bash", "run.sh", files=("train.py",))) is None


def test_a_program_that_does_not_train_is_not(base: Path) -> None:
    (base / "train.py").write_text("import csv  # torch is not used\n")
    assert told(job_file(base, "python train.py")) is None
    assert told(command(base, "hostname")) is None


def test_a_job_of_one_task_and_one_without_origins_are_not(base: Path) -> None:
    assert told(load_command(("python", "train.py"), CommandOptions(), base, {}, {}, print)) is None
    loaded = job_file(base, "python train.py")
    assert unconnected_copies(loaded.spec, base, {}, {}) is None


TRAINS = "def call():\n    import torch\n"
ASKS = f"{TRAINS}    from howdah import here\n"
NOTHING = "def call():\n    pass\n"


@pytest.mark.parametrize(
    ("text", "run", "keys", "is_told"),
    [
        (TRAINS, howdah.run, {}, True),
        (TRAINS, howdah.run, {"framework": "generic"}, False),
        (TRAINS, howdah.run_all, {}, False),
        (ASKS, howdah.run, {}, False),
        (NOTHING, howdah.run, {}, False),
    ],
)
def test_functions_are_told_unless_they_ask(
    base: Path, text: str, run: Any, keys: dict[str, str], is_told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    (base / "program.py").write_text(text)
    names: dict[str, Any] = {"__name__": "__main__"}  # which travels by its code
    exec(compile(text, str(base / "program.py"), "exec"), names)
    with pytest.raises(SpecError, match="nothere"):
        run(names["call"], on="local", replicas=3, files=["nothere"], **keys)
    assert (TOLD in capsys.readouterr().err) == is_told
