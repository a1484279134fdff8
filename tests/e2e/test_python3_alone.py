"""Tests commands that begin with `python` on nodes that have only `python3`, as Debian and Red Hat do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import CommandLine, Done
from test_tony_commands import LONGEST_S, configuration, python_with
from test_tony_commands import PROGRAMS as TONY_PROGRAMS

from howdah.sandbox import Sandbox
from howdah.storage.content_cache import local_directory

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
OLDEST = json.loads((ROOT / "tests" / "golden" / "xlearning" / "tensorflow-demo.json").read_text())["argv"]
"""The first command of XLearning's own introduction, word by word."""

pytestmark = pytest.mark.timeout(LONGEST_S)


def bare_path(directory: Path) -> Path:
    """All programs of this machine but `python`."""
    directory.mkdir()
    for place in (Path("/usr/bin"), Path("/bin")):
        for entry in place.iterdir():
            if entry.name != "python" and not (directory / entry.name).is_symlink():
                (directory / entry.name).symlink_to(entry)
    if not (directory / "python3").exists():
        (directory / "python3").symlink_to(sys.executable)
    return directory


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A cluster of such nodes, large enough for what was usual."""
    directory = tmp_path_factory.mktemp("bare")
    properties = {"yarn-site": {"yarn.nodemanager.admin-env": f"PATH={bare_path(directory / 'bin')}"}}
    sizes = {"memory_mib": 12288, "vcores": 8}
    with Sandbox(directory / "run", properties=properties, cache=local_directory(), **sizes) as running:
        yield running


@pytest.fixture
def line(bare: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(bare.conf_dir))
    monkeypatch.chdir(tmp_path)
    line = CommandLine(bare, tmp_path)
    for name in ("demo.py", "dataDeal.py"):
        shutil.copy(EXAMPLES / "digits-tensorflow-v1" / name, tmp_path)
    line.files.mkdirs(f"{line.root}/tmp/data/tensorflow")
    for part in sorted((EXAMPLES / "data" / "digits" / "train").iterdir()):
        line.files.write_bytes(f"{line.root}/tmp/data/tensorflow/{part.name}", part.read_bytes())
    line.files.delete(f"{line.root}/tmp/tensorflow_model")
    yield line
    line.end_all()


def ended(line: CommandLine, *words: str, **environment: str) -> Done:
    return line.start(*words, **environment).done(LONGEST_S)


def test_the_oldest_command_trains_with_the_python_of_the_nodes(line: CommandLine) -> None:
    python = python_with("digits-tensorflow")
    done = ended(line, "xl-submit", *OLDEST, HOWDAH_PYTHON=python)
    assert done.code == 0, done.text[-3000:]
    assert f"[howdah: PATH has no 'python': here it means {python} (Python 3." in done.text
    assert any(entry.uri.endswith("_SUCCESS") for entry in line.files.walk(f"{line.root}/tmp/tensorflow_model"))


def test_what_that_python_lacks_is_named_with_what_to_do(line: CommandLine) -> None:
    done = ended(line, "xl-submit", *OLDEST)
    assert done.code == 2
    told = "exit code 1: Python has no module 'tensorflow' here: name an environment that has it (environment), or add"
    assert told in done.text
    zh = "退出码 1：此处的 Python 没有模块 'tensorflow'：请指定包含它的环境（environment）"
    assert zh in ended(line, "explain", done.job, HOWDAH_LANGUAGE="zh").text


def test_a_program_that_was_not_sent(line: CommandLine) -> None:
    words = [word.replace("demo.py,dataDeal.py", "dataDeal.py") for word in OLDEST]
    done = ended(line, "xl-submit", *words)
    assert done.code == 2
    assert "exit code 2: 'demo.py' is not in the working directory: add it to `files`" in done.text


def test_tonys_script_and_its_shell(line: CommandLine) -> None:
    source = line.directory / "src"
    shutil.copytree(TONY_PROGRAMS, source)
    (source / "train.sh").write_text("set -e\npython steps.py\n")
    conf = configuration(line.directory, worker__instances="2", worker__memory="128m", am__memory="128m")
    place = (f"--src_dir={source}", f"--conf_file={conf}")
    done = ended(line, "tony", *place, "--executes=bash train.sh")
    assert done.code == 0, done.text[-3000:]
    assert "worker0 of 2 with None" in done.text
    done = ended(line, "tony", *place, "--executes=steps.py", "--python_binary_path=python")
    assert done.code == 0, done.text[-3000:]
    assert "PATH has no 'python': here it means /" in done.text
    done = ended(line, "tony", *place, "--executes=bash tain.sh")
    assert done.code == 255
    assert "exit code 127: 'tain.sh' is not in the working directory: add it to `files`" in done.text


def test_a_job_file_on_this_machine(tmp_path: Path) -> None:
    """The same on the local engine, whose nodes have the PATH of whoever submits."""
    directory = bare_path(tmp_path / "bin")
    job = tmp_path / "job.yaml"
    roles = {"worker": {"command": "python -c 'import sys; print(sys.prefix)'", "resources": {"memory": "128MiB"}}}
    job.write_text(json.dumps({"roles": roles}))
    howdah = Path(sys.executable).with_name("howdah")
    done = subprocess.run(
        [howdah, "run", "--on", "local", job], env={"PATH": str(directory), "HOME": str(tmp_path)}, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"worker:0 | {sys.prefix}\n" in done.stdout + done.stderr
