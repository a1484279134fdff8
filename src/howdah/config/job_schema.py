"""Makes the job file's JSON Schema, for editors, from the same declared types that `spec_reader` uses.

Descriptions are the fields' docstrings. tools/generate.py writes the schema to docs/job.schema.json; a test keeps it
so.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import re
import typing
from typing import Any

from howdah.config.engine_settings import options_of_own_engines
from howdah.config.spec_reader import keys_of
from howdah.frameworks import BUILT_IN
from howdah.spec import JobSpec
from howdah.spec.job import SHORT_FORMS
from howdah.spec.setting import Setting
from howdah.spec.validation import CHOICES, NAME, SHARE_OF_TASKS, VARIABLE

ADDRESS = "https://json-schema.org/draft/2020-12/schema"
# A variable may stand wherever a value does.
_VARIABLE = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
# An item of a list or a value by a free name: any scalar counts as the text it is written as.
_TEXT = {"type": ["string", "number", "boolean"]}
_MEMORY = {"type": ["string", "integer"], "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*([kKmMgGtT]([iI][bB])?)?\s*$|\$\{"}
_PART = r"[0-9][0-9.]*\s*(ms|s|min|m|h|d)"
_DURATION = {"type": ["string", "number"], "pattern": rf"^\s*({_PART}(\s*{_PART})*|[0-9][0-9.]*)\s*$|\$\{{"}
_MINIMUM = {"replicas": 1, "vcores": 1}


def schema() -> dict[str, Any]:
    """Return the whole schema, draft 2020-12."""
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
        kind = _choice(cls, name) or _kind(key.kind, name, key.field)
        properties[name] = _with_description(kind, descriptions(cls)[key.field], field)
    required = [name for name, key in keys_of(cls).items() if key.required]
    extra = {"required": required} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **extra}


def _choice(cls: Any, name: str) -> dict[str, Any] | None:
    allowed = CHOICES.get(f"{cls.__name__}.{name}")
    if allowed is None:
        return None
    if name == "causes":
        return {"type": "object", "additionalProperties": {"enum": list(allowed)}}
    share = [{"type": "string", "pattern": f"^{SHARE_OF_TASKS.pattern}$"}] if name == "success" else []
    return {"anyOf": [{"enum": list(allowed)}, *share, dict(_VARIABLE)]}


def _with_description(schema: dict[str, Any], text: str, field: dataclasses.Field[Any]) -> dict[str, Any]:
    plain = isinstance(field.default, (str, int, float)) and field.default != ""
    return {"description": text, **schema, **({"default": field.default} if plain else {})}


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
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return _scalar(kind, name)
    short = SHORT_FORMS.get(kind.__name__)
    if short is None:
        return _record(kind)
    inner = typing.get_type_hints(kind)[short]
    listed = [_kind(inner, "")] if typing.get_origin(inner) is tuple else []
    return {"anyOf": [{"type": "string"}, *listed, _record(kind)]}


def _mapping(kind: Any, name: str) -> dict[str, Any]:
    keys = {"roles": NAME, "env": VARIABLE, "secrets": VARIABLE}.get(name)
    names = {"propertyNames": _matching(keys)} if keys else {}
    minimum = {"minProperties": 1} if name == "roles" else {}
    own = {"properties": _engine_options()} if name == "engines" else {}
    inner = {"type": "string", "pattern": r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$|\$\{"} if name == "secrets" else None
    return {"type": "object", **names, **minimum, **own, "additionalProperties": inner or _kind(kind, "")}


def _engine_options() -> dict[str, Any]:
    """Return the options of howdah's own engines; those of other engines are checked when a job is planned."""
    return {
        engine: {
            "type": "object",
            "properties": {name: _option(option) for name, option in options.items()},
            "additionalProperties": False,
        }
        for engine, options in options_of_own_engines().items()
    }


def _option(option: Setting) -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {
        "memory": dict(_MEMORY),
        "duration": dict(_DURATION),
        "whole": _scalar(int, ""),
        "flag": _scalar(bool, ""),
    }
    text = {"anyOf": [{"enum": list(option.choices)}, dict(_VARIABLE)]} if option.choices else dict(_TEXT)
    value = kinds.get(option.kind, text)
    listed = option.kind in ("paths", "list")
    return {
        "description": option.help,
        **({"anyOf": [dict(_TEXT), {"type": "array", "items": value}]} if listed else value),
    }


def _scalar(kind: Any, name: str) -> dict[str, Any]:
    if kind is str:
        if name == "framework":
            return {"type": "string", "examples": list(BUILT_IN)}
        return {"type": "string"} if name else dict(_TEXT)
    if kind is int:
        return {"anyOf": [{"type": "integer", "minimum": _MINIMUM.get(name, 0)}, dict(_VARIABLE)]}
    if kind is float:
        return {"anyOf": [{"type": "number", "minimum": 0}, dict(_VARIABLE)]}
    return {"anyOf": [{"type": "boolean"}, dict(_VARIABLE)]}


def _matching(pattern: re.Pattern[str]) -> dict[str, str]:
    return {"pattern": f"^{pattern.pattern}$"}


@functools.cache
def descriptions(cls: type) -> dict[str, str]:
    """Return the docstring below each field of a spec dataclass, in one line."""
    (definition,) = ast.parse(inspect.getsource(cls)).body
    assert isinstance(definition, ast.ClassDef)
    texts = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(field.target, ast.Name)
            texts[field.target.id] = " ".join(str(text.value.value).split())
    return texts
