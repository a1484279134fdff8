"""Reads a YAML tree into a value of the spec, by the declared types of its dataclasses; docs/adr/0002 says why not by
pydantic.

After a mistake reading goes on with the field's default, so that all mistakes are found at once.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import typing
from collections.abc import Callable, Mapping
from typing import Any

from howdah.config.yaml_tree import Items, Keys, Node, Text, child_place
from howdah.errors import Mistake
from howdah.spec.job import ALIASES, SHORT_FORMS
from howdah.spec.units import memory_mib, seconds
from howdah.spec.validation import MAX_NAMED, nearest
from howdah.spec.values import dataclass

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# In these places ${name} may be meant for a shell.
SHELL_PLACES = re.compile(r"(roles\.[^.]+\.)?(command|env)(\..*)?|labels\..*")
_MAX_DIGITS = 18
_WORDS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
# Keys by which people try to choose the engine in a job file.
_ENGINE_KEYS = ("engine", "on", "profile")
ENGINE_IS_CHOSEN_OUTSIDE = (
    "is no key of a job, which runs unchanged anywhere: choose the engine by --on or by a profile"
)
_MEANT = {
    **dict.fromkeys(("cpu", "cpus", "cores", "vcore"), "vcores"),
    **dict.fromkeys(("instances", "num", "count", "nodes", "num_nodes", "num_workers", "parallelism"), "replicas"),
    **dict.fromkeys(("cmd", "args", "entrypoint", "script", "run", "commands"), "command"),
    **dict.fromkeys(("mem", "memory_mib", "memory_mb"), "memory"),
    **dict.fromkeys(("tasks", "groups", "services"), "roles"),
    **dict.fromkeys(("environ", "envs"), "env"),
    **dict.fromkeys(("gpu", "accelerators"), "gpus"),
    **dict.fromkeys(("setup", "runtime_env"), "environment"),
    **dict.fromkeys(("workdir", "working_dir"), "files"),
    **dict.fromkeys(("job_recovery", "max_retries", "backoffLimit"), "retries"),
    **dict.fromkeys(("image_id", "docker", "container"), "image"),
    "file_mounts": "inputs",
}


@dataclass(frozen=True)
class Key:
    """How users write a field of a spec dataclass."""

    field: str
    kind: Any
    """The declared type of the field."""
    required: bool


@functools.cache
def keys_of(cls: Any) -> Mapping[str, Key]:
    """Return the keys of a mapping that is read into `cls`."""
    hints = typing.get_type_hints(cls)
    return {
        ALIASES.get(field.name, field.name): Key(
            field.name,
            hints[field.name],
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(cls)
    }


class Reader:
    """Reads one file. `variables` holds the values of `${name}`; `sources` gets the origin of every value that is
    read."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = variables
        self.mistakes: list[Mistake] = []
        self.sources: dict[str, str] = {}

    def read(self, node: Node, kind: Any, place: str, name: str = "") -> Any:
        """Return `node` as `kind`, or a stand-in (empty, zero) if it cannot be read so. `name` is the field, which ends
        in its unit."""
        self.sources[place] = node.origin
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if _is_record(kind):
            return self.record(node, kind, place)
        if origin is typing.Union:
            return self.union(node, arguments, place)
        if origin is tuple:
            return self.items(node, arguments[0], place)
        if origin is not None:
            return self.mapping(node, arguments[1], place)
        return self.scalar(node, kind, place, name)

    def record(self, node: Node, cls: type, place: str) -> Any:
        short = SHORT_FORMS.get(cls.__name__)
        listed = short is not None and typing.get_origin(keys_of(cls)[short].kind) is tuple
        if short and isinstance(node, Text) and not node.null:
            value = self.read(node, str, place)
            return cls(**{short: (value,) if listed else value})
        if short and listed and isinstance(node, Items):
            return cls(**{short: self.read(node, keys_of(cls)[short].kind, place)})
        if not isinstance(node, Keys):
            known = keys_of(cls)
            if len(known) <= MAX_NAMED:
                self.refuse(node, place, f"must be a mapping with {', '.join(known)}")
            else:
                needed = ", ".join(name for name, key in known.items() if key.required) or next(iter(known))
                self.refuse(node, place, f"must be a mapping with {needed}; `howdah schema` lists all keys")
            return stand_in(cls)
        known, values = keys_of(cls), {}
        for name, item in node.entries.items():
            if name not in known:
                self.unknown(name, item, cls, place)
            elif isinstance(item, Text) and item.null and not known[name].required:
                self.sources[child_place(place, name)] = item.origin
            else:
                values[known[name].field] = self.read(
                    item, known[name].kind, child_place(place, name), known[name].field
                )
        for name in (name for name, key in known.items() if key.required and name not in node.entries):
            self.mistakes.append(Mistake(child_place(place, name), "is missing", origin=node.origin))
            values[known[name].field] = stand_in(known[name].kind)
        return cls(**values)

    def unknown(self, name: str, node: Node, cls: type, place: str) -> None:
        if not place and name in _ENGINE_KEYS:
            self.mistakes.append(Mistake(name, ENGINE_IS_CHOSEN_OUTSIDE, origin=node.origin))
            return
        self.mistakes.append(dataclasses.replace(unknown_key(name, cls, place), origin=node.origin))

    def union(self, node: Node, kinds: tuple[Any, ...], place: str) -> Any:
        """Read Optional[X], or a text or a list."""
        if type(None) in kinds and isinstance(node, Text) and node.null:
            return None
        listed = next((kind for kind in kinds if typing.get_origin(kind) is tuple), None)
        if listed is not None and isinstance(node, Items):
            return self.read(node, listed, place)
        return self.read(node, next(kind for kind in kinds if kind not in (listed, type(None))), place)

    def items(self, node: Node, kind: Any, place: str) -> tuple[Any, ...]:
        if isinstance(node, Items):
            return tuple(self.read(item, kind, child_place(place, str(n))) for n, item in enumerate(node.items))
        if isinstance(node, Text) and node.value and not node.null:
            self.refuse(node, place, f"must be a list, such as [{node.value[:60]}]")
        else:
            self.refuse(node, place, "must be a list")
        return ()

    def mapping(self, node: Node, kind: Any, place: str) -> dict[str, Any]:
        if isinstance(node, Keys):
            named = node.entries.items()
            return {name: self.named(name, item, kind, child_place(place, name)) for name, item in named}
        if _is_record(kind):
            self.refuse(node, place, "must be a mapping with names that you choose, such as {worker: {command: …}}")
        else:
            self.refuse(node, place, "must be a mapping, such as {NAME: value}")
        return {}

    def named(self, name: str, node: Node, kind: Any, place: str) -> Any:
        """Read what a mapping has under a name that the user chooses. A single value there is no record: its name is
        a key that belongs one level deeper, where there is such a key."""
        meant = meant_key(name)
        inside = _place_inside(kind, meant) if _is_record(kind) else ""
        if isinstance(node, Keys) or not _is_record(kind) or not (inside or meant in keys_of(kind)):
            return self.read(node, kind, place)
        outer = f"{place.removesuffix(name)}NAME" + f".{inside}" * (meant not in keys_of(kind))
        self.mistakes.append(Mistake(place, f"is not a key here: write {meant!r} inside {outer!r}", origin=node.origin))
        return stand_in(kind)

    def scalar(self, node: Node, kind: Any, place: str, name: str) -> Any:
        if not isinstance(node, Text):
            self.refuse(node, place, f"must be {_SCALARS[kind][0]}")
            return kind()
        if node.null:
            self.refuse(node, place, "has no value" + (": write '' for an empty text" if kind is str else ""))
            return kind()
        text = self.substituted(node, place)
        try:
            return _convert(text, kind, name)
        except ValueError as error:
            self.refuse(dataclasses.replace(node, value=text), place, str(error))
            return kind()

    def substituted(self, node: Text, place: str) -> str:
        """Return the node's text with declared variables replaced; everything else stays byte for byte."""

        def value(match: re.Match[str]) -> str:
            name, default = match.groups()
            if name in self.variables:
                found = self.variables[name] or (default or "")
                inside = next((each[0] for each in REFERENCE.finditer(found) if each[1] in self.variables), "")
                if inside and not SHELL_PLACES.fullmatch(place):
                    problem = f"has ${{{name}}}, whose value has {inside}, which is not replaced there: write both here"
                    self.mistakes.append(Mistake(place, problem, origin=node.origin))
                return found
            if not SHELL_PLACES.fullmatch(place):
                hint = nearest(name, self.variables)
                self.mistakes.append(
                    Mistake(place, f"has ${{{name}}}, which `vars` doesn't declare", hint, node.origin)
                )
            return match[0]

        return REFERENCE.sub(value, node.value)

    def refuse(self, node: Node, place: str, problem: str) -> None:
        if isinstance(node, Text):
            secret = place.startswith("secrets.")
            shown = f"is {node.value[:60]!r}, " if node.value and not node.null and not secret else ""
        else:
            shown = "is a list, " if isinstance(node, Items) else "is a mapping, "
        self.mistakes.append(Mistake(place, shown + problem, origin=node.origin))


def meant_key(name: str) -> str:
    """Return the key for which `name` stands in another system; `name` itself if it stands for none."""
    return _MEANT.get(name, name)


def unknown_key(name: str, cls: type, place: str) -> Mistake:
    """Return the mistake of a key `name`, at `place`, that does not exist in a mapping that is read into `cls`."""
    known, meant = keys_of(cls), meant_key(name)
    inside = "" if meant in known else _place_inside(cls, meant)
    if inside:
        return Mistake(child_place(place, name), f"is not a key here: write {meant!r} inside {inside!r}")
    hint = meant if meant in known else nearest(name, known)
    if len(known) <= MAX_NAMED:
        return Mistake(child_place(place, name), f"is not a key here, known are {', '.join(known)}", hint)
    problem = "is not a key here" if hint else "is not a key here; `howdah schema` lists all"
    return Mistake(child_place(place, name), problem, hint)


def _place_inside(cls: type, name: str) -> str:
    """Return where the key `name` belongs in a mapping that is read into `cls`, such as `roles.NAME.resources`; "" if
    nowhere. Most keys that are in the wrong place are those of roles, of which there are many."""
    known = keys_of(cls)
    named = {f"{outer}.NAME": typing.get_args(key.kind)[-1] for outer, key in known.items() if _is_named(key.kind)}
    for outer, kind in named.items():
        if name in keys_of(kind):
            return outer
        if inner := _place_inside(kind, name):
            return f"{outer}.{inner}"
    records = {outer: key.kind for outer, key in known.items() if _is_record(key.kind)}
    return next((outer for outer, kind in records.items() if name in keys_of(kind)), "")


def _is_named(kind: Any) -> bool:
    return typing.get_origin(kind) in (Mapping, dict) and _is_record(typing.get_args(kind)[-1])


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def stand_in(kind: Any) -> Any:
    """Return a value of `kind` with which reading can go on after a mistake."""
    if dataclasses.is_dataclass(kind):
        cls = typing.cast(type, kind)
        return cls(**{key.field: stand_in(key.kind) for key in keys_of(cls).values() if key.required})
    origin = typing.get_origin(kind)
    if origin is typing.Union:
        return stand_in(typing.get_args(kind)[0])
    return (dict if origin is not None and origin is not tuple else origin or kind)()


def _convert(text: str, kind: Any, name: str) -> Any:
    if name.endswith("_mib"):
        return memory_mib(text)
    if name.endswith("_s"):
        return seconds(text)
    return _SCALARS[kind][1](text)


def _parse_int(text: str) -> int:
    if not re.fullmatch(r"[-+]?(0|[1-9][0-9]*)", text):
        raise ValueError("must be a whole number")
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"must be a whole number of at most {_MAX_DIGITS} digits")
    return int(text)


def _parse_bool(text: str) -> bool:
    if text not in _WORDS:
        raise ValueError("must be true or false")
    return _WORDS[text]


_SCALARS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    str: ("text", str),
    int: ("a whole number", _parse_int),
    float: ("a number", seconds),
    bool: ("true or false", _parse_bool),
}
