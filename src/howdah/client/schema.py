"""The job file's JSON Schema, for editors: made from the same declared types that `reading` reads by.

Descriptions are the fields' docstrings. docs/job.schema.json is this, written out; a test keeps it so.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import re
import typing
from typing import Any

from howdah.client.reading import keys_of
from howdah.frameworks import BUILT_IN
from howdah.spec import JobSpec
from howdah.spec.check import NAME, ON_FAILURE, SHARE, SUCCESS, VARIABLE

ADDRESS = "https://json-schema.org/draft/2020-12/schema"
# A variable may stand wherever a value does.
_VARIABLE = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
# An item of a list or a value by a free name: any scalar counts as the text it is written as.
_TEXT = {"type": ["string", "number", "boolean"]}
_MEMORY = {"type": ["string", "integer"], "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*([kKmMgGtT]([iI][bB])?)?\s*$|\$\{"}
_PART = r"[0-9][0-9.]*\s*(ms|s|min|m|h|d)"
_DURATION = {"type": ["string", "number"], "pattern": rf"^\s*({_PART}(\s*{_PART})*|[0-9][0-9.]*)\s*$|\$\{{"}
_CHOICES = {"success": SUCCESS, "on_failure": ON_FAILURE, "share": SHARE}
_LEAST = {"replicas": 1, "vcores": 1}


def schema() -> dict[str, Any]:
    """The whole schema, draft 2020-12."""
    job = _record(JobSpec)
    variables = {
        "description": "Names that `${name}` stands for in this file, with their defaults; `--set name=value` and the "
        "environment go before. A name without a default must be given one.",
        "type": "object",
        "propertyNames": _matching(VARIABLE),
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    }
    return {
        "$schema": ADDRESS,
        "title": "howdah job",
        **job,
        "properties": {**job["properties"], "vars": variables},
    }


def _record(cls: Any) -> dict[str, Any]:
    properties = {}
    for name, key in keys_of(cls).items():
        field = next(field for field in dataclasses.fields(cls) if field.name == key.field)
        properties[name] = _described(_kind(key.kind, name, key.field), descriptions(cls)[key.field], field)
    required = [name for name, key in keys_of(cls).items() if key.required]
    extra = {"required": required} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **extra}


def _described(schema: dict[str, Any], text: str, field: dataclasses.Field[Any]) -> dict[str, Any]:
    default = {} if field.default in (dataclasses.MISSING, None, "", ()) else {"default": field.default}
    return {"description": text, **schema, **default}


def _kind(kind: Any, name: str, field: str = "") -> dict[str, Any]:
    if field.endswith("_mib"):
        return dict(_MEMORY)
    if field.endswith("_s"):
        return dict(_DURATION)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union:
        possible = [_kind(argument, name) for argument in arguments if argument is not type(None)]
        return possible[0] if len(possible) == 1 else {"anyOf": possible}
    if origin is tuple:
        return {"type": "array", "items": _kind(arguments[0], "")}
    if origin is not None:
        return _mapping(arguments[1], name)
    return _record(kind) if dataclasses.is_dataclass(kind) else _scalar(kind, name)


def _mapping(kind: Any, name: str) -> dict[str, Any]:
    keys = {"roles": NAME, "env": VARIABLE, "secrets": VARIABLE}.get(name)
    names = {"propertyNames": _matching(keys)} if keys else {}
    least = {"minProperties": 1} if name == "roles" else {}
    inner = {"type": "string", "pattern": r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$|\$\{"} if name == "secrets" else None
    return {"type": "object", **names, **least, "additionalProperties": inner or _kind(kind, "")}


def _scalar(kind: Any, name: str) -> dict[str, Any]:
    if kind is str:
        if name in _CHOICES:
            return {"anyOf": [{"enum": list(_CHOICES[name])}, dict(_VARIABLE)]}
        if name == "framework":
            return {"type": "string", "examples": list(BUILT_IN)}
        return {"type": "string"} if name else dict(_TEXT)
    if kind is int:
        return {"anyOf": [{"type": "integer", "minimum": _LEAST.get(name, 0)}, dict(_VARIABLE)]}
    return {"anyOf": [{"type": "boolean"}, dict(_VARIABLE)]}


def _matching(pattern: re.Pattern[str]) -> dict[str, str]:
    return {"pattern": f"^{pattern.pattern}$"}


@functools.cache
def descriptions(cls: type) -> dict[str, str]:
    """The docstring below each field of a spec dataclass, in one line."""
    (definition,) = ast.parse(inspect.getsource(cls)).body
    assert isinstance(definition, ast.ClassDef)
    texts = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(field.target, ast.Name)
            texts[field.target.id] = " ".join(str(text.value.value).split())
    return texts
