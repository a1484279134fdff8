"""Makes virtual environments from requirements files: once for each content, under one lock, complete or not at all.

`<cache>/environments/<first 16 digits of the content's SHA-256>` is a virtual environment that may be moved. It links
to the Python with which it was made: a machine that runs it needs that Python at the same path. The content is that of
the file with all that it leads to on this machine (`requirements_files`). What has no version is as new as the
environment.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from howdah.errors import StagingError
from howdah.localfiles.file_errors import explain
from howdah.staging import archive as packing
from howdah.staging.requirements_files import RequirementsContent, read_content
from howdah.storage.content_cache import local_directory
from howdah.storage.progress import Notice

INSTALL_LIMIT_S = 3600.0
REPORT_S = 5.0
"""Seconds between two messages that an installation goes on."""
TELL_AFTER_DAYS = 7
"""An environment of this age is told if its requirements leave versions open."""
# A shell that runs these lines finds the interpreter beside the script; to Python they are a string.
_HEADER = b"#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python' \"$0\" \"$@\"\n' '''\n"


def environment_path(requirements: Path) -> Path:
    """Return where the environment of a requirements file is on this machine when it has been made.

    Raises:
        FilesWrong: there is no such file.
    """
    return local_directory() / "environments" / hashlib.sha256(read_content(requirements).digest_input).hexdigest()[:16]


def environment_key(requirements: Path) -> str:
    """Return 64 hexadecimal digits of all that makes the environment: the content, this Python and machine.

    Raises:
        FilesWrong: there is no such file.
    """
    made_with = f"{sys.implementation.cache_tag} {sys.base_prefix} {platform.machine()}\n"
    return hashlib.sha256(made_with.encode() + read_content(requirements).digest_input).hexdigest()


def ensure_environment(requirements: Path, notice: Notice) -> Path:
    """Return the environment of a requirements file, which is installed if it does not exist. `notice` gets a line
    about what takes time.

    Raises:
        FilesWrong: there is no such file.
        StagingError: it can't be installed, or there is no room; no part of it stays.
    """
    found = read_content(requirements)
    content = b"\n".join(found.texts.values())
    target = environment_path(requirements)
    if target.is_dir():
        _tell_age(target, read_requirements(content), notice)
        return target
    with _locked(target, notice):
        if not target.is_dir():
            count = len(read_requirements(content))
            counted = f"{count} package" if count == 1 else f"{count} packages"
            notice(f"installing {counted} for {requirements.name}: once, into {target}")
            _install(requirements, found, target, notice)
    return target


def _tell_age(venv: Path, requirements: list[str], notice: Notice) -> None:
    """Say how old the environment is if a newer one might have other versions."""
    open_ = [each for each in requirements if not any(mark in each for mark in ("==", "@", "/"))]
    days = (time.time() - venv.stat().st_mtime) / 86400
    if open_ and days >= TELL_AFTER_DAYS:
        named = ", ".join(open_[:3]) + (", …" if len(open_) > 3 else "")
        notice(f"the environment is {days:.0f} days old, and {named} may be newer: remove {venv} to install it again")


def pack(venv: Path, notice: Notice) -> Path:
    """Return an archive of an environment made by `ensure_environment`, for machines that have the same Python; it is
    made once.

    Raises:
        StagingError: there is no room.
    """
    archive = venv.with_name(f"{venv.name}.tar.gz")
    if archive.is_file():
        return archive
    with _locked(archive, notice):
        if not archive.is_file():
            notice(f"packing the environment {venv.name} (CPython {python_version(venv)}): once, into {archive}")
            packing.write(packing.members(venv, as_they_are=True), archive)
    return archive


def python_version(venv: Path) -> str:
    """Return the version of an environment's Python, such as `3.11.7`; "" if the environment does not name it."""
    return _setting(venv, "version_info") or _setting(venv, "version")


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


def _install(requirements: Path, found: RequirementsContent, target: Path, notice: Notice) -> None:
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        for command in _commands(requirements.absolute(), found, partial):
            run_installer(command, requirements, notice)
        make_relocatable(partial)
        partial.rename(target)
    except OSError as error:
        raise explain(error, error.filename or str(target)) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _commands(requirements: Path, found: RequirementsContent, venv: Path) -> list[list[str]]:
    strict = ["--require-hashes"] if any(b"--hash=" in text for text in found.texts.values()) else []
    copied = list(map(str, found.editable))  # what tasks share can't be the user's own source
    uv = _uv()
    if uv:
        # What a task compiles is its own, and gone with it.
        options = ["--quiet", "--compile-bytecode", "--python", str(venv / "bin" / "python")]
        options += ["--refresh"] if found.packages else []  # uv does not see that a file of a local package changed
        install = [uv, "pip", "install", *options]
        copies = [[*install, "--reinstall", "--no-deps", *copied]] if copied else []
        made = [uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, str(venv)]
        return [made, [*install, *strict, "-r", str(requirements)], *copies]
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    copies = [[*pip, "--force-reinstall", "--no-deps", *copied]] if copied else []
    return [[sys.executable, "-m", "venv", str(venv)], [*pip, *strict, "-r", str(requirements)], *copies]


def _uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    if importlib.util.find_spec("uv") and beside.exists():
        return str(beside)
    return shutil.which("uv")


def run_installer(command: list[str], requirements: Path, notice: Notice, report_s: float = REPORT_S) -> None:
    """Run `command` to its end; `notice` gets a line every `report_s` seconds while it goes on. An error has the last
    lines of the command's own messages, which name what failed.

    Raises:
        StagingError: it failed, or took too long.
    """
    began, pipe, none = time.monotonic(), subprocess.PIPE, subprocess.DEVNULL
    where = requirements.absolute().parent  # from which installers look for `./package`
    with subprocess.Popen(command, stdin=none, stdout=pipe, stderr=pipe, text=True, errors="replace", cwd=where) as run:
        try:
            output, errors = _await_installer(run, began, requirements, notice, report_s)
        except BaseException:
            run.kill()
            raise
    if run.returncode:
        last = "\n".join((errors or output).strip().splitlines()[-6:])
        raise StagingError(f"{requirements}: cannot be installed by {Path(command[0]).name}:\n{last}")


def _await_installer(
    run: subprocess.Popen[str], began: float, requirements: Path, notice: Notice, report_s: float
) -> tuple[str, str]:
    while True:
        try:
            return run.communicate(timeout=report_s)
        except subprocess.TimeoutExpired:
            seconds = time.monotonic() - began
            if seconds > INSTALL_LIMIT_S:
                text = f"{requirements}: installing it took longer than {INSTALL_LIMIT_S:.0f} s"
                raise StagingError(text) from None
            notice(f"still installing {requirements.name}: {seconds:.0f} s so far")


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
def _locked(target: Path, notice: Notice) -> Iterator[None]:
    """Let one process at a time make `target`; the others wait for it."""
    path = target.with_name(f".{target.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("w") as lock:
            _wait(lock.fileno(), target, notice)
            yield
    except OSError as error:
        raise explain(error, error.filename or str(target)) from error


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
