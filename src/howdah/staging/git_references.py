"""Finds the commits to which branches and tags of git refer now, so that a new commit leads to a new environment.

A server is asked at most once a minute, at the same time as the others, without any question to the user, and with a
short limit. Its last answer is kept: without a new one the earlier environment is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from howdah.spec.values import dataclass
from howdah.storage.content_cache import local_directory

LIMIT_S = 10.0
"""Seconds for which the answers are awaited, all together."""
KEPT_S = 60.0
"""Seconds for which an answer is used again: one submission asks several times."""
_PLACE = re.compile(r"""git\+((?:https?|ssh|file|git)://[^#\s"';]+)""")
_SOURCE = re.compile(
    r"""\{[^{}\n]*\bgit\s*=\s*["']([^"']+)["'][^{}\n]*\}"""
    r"""|(?m:^\[tool\.uv\.sources\.[^\]\n]+\]\n)(?:(?!\[).*\n)*?\s*git\s*=\s*["']([^"'\n]+)["'](?:\n(?!\[).*)*"""
)
_REVISION = re.compile(r"""\b(?:branch|tag|rev)\s*=\s*["']([^"']+)["']""")
_COMMIT = re.compile(r"(?i)[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHORT = re.compile(r"(?i)[0-9a-f]{7,}")
_USER = re.compile(r"://[^/]*@")
_REMARK = re.compile(r"(?m)^\s*#.*$")


@dataclass(frozen=True)
class GitReference:
    """A branch, a tag or the like of a repository, which may refer to another commit tomorrow."""

    url: str
    """The address of the repository, in git's form."""
    name: str
    """The name in the requirement; HEAD if it has none."""

    @property
    def shown(self) -> str:
        """Return the address and the name, without a user name and password."""
        return f"{_USER.sub('://', self.url)}@{self.name}"


def find_references(text: str) -> Iterator[GitReference]:
    """Yield the references to git in a line of a requirements file, or in a pyproject.toml, except whole commits."""
    text, found = _REMARK.sub("", text), []
    for place in _PLACE.finditer(text):
        host, _, path = place[1].partition("://")[2].partition("/")
        path, _, name = path.rpartition("@") if "@" in path else (path, "", "")
        found.append((f"{place[1].partition('://')[0]}://{host}/{path}", name))
    for source in _SOURCE.finditer(text):
        revision = _REVISION.search(source[0])
        found.append((source[1] or source[2], revision[1] if revision else ""))
    for url, name in found:
        if not _COMMIT.fullmatch(name) and not url.startswith("-"):
            yield GitReference(url, name or "HEAD")


_answers: dict[GitReference, tuple[float, str]] = {}
"""For each reference, when its server was asked, by a clock that never goes back, and the answer; "" for none."""


def commits_of(references: Iterable[GitReference]) -> Mapping[GitReference, str]:
    """Return the commits by the servers' answers, or else by their last answers; references that are not known at all
    are left out."""
    wanted = list(dict.fromkeys(references))
    _ask(wanted)
    found = {each: _answers[each][1] or _read_kept(each) for each in wanted}
    return {each: commit for each, commit in found.items() if commit}


def without_answer(references: Iterable[GitReference]) -> list[GitReference]:
    """Return the references whose present commit no server has reported."""
    wanted = list(dict.fromkeys(references))
    _ask(wanted)
    return [each for each in wanted if not _answers[each][1]]


def _ask(references: list[GitReference]) -> None:
    now = time.monotonic()
    asked = [each for each in references if each not in _answers or now - _answers[each][0] > KEPT_S]
    running = {each: _start(each) for each in asked}
    try:
        for each, process in running.items():
            commit = _commit_in(_read_answer(process, now + LIMIT_S), each.name)
            _answers[each] = time.monotonic(), commit
            if commit:
                _keep(each, commit)
    finally:
        for process in filter(None, running.values()):
            _end(process)  # of those that an interrupt has left


def _start(reference: GitReference) -> subprocess.Popen[str] | None:
    """Start the request to a server. It asks no terminal for a password, and has no password in its arguments."""
    variables = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "SSH_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never"}
    variables["GCM_INTERACTIVE"] = "never"  # of git's own credential manager, which opens windows
    address = reference.url
    if address.startswith("http") and _USER.search(address):
        count = os.environ.get("GIT_CONFIG_COUNT", "")
        number = int(count) if count.isdecimal() else 0
        variables |= {"GIT_CONFIG_COUNT": str(number + 1), f"GIT_CONFIG_KEY_{number}": "remote.howdah.url"}
        variables[f"GIT_CONFIG_VALUE_{number}"], address = address, "howdah"
    command = ["git", "ls-remote", "--", address, reference.name]
    none, pipe = subprocess.DEVNULL, subprocess.PIPE
    how: dict[str, Any] = {"stdin": none, "stdout": pipe, "stderr": none, "text": True, "errors": "replace"}
    with contextlib.suppress(OSError, ValueError):
        # Like a clone it does not heed the settings of a repository around the current directory.
        return subprocess.Popen(command, env=variables, cwd="/", start_new_session=True, **how)
    return None


def _read_answer(process: subprocess.Popen[str] | None, until: float) -> str | None:
    """Return a server's answer; None if it did not answer, or refused."""
    if process is None:
        return None
    try:
        output, _ = process.communicate(timeout=max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        _end(process)
        return None
    return output if process.returncode == 0 else None


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _commit_in(answer: str | None, name: str) -> str:
    """Return the commit of a reference; "" if it is not known. If a branch and a tag have the name, the branch counts,
    as for installers."""
    if answer is None:
        return ""
    lines = (line.partition("\t") for line in answer.splitlines())
    commits = {where: commit for commit, _, where in lines}
    found = (commits.get(where, "") for where in (f"refs/heads/{name}", f"refs/tags/{name}", name))
    # A server cannot resolve a shortened commit, and a commit never changes.
    return next(filter(None, found), name if _SHORT.fullmatch(name) else "")


def _kept(reference: GitReference) -> Path:
    digest = hashlib.sha256(f"{reference.url}@{reference.name}".encode()).hexdigest()
    return local_directory() / "git-references" / digest[:32]


def _keep(reference: GitReference, commit: str) -> None:
    path = _kept(reference)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_text(commit, "utf-8")
        fresh.replace(path)


def _read_kept(reference: GitReference) -> str:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return _kept(reference).read_text("utf-8")
    return ""
