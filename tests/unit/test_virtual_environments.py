"""Tests installing environments from requirement files, with a wheel made here: nothing is downloaded."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import subprocess
import threading
import zipfile
from pathlib import Path

import pytest

from howdah.errors import SpecError, StagingError
from howdah.staging.virtual_environments import (
    ensure_environment,
    environment_path,
    pack,
    python_version,
    read_requirements,
    run_installer,
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "uv"))
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    return tmp_path / "home/cache/environments"


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    """A file that asks for a package with a module and a script."""
    wheel = tmp_path / "greeting-1.0-py3-none-any.whl"
    content = {
        "greeting.py": "def main():\n    print('hello')\n",
        "greeting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
        "greeting-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "greeting-1.0.dist-info/entry_points.txt": "[console_scripts]\ngreet = greeting:main\n",
    }
    rows = [f"{name},sha256={_digest(text)},{len(text)}\n" for name, text in content.items()]
    content["greeting-1.0.dist-info/RECORD"] = "".join([*rows, "greeting-1.0.dist-info/RECORD,,\n"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    path = tmp_path / "requirements.txt"
    path.write_text(f"# one package\ngreeting @ {wheel.as_uri()}\n")
    return path


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def test_an_environment_is_built_once_and_may_be_moved(requirements: Path, cache: Path, tmp_path: Path) -> None:
    said: list[str] = []
    venv = ensure_environment(requirements, said.append)
    assert venv == environment_path(requirements)
    assert said == [f"installing 1 package for requirements.txt: once, into {venv}"]
    assert ensure_environment(requirements, said.append) == venv
    archive = pack(venv, said.append)
    assert pack(venv, said.append) == archive
    assert len(said) == 2
    (tmp_path / "elsewhere/environment").mkdir(parents=True)
    subprocess.run(["tar", "-xf", archive, "-C", tmp_path / "elsewhere/environment"], check=True)  # as nodes do it
    moved = tmp_path / "elsewhere/environment/bin"
    assert subprocess.check_output([moved / "greet"], text=True) == "hello\n"
    prefix = subprocess.check_output([moved / "python", "-c", "import sys; print(sys.prefix)"], text=True)
    assert prefix.strip() == str(moved.parent)
    version = subprocess.check_output([moved / "python", "-V"], text=True).split()[1]
    assert python_version(venv) == version


def test_what_killed_builds_have_left_is_removed(requirements: Path, cache: Path) -> None:
    """Those of this environment and of others, but what somebody still makes."""
    own = environment_path(requirements).name
    other, busy = "0" * 16, "1" * 16
    for name in (f".{own}.77", f".{other}.88", f".{busy}.99"):
        (cache / name / "bin").mkdir(parents=True)
    (cache / f".{other}.tar.gz.k2_x9abc").write_text("half")
    with (cache / f".{busy}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ensure_environment(requirements, lambda notice: None)
    left = {path.name for path in cache.iterdir() if not path.name.endswith(".lock")}
    assert left == {own, f".{busy}.99"}


def test_two_at_once_build_it_once(requirements: Path, cache: Path) -> None:
    said: list[str] = []
    builders = [threading.Thread(target=ensure_environment, args=(requirements, said.append)) for _ in range(3)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join(120)
        assert not builder.is_alive(), "the environment is not built"
    assert sum(line.startswith("installing") for line in said) == 1
    assert [path.name for path in cache.iterdir() if not path.name.startswith(".")] != []


def test_what_cannot_be_installed_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(f"nothing @ {(tmp_path / 'nothing-1.0-py3-none-any.whl').as_uri()}\n")
    with pytest.raises(StagingError, match=r"requirements\.txt: cannot be installed by .*:\n.*"):
        ensure_environment(path, lambda line: None)
    assert [each for each in cache.iterdir() if each.suffix != ".lock"] == []


def test_who_waits_is_told_that_it_goes_on(tmp_path: Path) -> None:
    said: list[str] = []

    def notice(text: str) -> None:
        said.append(text)
        (tmp_path / "told").touch()

    command = ["sh", "-c", 'until [ -e "$0/told" ]; do sleep 0.01; done', str(tmp_path)]
    run_installer(command, tmp_path / "some.txt", notice, report_s=0.05)
    assert said[0] == "still installing some.txt: 0 s so far"


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"environment\.requirements: .*none\.txt'?: No such file"):
        ensure_environment(tmp_path / "none.txt", lambda line: None)


def test_packages_are_counted_as_a_person_would() -> None:
    lock = b"# made by uv\n-i https://x\nnumpy==1.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n\ntorch==2\n"
    assert read_requirements(lock) == ["numpy==1.0 \\", "torch==2"]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A local package that needs no build tool from elsewhere: it builds itself."""
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "mine"\nversion = "1"\n'
    )
    (package / "backend.py").write_text(BACKEND)
    (package / "mine.py").write_text("VERSION = 'old'\n")
    return package


BACKEND = """
import os, zipfile
FACTS = {"METADATA": "Metadata-Version: 2.1\\nName: mine\\nVersion: 1\\n",
         "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n", "RECORD": ""}
def build_wheel(directory, *_, files=("mine.py",)):
    name = "mine-1-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        for file in files: wheel.writestr(file, open(file).read())
        for file, text in FACTS.items(): wheel.writestr("mine-1.dist-info/" + file, text)
    return name
def build_editable(directory, *_):
    open("mine.pth", "w").write(os.getcwd())
    return build_wheel(directory, files=("mine.pth",))
"""


def _says(venv: Path) -> str:
    command = [venv / "bin/python", "-c", "import mine; print(mine.VERSION, mine.__file__)"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize("line", ["./pkg", "mine @ file://{path}", "-e ./pkg"])
def test_a_local_package_is_installed_as_it_is_now(tmp_path: Path, package: Path, line: str) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(line.format(path=package) + "\n")
    first = ensure_environment(requirements, lambda _: None)
    assert _says(first).startswith("old ")
    (package / "mine.py").write_text("VERSION = 'new'\n")
    second = ensure_environment(requirements, lambda _: None)
    for venv, version in ((first, "old"), (second, "new")):
        assert _says(venv).split() == [version, str(next(venv.glob("lib/python*/site-packages/mine.py")))]
