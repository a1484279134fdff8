"""What the submitter notes of itself: where the job's code comes from, how it was submitted, from where, by whom.

The rule: a note may be missing, never slow or secret. Git is asked beside everything else, and not waited for long.
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
from howdah.spec import JobSpec, redaction
from howdah.spec.provenance import MOST_PACKAGES, MOST_TEXT, MOST_WORDS, Submission

GIT_LIMIT_S = 1.0
MOST_LETTERS = 300
_INSTALLED = re.compile(r"([A-Za-z0-9_.]+)-([^-]+)\.dist-info")


class Provenance:
    """Begun before the job is staged, complete when it is; `file` is the job file, if there is one, `text` what is in
    it, or what would be."""

    def __init__(self, job: JobSpec, base: Path, file: Path | None = None, text: str = "") -> None:
        self._job, self._base, self._file, self._text = job, base, file, text
        self._git = _ask_git(base)

    def __enter__(self) -> Provenance:
        return self

    def __exit__(self, *_: object) -> None:
        """Nobody waits for git any more."""
        if self._git is not None and self._git.returncode is None:
            self._git.kill()
            self._git.communicate()

    def submission(self, secrets: Iterable[str]) -> Submission:
        """What was found out. `secrets` are values that must not be in it."""
        known = [*secrets, *_written(self._job)]
        commit, dirty = _answer(self._git)
        words = [word[:MOST_LETTERS] for word in redaction.words(sys.argv, known)]
        with contextlib.suppress(OSError, KeyError):  # a user without a name
            return Submission(
                file=str(self._file or ""),
                text=_cut(mask_job_file(self._text, known)),
                git_commit=commit,
                git_dirty=dirty,
                packages=_packages(self._job, self._base),
                command=(*words[:MOST_WORDS], *(["…"] if len(words) > MOST_WORDS else [])),
                client=socket.gethostname(),
                user=getpass.getuser(),
                time=round(time.time(), 3),
            )
        return Submission(time=round(time.time(), 3))


def _written(job: JobSpec) -> Iterator[str]:
    """What stands in the job itself and looks as if it should not."""
    for env in (job.env, *(role.env for role in job.roles.values())):
        yield from (env[name] for name, shown in redaction.variables(env).items() if shown == redaction.MASK)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}\n# … cut at {MOST_TEXT} characters\n"


def _ask_git(base: Path) -> subprocess.Popen[str] | None:
    """Its status of the folder in which the job's files are; None outside of any repository."""
    if not any((folder / ".git").exists() for folder in (base.absolute(), *base.absolute().parents)):
        return None
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(base)]
    command += ["status", "--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules=all", "--", "."]
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    with contextlib.suppress(OSError):
        none, pipe = subprocess.DEVNULL, subprocess.PIPE
        return subprocess.Popen(command, stdin=none, stdout=pipe, stderr=none, text=True, env=environ)
    return None


def _answer(git: subprocess.Popen[str] | None) -> tuple[str, bool]:
    """The commit ("" when it is not known), and whether files below the folder differ from it."""
    if git is None:
        return "", False
    try:
        output, _ = git.communicate(timeout=GIT_LIMIT_S)
    except subprocess.TimeoutExpired:
        return "", False
    found = re.search(r"(?m)^# branch\.oid ([0-9a-f]{40,64})$", output)
    changed = any(line and not line.startswith("#") for line in output.splitlines())
    return (found[1] if found else ""), changed


def _packages(job: JobSpec, base: Path) -> Mapping[str, str]:
    """As the environment's lock file has them, or as they lie beside an interpreter of this machine."""
    given, found = job.environment, dict[str, str]()
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if given.requirements:
            text = (base / given.requirements).read_text(encoding="utf-8")
            found = dict(re.findall(r"(?m)^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", text))
        elif "/" in given.python:
            folders = Path(given.python).parent.parent.glob("lib/python3.*/site-packages")
            there = [_INSTALLED.fullmatch(path.name) for folder in folders for path in folder.iterdir()]
            found = {match[1]: match[2] for match in there if match}
    return dict(sorted(found.items(), key=lambda item: item[0].lower())[:MOST_PACKAGES])
