"""Tests that environments and Pythons are sent to nodes which have neither the program's nor howdah's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from howdah.sandbox import Sandbox
from howdah.staging.project_files import find_uv

HOWDAH = str(Path(sys.executable).with_name("howdah"))
REQUIREMENTS = "colorama==0.4.6 --hash=sha256:4f1d9991f5acc0ca119f9d443620b77f9d6b33703e51011c16baf57afb285fc6\n"
LEFT_OUT = ("site-packages", "test", "__pycache__", "idlelib", "share")
"""What no program here needs of a Python."""
SHOW = "import colorama, sys; print('runs', colorama.__version__, sys.prefix)"


def run(directory: Path, *arguments: str, **settings: str) -> str:
    """What `howdah run` prints, of a job in `directory`."""
    environment = {**os.environ, **{f"HOWDAH_{name.upper()}": value for name, value in settings.items()}}
    done = subprocess.run(
        [HOWDAH, "run", str(directory / "job.yaml"), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def job(directory: Path, environment: str, command: str) -> Path:
    text = f"environment: {environment}\nroles:\n  worker:\n    command: [python3, -c, {command!r}]\n"
    (directory / "job.yaml").write_text(text + "    resources: {memory: 128MiB}\n")
    return directory


def pack(source: Path, archive: Path, left_out: tuple[str, ...] = ()) -> Path:
    def wanted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if any(part in left_out for part in Path(member.name).parts) else member

    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(source, ".", filter=wanted)
    return archive


def test_requirements_are_made_into_an_environment_and_shipped(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(REQUIREMENTS)
    directory = job(tmp_path, "{requirements: requirements.txt}", SHOW)
    shown = run(directory, "--on", "yarn", shared_paths="/nonexistent")
    assert "runs 0.4.6" in shown
    assert "container_" in shown.partition("runs 0.4.6")[2].splitlines()[0]


@pytest.mark.parametrize("engine", ["local", "yarn"])
def test_an_archive_comes_first_on_path(sandbox: Sandbox, tmp_path: Path, engine: str) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    pack(venv, tmp_path / "env.tar.gz")
    directory = job(tmp_path, "{archive: env.tar.gz}", "import sys; print('runs in', sys.prefix)")
    assert "howdah-environment\n" in run(directory, "--on", engine)


@pytest.fixture
def standalone(tmp_path: Path) -> Path:
    """This Python as an archive; Debian's own, whose parts are all over /usr, is no such thing."""
    if sys.base_prefix == "/usr":
        pytest.skip("the Python that runs the tests is the system's own and cannot be packed")
    archive = tmp_path / "python.tar.gz"
    return pack(Path(sys.base_prefix), archive, LEFT_OUT)


def test_nodes_without_a_python_are_given_one(sandbox: Sandbox, tmp_path: Path, standalone: Path) -> None:
    directory = job(tmp_path, "{}", "print('hello')")
    shown = run(directory, "--on", "yarn", python_archive=str(standalone))
    job_id = next(word for word in shown.split() if word.startswith("application_"))
    status = subprocess.run([HOWDAH, "status", job_id], capture_output=True, text=True, check=True).stdout
    pythons = next(line for line in status.splitlines() if line.startswith("python:"))
    assert pythons.count("howdah-python/bin/python3") == 2


def test_what_uv_has_locked_is_made_and_shipped(sandbox: Sandbox, tmp_path: Path) -> None:
    """The project is a package, which is installed as it is now; its .venv stays here."""
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "trains"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = ["colorama==0.4.6"]\n'
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    )
    (tmp_path / "src/trains").mkdir(parents=True)
    (tmp_path / "src/trains/__init__.py").write_text("DEPTH = 3\n")
    uv = find_uv()
    subprocess.run([uv, "sync", "--quiet", "--python", sys.executable], cwd=tmp_path, check=True, timeout=300)
    directory = job(tmp_path, "{requirements: uv.lock}", f"import trains; print('depth', trains.DEPTH); {SHOW}")
    shown = run(directory, "--on", "yarn", shared_paths="/nonexistent")
    assert "depth 3" in shown
    assert "container_" in shown.partition("runs 0.4.6")[2].splitlines()[0]


def test_a_conda_environment_is_packed_and_shipped(sandbox: Sandbox, tmp_path: Path) -> None:
    """A whole Python with the records that conda-pack reads, as conda leaves them."""
    if sys.base_prefix == "/usr":
        pytest.skip("the Python that runs the tests is the system's own and cannot be packed")
    prefix = tmp_path / "conda"
    shutil.copytree(sys.base_prefix, prefix, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta" / "history").write_text("==> 2026-01-01 00:00:00 <==\n")
    directory = job(tmp_path, "{conda: ./conda}", "import sys; print('runs in', sys.prefix)")
    assert "howdah-environment\n" in run(directory, "--on", "yarn", shared_paths="/nonexistent")
    assert f"runs in {prefix}\n" in run(directory, "--on", "local")
