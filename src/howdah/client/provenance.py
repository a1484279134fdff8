"""The provenance of a job: where its code comes from, how it was submitted, from where, by whom.

The rule: a fact may be missing, but finding it must not be slow, and no secret may be in it. Git runs at the same time
as staging, and its answer is not waited for long.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from howdah.config.job_file_redaction import mask_job_file
from howdah.errors import HowdahError
from howdah.spec import JobSpec, redaction
from howdah.spec.provenance import MAX_PACKAGES, MAX_TEXT, MAX_WORDS, Submission

GIT_LIMIT_S = 1.0
MAX_LETTERS = 300


class Provenance:
    """Collects the provenance while the job is staged. `file` is the job file, if there is one; `text` is its content,
    or the content that such a file would have; `overrides` are the options that replaced values of it."""

    def __init__(
        self,
        job: JobSpec,
        base_directory: Path,
        file: Path | None = None,
        text: str = "",
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        self._job, self._base_directory, self._file, self._text = job, base_directory, file, text
        self._overrides = overrides or {}
        self._git = _start_git_status(base_directory)

    def __enter__(self) -> Provenance:
        return self

    def __exit__(self, *_: object) -> None:
        """End git if it still runs."""
        if self._git is not None and self._git.returncode is None:
            self._git.kill()
            self._git.communicate()

    def submission(self, secrets: Iterable[str]) -> Submission:
        """Return the provenance. `secrets` are values that must not be in it."""
        known = [*secrets, *_secret_values(self._job)]
        commit, dirty = _parse_status(self._git)
        words = [word[:MAX_LETTERS] for word in redaction.words(sys.argv, known)]
        with contextlib.suppress(OSError, KeyError):  # a user without a name
            return Submission(
                file=str(self._file or ""),
                text=_shorten(mask_job_file(self._text, known)),
                git_commit=commit,
                git_dirty=dirty,
                packages=_packages(self._job, self._base_directory),
                command=(*words[:MAX_WORDS], *(["…"] if len(words) > MAX_WORDS else [])),
                client=socket.gethostname(),
                user=getpass.getuser(),
                directory=str(self._base_directory.absolute()),
                overrides=_masked_overrides(self._overrides, known),
                time=round(time.time(), 3),
            )
        return Submission(time=round(time.time(), 3))


def _secret_values(job: JobSpec) -> Iterator[str]:
    """Yield the values of variables in the job that look like secrets."""
    for env in (job.env, *(role.env for role in job.roles.values())):
        yield from (env[name] for name, shown in redaction.variables(env).items() if shown == redaction.MASK)


def _masked_overrides(overrides: Mapping[str, str], known: Iterable[str]) -> Mapping[str, str]:
    """Return the values, without those that look secret by the last part of their name, and without those that are too
    long."""
    known, found = list(known), {}
    for name, value in overrides.items():
        leaf = name.rpartition(".")[2]
        shown = redaction.variables({leaf: value})[leaf]
        found[name] = redaction.MASK if len(value) > MAX_TEXT else redaction.line(shown, known)
    return found


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n# … cut at {MAX_TEXT} characters\n"


def _start_git_status(base_directory: Path) -> subprocess.Popen[str] | None:
    """Start `git status` for the directory of the job's files; None outside of any repository."""
    if not any(
        (directory / ".git").exists() for directory in (base_directory.absolute(), *base_directory.absolute().parents)
    ):
        return None
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(base_directory)]
    command += ["status", "--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules=all", "--", "."]
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    with contextlib.suppress(OSError):
        none, pipe = subprocess.DEVNULL, subprocess.PIPE
        return subprocess.Popen(command, stdin=none, stdout=pipe, stderr=none, text=True, env=environ)
    return None


def _parse_status(git: subprocess.Popen[str] | None) -> tuple[str, bool]:
    """Return the commit ("" when it is not known), and whether files below the directory differ from it."""
    if git is None:
        return "", False
    try:
        output, _ = git.communicate(timeout=GIT_LIMIT_S)
    except subprocess.TimeoutExpired:
        return "", False
    found = re.search(r"(?m)^# branch\.oid ([0-9a-f]{40,64})$", output)
    changed = any(line and not line.startswith("#") for line in output.splitlines())
    return (found[1] if found else ""), changed


def _packages(job: JobSpec, base_directory: Path) -> Mapping[str, str]:
    """Return the packages that are installed in the environment, if it is on this machine; else those that its lock
    file names."""
    given, found = job.environment, dict[str, str]()
    with contextlib.suppress(OSError, UnicodeDecodeError, HowdahError):
        if given.requirements:
            from howdah.staging.project_files import file_to_install
            from howdah.staging.virtual_environments import environment_path, installed_packages

            requirements = base_directory / given.requirements
            found = installed_packages(environment_path(requirements))
            text = "" if found else file_to_install(requirements).read_text(encoding="utf-8")
            found = found or dict(re.findall(r"(?m)^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", text))
        elif "/" in given.python:
            from howdah.staging.named_interpreter import locate
            from howdah.staging.virtual_environments import installed_packages

            found = installed_packages(Path(locate(given.python, base_directory)).parent.parent)
        elif given.conda:
            from howdah.staging import conda_environments

            found = dict(conda_environments.packages(conda_environments.find_prefix(given.conda, base_directory)))
    return dict(sorted(found.items(), key=lambda item: item[0].lower())[:MAX_PACKAGES])
