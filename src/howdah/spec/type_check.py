"""Checks that values have the types that a spec declares, and that texts can be passed on: a job that is built in
Python may hold anything."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, Iterator, Mapping, Sequence, Union

from howdah.errors import Mistake

_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def mistakes(value: Any, kind: Any, place: str = "") -> Iterator[Mistake]:
    """Find where `value` does not have the type `kind` that the spec declares."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Union:
        yield from _union_types(value, arguments, place)
    elif isinstance(kind, type) and dataclasses.is_dataclass(kind) and isinstance(value, kind):
        for name, hint in typing.get_type_hints(kind).items():
            if typing.get_origin(hint) is not typing.ClassVar:
                yield from mistakes(getattr(value, name), hint, f"{place}.{name}" if place else name)
    elif origin is tuple and isinstance(value, (tuple, list)):
        for number, item in enumerate(value):
            yield from mistakes(item, arguments[0], f"{place}.{number}")
    elif arguments and origin is not tuple and isinstance(value, Mapping):
        for key, item in value.items():
            yield from mistakes(item, arguments[1], f"{place}.{key}")
    elif not _is_plain(value, kind):
        wanted = "a list" if origin is tuple else "a mapping" if arguments else _WORDS.get(kind, f"a {kind.__name__}")
        yield Mistake(place, f"is {value!r}, must be {wanted}")
    elif isinstance(value, str) and "\0" in value:
        yield Mistake(place, "contains a NUL byte, which neither a program nor a path can be given")


def _union_types(value: Any, kinds: Sequence[Any], place: str) -> Iterator[Mistake]:
    """Check Optional[X], or text or a list."""
    if not (value is None and type(None) in kinds):
        listed = isinstance(value, (tuple, list))
        fit = next((kind for kind in kinds if (typing.get_origin(kind) is tuple) == listed), kinds[0])
        yield from mistakes(value, fit, place)


def _is_plain(value: Any, kind: Any) -> bool:
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return type(value) is kind or (kind is str and isinstance(value, str))
