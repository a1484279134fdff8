"""Finds the packages to install for a file in which a project names its packages, in the forms that uv reads:
pyproject.toml, uv.lock, pylock.toml. For the files of other tools, and without uv, a sentence says what to do
instead."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from howdah.errors import StagingError
from howdah.localfiles import regular_file
from howdah.localfiles.file_errors import explain
from howdah.staging.files_wrong import FilesWrong
from howdah.storage.content_cache import local_directory

PLACE = "environment.requirements"
MAX_BYTES = 32 << 20
"""The largest lock file."""
EXPORT_LIMIT_S = 120.0
_LOCK, _PROJECT = "uv.lock", "pyproject.toml"
_OTHER_TOOLS = {
    "poetry.lock": "poetry export -o requirements.txt",
    "pdm.lock": "pdm export -o requirements.txt",
    "Pipfile": "pipenv requirements > requirements.txt",
    "Pipfile.lock": "pipenv requirements > requirements.txt",
    "setup.py": "echo . > requirements.txt",
    "setup.cfg": "echo . > requirements.txt",
}
"""The command that makes a requirements file, by the name of a tool's own file."""
_SOURCES = re.compile(r"(?ms)^\[tool\.uv(?:\.sources[^\]]*)?\](.*?)(?=^\[|\Z)")
_SOURCE = re.compile(r"""\bpath\s*=\s*["']([^"'\n]+)["']""")
_DIRECTORY = re.compile(rb"\bdirectory\s*=\s*\{")
_WORKSPACE = re.compile(rb"\bworkspace\s*=\s*true")
_OTHER_OPTIONS = {"UV_FROZEN", "UV_LOCKED", "UV_PROJECT", "UV_NO_SYNC", "VIRTUAL_ENV"}
_LOCAL = re.compile(r"^(-e )?(\.{1,2}(?:/[^ ;\n]*)?)(?=$|[ ;])", re.MULTILINE)


def find_uv() -> str:
    """Return the path of uv, from this Python or on PATH; "" if there is none."""
    beside = Path(sys.executable).with_name("uv")
    if importlib.util.find_spec("uv") and beside.exists():
        return str(beside)
    return shutil.which("uv") or ""


def is_project_file(path: Path) -> bool:
    """Return whether a file names packages in another format than that of a requirements file."""
    return path.suffix in (".toml", ".yaml", ".yml") or path.name == _LOCK or path.name in _OTHER_TOOLS


def file_to_install(path: Path) -> Path:
    """Return the file that is installed for `path`. For a lock of uv, or a project that has one, it is the requirements
    file that is exported from the lock; otherwise it is `path`.

    Raises:
        FilesWrong: there is no such file, it cannot be installed here, or it does not fit its project.
    """
    if not is_project_file(path):
        return path
    text = _read(path)
    name = path.name
    if command := _command_of_another_tool(path, text):
        raise FilesWrong.at(PLACE, f"{name} is not for pip or uv: run `{command}`, and name the new file")
    if path.suffix in (".yaml", ".yml"):
        instead = f"run `conda env create -n NAME -f {name}`, and write `conda: NAME` instead"
        raise FilesWrong.at(PLACE, f"{name} is conda's: {instead}")
    if not find_uv():
        advice = "install it (`pip install uv`), or name what `uv export --no-dev -o requirements.txt` makes elsewhere"
        raise FilesWrong.at(PLACE, f"{name} is read by uv, which is not here: {advice}")
    if path.name.startswith("pylock.") and _DIRECTORY.search(text):
        raise FilesWrong.at(PLACE, f"{name} has packages of this machine: name the project's uv.lock instead")
    lock = find_lock(path)
    if lock is None and _WORKSPACE.search(text):
        raise FilesWrong.at(PLACE, f"{name} is part of a workspace that has no lock: run `uv lock`")
    return _exported(path.parent, lock) if lock else path


def find_lock(path: Path) -> Path | None:
    """Return the uv.lock of a project: beside its pyproject.toml, or in a parent directory if the project is part of a
    workspace."""
    if path.name not in (_LOCK, _PROJECT):
        return None
    for directory in (path.absolute().parent, *path.absolute().parent.parents):
        lock, project = directory / _LOCK, directory / _PROJECT
        is_own = directory == path.absolute().parent
        if lock.is_file() and (is_own or (project.is_file() and b"[tool.uv.workspace]" in _read(project))):
            return lock
    return None


def local_packages(path: Path) -> Iterator[Path]:
    """Yield the packages of this machine that a pyproject.toml refers to: the one that it describes, and those in
    `tool.uv.sources`. uv would link to them."""
    text, project = _read(path).decode("utf-8", "replace"), path.absolute().parent
    sources = "\n".join(_SOURCES.findall(text)) if path.name == _PROJECT else ""
    for found in _SOURCE.finditer(sources):
        if (local := Path(os.path.normpath(project / found[1]))).is_dir():
            yield local
    if path.name == _PROJECT and "[build-system]" in text and not re.search(r"(?m)^package\s*=\s*false", text):
        yield project


def _read(path: Path) -> bytes:
    try:
        return regular_file.read(path, MAX_BYTES)
    except OSError as error:
        raise FilesWrong.at(PLACE, f"{str(path)!r}: {error.strerror}") from error


def _command_of_another_tool(path: Path, text: bytes) -> str:
    if path.name == _PROJECT and b"[project]" not in text and b"[tool.poetry" in text:
        return _OTHER_TOOLS["poetry.lock"]
    return _OTHER_TOOLS.get(path.name, "")


def sync_options(project_file: Path) -> list[str]:
    """Return the options that make uv use a project's lock, and check that the lock fits the project."""
    return ["--locked", "--no-default-groups", "--no-editable", "--project", str(project_file.absolute().parent)]


def uv_variables() -> dict[str, str]:
    """Return the variables of this process without those that would contradict howdah's options."""
    return {name: value for name, value in os.environ.items() if name not in _OTHER_OPTIONS}


def _exported(project: Path, lock: Path) -> Path:
    """Write the packages of a lock as a requirements file, once for each content. Packages of this machine have
    absolute paths in it, because it is not beside the lock."""
    command = [find_uv(), "export", "--quiet", "--no-header", "--no-annotate", *sync_options(project / _PROJECT)]
    # No other Python than the one of the environment.
    command += ["--no-python-downloads", "--python", sys.executable]
    how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": False}
    try:
        run = subprocess.run(command, env=uv_variables(), timeout=EXPORT_LIMIT_S, **how)
    except subprocess.TimeoutExpired:
        raise StagingError(f"{lock}: uv export took longer than {EXPORT_LIMIT_S:.0f} s") from None
    if run.returncode:
        first = next(iter(run.stderr.strip().splitlines()), "").removeprefix("error: ")
        raise FilesWrong.at(PLACE, f"{lock}: uv cannot export it: {first}")

    def absolute(found: re.Match[str]) -> str:
        return f"{found[1] or ''}{(lock.parent / found[2]).resolve().as_uri()}"

    text = _LOCAL.sub(absolute, run.stdout)
    target = local_directory() / "exported" / hashlib.sha256(text.encode()).hexdigest()[:16] / f"{lock.stem}-lock.txt"
    try:
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = target.with_name(f".{target.name}.{os.getpid()}")
            fresh.write_text(text, "utf-8")
            fresh.replace(target)
    except OSError as error:
        raise explain(error, error.filename or str(target)) from error
    return target
