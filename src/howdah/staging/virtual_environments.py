"""Makes virtual environments from requirements files: once for each content, under one lock, complete or not at all.

`<cache>/environments/<first 16 digits of the content's SHA-256>` is a virtual environment that may be moved. It links
to the Python with which it was made: a machine that runs it needs that Python at the same path. If the existing
environment was made by a Python of another version, or by one that is gone, the present Python makes another one, whose
digits depend on the Python, too. The content consists of the file with everything to which it refers on this machine
(`requirements_files`), and the commits of its branches (`git_references`). Packages without a version are as new as the
environment.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from howdah.errors import StagingError
from howdah.localfiles.file_errors import explain
from howdah.spec import redaction
from howdah.spec.message import message
from howdah.staging import archive as packing
from howdah.staging.git_references import without_answer
from howdah.staging.project_files import file_to_install, find_uv, sync_options, uv_variables
from howdah.staging.requirements_files import RequirementsContent, read_content
from howdah.storage.content_cache import local_directory
from howdah.storage.progress import Notice

INSTALL_LIMIT_S = 3600.0
REPORT_S = 5.0
"""Seconds between two messages that an installation goes on."""
TELL_AFTER_DAYS = 7
"""The age in days from which an environment is reported if its requirements leave versions open."""
_OTHER_SYSTEM = re.compile(r"\b(hg|svn|bzr)\+")
_HALF_MADE = re.compile(r"\.((?:conda-)?[0-9a-f]{16}(?:\.tar\.gz)?)\.(?:\d+|\w{8})")
"""The name of an unfinished file or directory: the name that it will get, with the process's number, or 8 letters of
`tempfile`."""
_INSTALLED = re.compile(r"([A-Za-z0-9_.]+)-([^-]+)\.dist-info")
# A shell that runs these lines finds the interpreter beside the script; to Python they are a string.
_HEADER = b"#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python' \"$0\" \"$@\"\n' '''\n"


def environment_path(requirements: Path) -> Path:
    """Return the path on this machine of a requirements file's environment once it has been made.

    Raises:
        FilesWrong: there is no such file, or none that can be installed here.
    """
    return _environment_path(read_content(file_to_install(requirements)))


def _environment_path(content: RequirementsContent) -> Path:
    directory, digest_input = local_directory() / "environments", content.digest_input
    venv = directory / hashlib.sha256(digest_input).hexdigest()[:16]
    return directory / _key(digest_input)[:16] if _is_of_another_python(venv) else venv


def _is_of_another_python(venv: Path) -> bool:
    """Return whether there is an environment whose Python has another version than the present one, or is gone."""
    python = venv / "bin" / "python"
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    is_alike = python.exists() and any((venv / "lib").glob(f"{version}*"))  # also python3.13t
    return os.path.lexists(python) and not is_alike


def _key(digest_input: bytes) -> str:
    made_with = f"{sys.implementation.cache_tag} {sys.base_prefix} {platform.machine()}\n"
    return hashlib.sha256(made_with.encode() + digest_input).hexdigest()


def environment_key(requirements: Path) -> str:
    """Return 64 hexadecimal digits that stand for everything that determines the environment: the content, this Python
    and this machine.

    Raises:
        FilesWrong: there is no such file.
    """
    return _key(read_content(file_to_install(requirements)).digest_input)


def ensure_environment(requirements: Path, notice: Notice) -> Path:
    """Return the environment of a requirements file, which is installed if it does not exist. `notice` gets a line
    before steps that take time.

    Raises:
        FilesWrong: there is no such file.
        StagingError: it can't be installed, or there is no room; no part of it stays.
    """
    to_install = file_to_install(requirements)
    found = read_content(to_install)
    target = _environment_path(found)
    # uv decides whatever a pyproject.toml leaves open.
    if target.is_dir():
        _tell_open(requirements, to_install, found, target.stat().st_mtime, notice)
        return target
    with locked(target, notice):
        if not target.is_dir():
            named = read_requirements(b"\n".join(found.texts.values()))
            counted = "1 package" if len(named) == 1 else f"{len(named)} packages"
            counted = "the packages" if to_install.suffix == ".toml" else counted
            notice(f"installing {counted} for {requirements.name}: once, into {target}")
            _install(requirements, to_install, found, target, notice)
    return target


def tell_open(requirements: Path, made_s: float, notice: Notice) -> None:
    """Report which packages may have newer versions than in an environment of a requirements file that was made at
    `made_s`, in epoch seconds."""
    to_install = file_to_install(requirements)
    _tell_open(requirements, to_install, read_content(to_install), made_s, notice)


def _tell_open(
    requirements: Path, to_install: Path, content: RequirementsContent, made_s: float, notice: Notice
) -> None:
    for each in without_answer(content.git):
        notice(
            message(
                "which commit {reference} is now can't be found out, so the environment may have an older one",
                reference=each.shown,
            )
        )
    # uv decides whatever a pyproject.toml leaves open.
    lines = (
        [requirements.name] if to_install.suffix == ".toml" else read_requirements(b"\n".join(content.texts.values()))
    )
    fixed = ("==", "@", "/")
    open_ = [each for each in lines if _OTHER_SYSTEM.search(each) or not any(mark in each for mark in fixed)]
    days = (time.time() - made_s) / 86400
    if open_ and days >= TELL_AFTER_DAYS:
        notice(
            message(
                "the environment is {days} days old, and {packages} may be newer: a new comment in {file} makes howdah"
                " install it again",
                days=f"{days:.0f}",
                packages=redaction.line(", ".join(open_[:3]) + (", …" if len(open_) > 3 else "")),
                file=requirements.name,
            )
        )


def pack(venv: Path, notice: Notice) -> Path:
    """Return an archive of an environment made by `ensure_environment`, for machines that have the same Python; it is
    made once.

    Raises:
        StagingError: there is no room.
    """
    archive = venv.with_name(f"{venv.name}.tar.gz")
    if archive.is_file():
        return archive
    with locked(archive, notice):
        if not archive.is_file():
            notice(f"packing the environment {venv.name} (CPython {python_version(venv)}): once, into {archive}")
            packing.write(packing.members(venv, as_they_are=True), archive)
    return archive


def python_version(venv: Path) -> str:
    """Return the version of an environment's Python, such as `3.11.7`; "" if the environment does not name it."""
    return _setting(venv, "version_info") or _setting(venv, "version")


def installed_packages(environment: Path) -> dict[str, str]:
    """Return the versions of the packages that pip or uv has installed in an environment, by name."""
    directories = environment.glob("lib/python3.*/site-packages")
    there = [_INSTALLED.fullmatch(path.name) for directory in directories for path in directory.iterdir()]
    return {match[1]: match[2] for match in there if match}


def read_requirements(content: bytes) -> list[str]:
    """Return the requirements in a file: its lines without comments, options and the hashes that continue a line."""
    lines = (line.strip() for line in content.decode("utf-8", "replace").splitlines())
    return [line for line in lines if line and not line.startswith(("#", "-"))]


def _setting(venv: Path, name: str) -> str:
    with contextlib.suppress(OSError):
        for line in (venv / "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == name:
                return value.strip()
    return ""


def _install(requirements: Path, to_install: Path, found: RequirementsContent, target: Path, notice: Notice) -> None:
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        # A project's own installer takes the environment by this variable.
        variables = {**uv_variables(), "UV_PROJECT_ENVIRONMENT": str(partial)}
        for command in _commands(requirements.absolute(), to_install.absolute(), found, partial):
            run_installer(command, requirements, notice, variables=variables)
        make_relocatable(partial)
        partial.rename(target)
    except OSError as error:
        raise explain(error, error.filename or str(target)) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _commands(requirements: Path, to_install: Path, found: RequirementsContent, venv: Path) -> list[list[str]]:
    strict = ["--require-hashes"] if any(b"--hash=" in text for text in found.texts.values()) else []
    copied = list(map(str, found.editable))  # tasks must not share the user's own source
    uv = find_uv()
    if uv:
        # Files that a task compiles are its own, and go with it.
        options = ["--quiet", "--compile-bytecode", "--python", str(venv / "bin" / "python")]
        options += ["--refresh"] if found.packages else []  # uv does not see that a file of a local package changed
        made = [uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, str(venv)]
        if to_install != requirements:  # a lock: an export does not name its indexes
            return [made, [uv, "sync", *sync_options(requirements), *options]]
        install = [uv, "pip", "install", *options]
        copies = [[*install, "--reinstall", "--no-deps", *copied]] if copied else []
        return [made, [*install, *strict, "-r", str(requirements)], *copies]
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    copies = [[*pip, "--force-reinstall", "--no-deps", *copied]] if copied else []
    return [[sys.executable, "-m", "venv", str(venv)], [*pip, *strict, "-r", str(requirements)], *copies]


def run_installer(
    command: list[str],
    requirements: Path,
    notice: Notice,
    report_s: float = REPORT_S,
    *,
    verb: str = "install",
    variables: Mapping[str, str] | None = None,
) -> None:
    """Run `command` to its end; `notice` gets a line every `report_s` seconds while it runs. An error has the last
    lines of the command's own messages, which name the failure. `verb` is the command's action in these lines, and
    `variables` are its environment in place of this process's.

    Raises:
        StagingError: it failed, or took too long.
    """
    began, pipe, none = time.monotonic(), subprocess.PIPE, subprocess.DEVNULL
    where = requirements.absolute().parent  # from which installers look for `./package`
    streams: dict[str, Any] = {"stdin": none, "stdout": pipe, "stderr": pipe, "text": True, "errors": "replace"}
    with subprocess.Popen(command, cwd=where, env=variables, **streams) as run:
        try:
            output, errors = _await_installer(run, began, f"{verb}ing {requirements.name}", notice, report_s)
        except BaseException:
            run.kill()
            raise
    if run.returncode:
        last = "\n".join((errors or output).strip().splitlines()[-6:])
        raise StagingError(f"{requirements}: cannot be {verb}ed by {Path(command[0]).name}:\n{last}")


def _await_installer(
    run: subprocess.Popen[str], began: float, doing: str, notice: Notice, report_s: float
) -> tuple[str, str]:
    while True:
        try:
            return run.communicate(timeout=report_s)
        except subprocess.TimeoutExpired:
            seconds = time.monotonic() - began
            if seconds > INSTALL_LIMIT_S:
                raise StagingError(f"{doing} took longer than {INSTALL_LIMIT_S:.0f} s") from None
            notice(f"still {doing}: {seconds:.0f} s so far")


def make_relocatable(venv: Path) -> None:
    """Make the scripts of an environment find their Python beside them, wherever the environment is."""
    for script in (venv / "bin").iterdir():
        if script.is_symlink() or not script.is_file():
            continue
        with script.open("rb") as file:
            first = file.readline(4096)
            if first.startswith(b"#!") and os.fsencode(str(venv)) in first:
                rest = file.read()
                mode = script.stat().st_mode
                script.write_bytes(_HEADER + rest)
                script.chmod(mode)


@contextlib.contextmanager
def locked(target: Path, notice: Notice) -> Iterator[None]:
    """Let only one process at a time make `target`; the others wait for it. Remains of a killed process are removed
    first."""
    path = target.with_name(f".{target.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("w") as lock:
            _wait(lock.fileno(), target, notice)
            _remove_half_made(target)
            yield
    except OSError as error:
        raise explain(error, error.filename or str(target)) from error


def _remove_half_made(target: Path) -> None:
    """Remove unfinished files that no process makes any more in the directory of `target`, which this process has
    locked."""
    for path in target.parent.iterdir():
        half_made = _HALF_MADE.fullmatch(path.name)
        if half_made is None:
            continue
        with contextlib.suppress(OSError), path.with_name(f".{half_made[1]}.lock").open("w") as lock:
            if half_made[1] != target.name:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def _wait(lock: int, target: Path, notice: Notice) -> None:
    until = time.monotonic() + INSTALL_LIMIT_S
    noticed = False
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise StagingError(
                    f"{target} is still being made by another howdah after {INSTALL_LIMIT_S:.0f} s"
                ) from None
            if not noticed:
                notice(f"waiting for another howdah that makes {target}")
                noticed = True
            time.sleep(0.2)
