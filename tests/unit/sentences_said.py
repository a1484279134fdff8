"""Finds the sentences that masters, executors, engines and compat commands record, by reading the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import source

SOURCE = source.SOURCE / "howdah"
PLACES = ("spec", "master", "executor", "engines", "supervisor", "compat", "history", "client/follow.py", "api")
# Of what is asked by programs, and by people with a mistake in an address, only the English is said.
NOT_OF_PEOPLE = (
    "master/program_api/handlers.py",
    "master/program_api/kv_store.py",
    "master/program_api/barriers.py",
    "compat/xlearning/rest.py",
)
MISTAKES = re.compile(
    r"must be|unknown|foreign|body|nothing answers|only actions|a change needs|cursor|no action|`task` is"
)
# Calls, and which argument of theirs people read: its place, or its name.
CALLS = {
    "Noted": (1, "text"),
    "AllocationLost": (1, "cause"),
    "AttemptOver": (0, ""),
    "Exit": (4, "detail"),
    "Outcome": (1, "diagnostics"),
    "Stopping": (1, "reason"),
    "mark": (1, "text"),
    "stop": (2, "reason"),
    "end": (None, "detail"),
    "_restart": (2, "reason"),
    "GangRestarted": (2, "reason"),
    "_halt": (0, "reason"),
    "Refused": (1, ""),
    "lack": (0, ""),
    "_end": (3, ""),
    "decide_end": (2, ""),
}
NUMBERS = (
    "number",
    "status",
    "code",
    "attempt",
    "epoch",
    "well",
    "pid",
    "others",
    "restarts",
    "retries",
    "retries_used",
)
TASKS = ("task.id", "task", "id_", "first", "first.id", "late[0].id", "one", "other")
MOST = 40
VALUES = re.compile(r"n1|worker:1|7")


def said() -> Iterator[tuple[str, str]]:
    """Return the places, each with a sample of the sentence: a value of the same kind replaces each variable."""
    places = tuple(f"{place}/" for place in PLACES)
    for module, path in source.modules().items():
        name = str(path.relative_to(SOURCE))
        if name in NOT_OF_PEOPLE or not f"{name}/".startswith(places):
            continue
        for function in source.functions(module):
            for line, sample in _of(function, path):
                if not MISTAKES.search(sample) and re.search("[a-z]{3}", VALUES.sub("", sample)):
                    yield f"{name}:{line}", sample


def samples_of(function: source.Function, places: Mapping[str, int]) -> Iterator[tuple[int, str]]:
    """Return the lines, each with a sample of the sentence, of the calls in `places`; a place has the number of the
    argument."""
    known = _assigned(function)
    for node in ast.walk(function):
        name = _name(node) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and len(node.args) > places.get(name, MOST):
            yield from ((node.lineno, sample) for sample in _samples(node.args[places[name]], known))


def _assigned(function: source.Function) -> dict[str, list[ast.expr]]:
    known: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known.setdefault(node.targets[0].id, []).append(node.value)
    return known


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _of(function: source.Function, path: Path) -> Iterator[tuple[int, str]]:
    known = _assigned(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            for text in _texts(node, "compat" in path.relative_to(SOURCE).parts):
                yield from ((node.lineno, sample) for sample in _samples(text, known))


def _texts(call: ast.Call, is_compat: bool) -> Iterator[ast.expr]:
    name = _name(call)
    if is_compat:
        if name == "append" and isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value).endswith("notes"):
            yield call.args[0]
        return
    place, keyword = CALLS.get(name, (None, ""))
    if place is not None and len(call.args) > place:
        yield call.args[place]
    yield from (one.value for one in call.keywords if one.arg == keyword)


def _samples(node: ast.expr, known: dict[str, list[ast.expr]], depth: int = 3) -> list[str]:
    """Return the possible values; [] when the value comes from elsewhere."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) and node.value else []
    if isinstance(node, ast.JoinedStr):
        found = [""]
        for part in node.values:
            ends = [part.value] if isinstance(part, ast.Constant) else _value(part, known, depth)  # type: ignore[arg-type]
            found = [begun + end for begun in found for end in ends][:MOST]
        return found
    if isinstance(node, ast.IfExp):
        return _samples(node.body, known, depth) + _samples(node.orelse, known, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [a + b for a in _samples(node.left, known, depth) for b in _samples(node.right, known, depth) or [""]]
    if isinstance(node, ast.Name) and depth:
        return [one for value in known.get(node.id, ()) for one in _samples(value, known, depth - 1)]
    return []


def _value(part: ast.FormattedValue, known: dict[str, list[ast.expr]], depth: int) -> list[str]:
    source = ast.unparse(part.value)
    if source.startswith("_on("):
        return [" on n1"]
    if isinstance(part.value, (ast.IfExp, ast.JoinedStr)):
        whole = _samples(part.value, known, depth)
        return whole + ([""] if isinstance(part.value, ast.IfExp) and "''" in source else [])
    if isinstance(part.value, ast.Name) and depth:
        whole = [one for value in known.get(source, ()) for one in _samples(value, known, depth - 1)]
        if whole:
            return whole[:3]
    if part.format_spec is not None or source.startswith("len(") or source.endswith(NUMBERS):
        return ["7"]
    return ["worker:1"] if source.endswith(TASKS) else ["n1"]
