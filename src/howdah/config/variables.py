"""`vars:` and `--set`, which change values of a job file without editing it.

A name is a variable only if the file declares it under `vars`; so `$HOME` and `${HOME}` in a command reach the shell. A
variable's value comes from `--set NAME=VALUE`, else the environment, else the file. A `--set` whose name is not
declared is a path into the spec (`roles.worker.replicas`), and replaces the value at that path.
"""

from __future__ import annotations

import dataclasses
import json
import numbers
import typing
from collections.abc import Mapping
from typing import Any

from howdah.config.spec_reader import keys_of, unknown_key
from howdah.config.yaml_tree import Items, Keys, Node, Text, child_place, parse
from howdah.errors import Mistake, SpecError
from howdah.spec import JobSpec
from howdah.spec.validation import VARIABLE, nearest


def read_sets(sets: Mapping[str, object]) -> dict[str, str]:
    """Return the values of `--set` as the texts that a job file would contain for them.

    Raises:
        SpecError: a value is no text, number or boolean.
    """
    kinds = (str, bool, numbers.Number)
    if wrong := [name for name, value in sets.items() if not isinstance(value, kinds)]:
        problem = "must be text, a number or a boolean"
        raise SpecError([Mistake(str(name), problem, origin=f"--set {name}") for name in wrong])
    # JSON writes any bool, int or float, also of a subclass, as YAML reads it. It cannot write other kinds such as
    # NumPy's.
    known = (bool, int, float)
    return {name: json.dumps(value) if isinstance(value, known) else str(value) for name, value in sets.items()}


def read_declared_variables(
    root: Node, sets: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the values of the variables under `vars` of `root`, and the source of each.

    Raises:
        SpecError: `vars` is no mapping of names to texts, or a variable has no value anywhere.
    """
    node = root.entries.get("vars") if isinstance(root, Keys) else None
    if node is None or (isinstance(node, Text) and node.null):
        return {}, {}
    if not isinstance(node, Keys):
        raise SpecError([Mistake("vars", "must be a mapping of names to their defaults", origin=node.origin)])
    values: dict[str, str] = {}
    sources: dict[str, str] = {}
    mistakes = []
    for name, default in node.entries.items():
        problem = _problem(name, default, sets, environ)
        if problem:
            mistakes.append(Mistake(f"vars.{name}", problem, origin=default.origin))
        elif name in sets or name in environ:
            values[name] = sets[name] if name in sets else environ[name]
            sources[f"vars.{name}"] = f"--set {name}" if name in sets else f"environment {name}"
        elif isinstance(default, Text):
            values[name], sources[f"vars.{name}"] = default.value, default.origin
    if mistakes:
        raise SpecError(mistakes)
    return values, sources


def _problem(name: str, default: Node, sets: Mapping[str, str], environ: Mapping[str, str]) -> str:
    if not VARIABLE.fullmatch(name):
        return "is not a name for a variable: letters, digits and _, no digit first"
    if not isinstance(default, Text):
        return "must be text or a number"
    if default.null and name not in sets and name not in environ:
        return f"has no value: give one with --set {name}=VALUE"
    return ""


def apply_overrides(
    root: Node, sets: Mapping[str, str], variables: Mapping[str, str], fields: Mapping[str, str]
) -> tuple[Node, list[Mistake]]:
    """Return `root` with every `--set` that names a place of the spec and with the `fields` that have options of their
    own; and the mistakes in the `--set` options that name no place."""
    mistakes: list[Mistake] = []
    chosen = [(f"--set {path}", path, value) for path, value in sets.items() if path not in variables]
    for origin, path, value in (*chosen, *((f"--{name}", name, value) for name, value in fields.items())):
        try:
            root = _with_leaf(root, JobSpec, path.split("."), Text(value, origin), "")
        except SpecError as error:
            for mistake in error.mistakes:
                hint = nearest(path, [*variables, *filter(None, [mistake.nearest])])
                if not hint and mistake.place == path and VARIABLE.fullmatch(path) and "inside" not in mistake.problem:
                    mistake = dataclasses.replace(mistake, problem="is not a key here, and no variable under `vars`")
                mistakes.append(dataclasses.replace(mistake, origin=origin, nearest=hint or mistake.nearest))
    return root, mistakes


def _with_leaf(node: Node | None, kind: Any, path: list[str], leaf: Text, place: str) -> Node:
    """Return `node`, which is to be read as `kind`, with `leaf` at `path` below it."""
    if not path:
        return _value(leaf, kind)
    if dataclasses.is_dataclass(kind):
        known = keys_of(typing.cast(type, kind))
        if path[0] not in known:
            raise SpecError([unknown_key(path[0], typing.cast(type, kind), place)])
        return _with_leaf_in_keys(node, known[path[0]].kind, path, leaf, place)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return _with_leaf_in_items(node, arguments[0], path, leaf, place)
    if origin is typing.Union or origin is None:
        raise SpecError.at(".".join([place, *path]), "lies inside a single value")
    inner = typing.get_origin(arguments[1])
    if arguments[1] in (str, int) or inner is typing.Union:
        path = [".".join(path)]
    elif inner is not Mapping and not (isinstance(node, Keys) and path[0] in node.entries):
        roles = list(node.entries) if isinstance(node, Keys) else []
        raise SpecError.at(
            child_place(place, path[0]), f"is not in the file, which has {', '.join(roles)}", nearest(path[0], roles)
        )
    return _with_leaf_in_keys(node, arguments[1], path, leaf, place)


def _with_leaf_in_keys(node: Node | None, kind: Any, path: list[str], leaf: Text, place: str) -> Keys:
    entries = dict(node.entries) if isinstance(node, Keys) else {}
    inner = _with_leaf(entries.get(path[0]), kind, path[1:], leaf, child_place(place, path[0]))
    return Keys({**entries, path[0]: inner}, node.origin if isinstance(node, Keys) else leaf.origin)


def _with_leaf_in_items(node: Node | None, kind: Any, path: list[str], leaf: Text, place: str) -> Items:
    items = list(node.items) if isinstance(node, Items) else []
    if not path[0].isdigit() or int(path[0]) >= len(items):
        raise SpecError.at(
            child_place(place, path[0]), f"is not there, the list has {len(items)} items, counted from 0"
        )
    number = int(path[0])
    items[number] = _with_leaf(items[number], kind, path[1:], leaf, child_place(place, path[0]))
    return Items(tuple(items), node.origin if isinstance(node, Items) else leaf.origin)


def _value(leaf: Text, kind: Any) -> Node:
    """Return the text, byte for byte, for a kind that takes a text; otherwise the list or mapping that its YAML stands
    for."""
    if kind in (str, int, float, bool) or typing.get_origin(kind) is typing.Union:
        return dataclasses.replace(leaf, plain=kind is not str)
    tree, mistakes = parse(leaf.value, leaf.origin, lines=False)
    if mistakes:
        raise SpecError(mistakes)
    return tree
