"""Facts about a run in the list of jobs beside its outcome: metrics that programs reported, and hyperparameters.

The rule: both are bounded, whatever a log holds. Hyperparameters are read from the command, where every launcher puts
them: `--lr 0.1`, `--lr=0.1`, `optimizer.lr=0.1`; and from the variables that the job file sets.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from howdah.spec import redaction

MAX_NAMES, MAX_NAME, MAX_VALUE = 50, 100, 200
"""The most metrics and hyperparameters of a job, and the most characters of a name and of a value."""
MAX_COMMAND = 20_000
"""Characters of a command that are read."""
_POINT = re.compile(
    rb'"task":\{"role":"[^"\\]{1,100}","index":\d{1,6}\},"name":"((?:[^"\\]|\\.){1,600})","value":([0-9.eE+-]{1,30})[,}]'
)
_WORD = re.compile(r"""\d*[<>]|(?:[^\s"';|&<>()]|"[^"]*"|'[^']*')+|[;|&<>()]+""")
_CONTINUED = re.compile(r"\\\r?\n")
_REDIRECTED = re.compile(r"[|<>]|&>|\d*[<>]")
_END = ";"
"""Stands for the end of one of several commands."""
_OPTION = re.compile(r"--?([A-Za-z_][\w.-]*)(?:=(.*))?", re.DOTALL)
_ASSIGNMENT = re.compile(r"\+{0,2}([A-Za-z_][\w./-]*)=(.*)", re.DOTALL)
_NUMBER = re.compile(r"-\.?\d")


def add_point(metrics: dict[str, list[float]], line: bytes) -> None:
    """Update `[last, min, max]` of a metric by the line of an event `Measured`; ignore a point that is no number."""
    found = _POINT.search(line)
    if not found:
        return
    try:
        name = json.loads(b'"%b"' % found[1]) if b"\\" in found[1] else found[1].decode()
        value = float(found[2])
        name.encode()
    except ValueError:  # UnicodeError is one
        return
    if not math.isfinite(value) or len(name) > MAX_NAME:
        return
    known = metrics.get(name)
    if known is not None:
        known[:] = value, min(known[1], value), max(known[2], value)
    elif len(metrics) < MAX_NAMES:
        metrics[name] = [value, value, value]


def may_have_event_files(job: Mapping[str, Any]) -> bool:
    """Return whether a job's spec, as the event log has it, names a place where event files may be."""
    return any(dict(job.get(name) or {}).get("path") for name in ("board", "checkpoint")) or bool(job.get("outputs"))


def hyperparameters(job: Mapping[str, Any]) -> dict[str, str]:
    """Return the hyperparameters of a job's spec, as the event log has it, without secrets.

    They are those of the role that trains: the chief, else the workers, else the first role.
    """
    roles = job["roles"]
    trains = next((name for name in ("chief", "master", "worker") if name in roles), next(iter(roles), ""))
    role: Mapping[str, Any] = roles[trains] if roles else {}
    variables = {**dict(job.get("env") or {}), **dict(role.get("env") or {})}
    found: dict[str, str] = {}
    for name, value in (*_options(role.get("command") or ""), *variables.items()):
        name = str(name)
        if len(found) < MAX_NAMES and len(name) <= MAX_NAME and name not in found:
            # A value may hold a secret under a name of its own: `--conf a.secret.key=X`, `ARGS="--password X"`.
            shown = redaction.text(redaction.variables({name: str(value)})[name])
            found[_clean(name)] = _clean(shown[:MAX_VALUE])
    return found


def _options(command: Any) -> Iterator[tuple[str, str]]:
    """Yield the options of a command's first program that has options, and words `name=value`. An option without a
    value is true."""
    words = list(map(str, command)) if isinstance(command, (list, tuple)) else _words(str(command))
    name = ""
    for word in words:
        if word == _END:
            if name:
                yield name, "true"
            name = ""
            continue
        option = None if _NUMBER.match(word) else _OPTION.fullmatch(word)
        assignment = None if option or name else _ASSIGNMENT.fullmatch(word)
        if name:
            yield name, "true" if option else word
            name = ""
        if option and option[2] is None:
            name = option[1] if len(option[1]) > 1 or word.startswith("--") else ""  # not `-m module`
        elif option or assignment:
            found = option or assignment
            assert found is not None
            yield found[1], found[2]
    if name:
        yield name, "true"


def _words(command: str) -> Iterable[str]:
    """Split a shell line into words, as far as its first pipe or redirection. `shlex` takes twenty times as long."""
    for word in _WORD.findall(_CONTINUED.sub(" ", command[:MAX_COMMAND])):
        if _REDIRECTED.match(word):
            return
        if word[0] in ";&()":
            yield _END
        else:
            yield word.replace('"', "").replace("'", "") if '"' in word or "'" in word else word


def _clean(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
