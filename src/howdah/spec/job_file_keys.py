"""Writes a job, and the defaults of its keys, with the keys and units of a job file."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, Dict, Mapping

from howdah.spec.codec import encode
from howdah.spec.job import ALIASES, JobSpec
from howdah.spec.units import duration_text, memory_text

_DECIDED_ELSEWHERE = {"master.memory", "master.vcores", "master.attempts", "save.every"}
"""Keys whose default 0 means that something else decides: the engine, or the request for a snapshot."""


def job_file_record(spec: JobSpec) -> Any:
    """Return, as JSON, the job file that is read back as an equal `spec`; defaults are left out."""
    return _record(spec)


def default_values(kind: Any, path: str = "") -> Dict[str, Any]:
    """Return the defaults of a record of the job by the paths of their keys (`timeouts.stop`), as in a job file. Empty
    defaults are left out, and so are zeros that mean that something else decides."""
    found: Dict[str, Any] = {}
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        key = f"{path}{ALIASES.get(field.name, field.name)}"
        if dataclasses.is_dataclass(hints[field.name]):
            found.update(default_values(hints[field.name], f"{key}."))
        elif key in _DECIDED_ELSEWHERE:
            continue
        elif isinstance(field.default, (bool, int, float)) or (isinstance(field.default, str) and field.default):
            found[key] = _field(field.name, field.default)
    return found


def _record(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _record(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_record(item) for item in value]
    if not dataclasses.is_dataclass(value):
        return value
    return {ALIASES.get(name, name): _field(name, getattr(value, name)) for name in encode(value)}


def _field(name: str, value: Any) -> Any:
    if name.endswith("_mib"):
        return memory_text(value)
    if name.endswith("_s"):
        text = duration_text(value)
        return text if text[-1].isalpha() else float(value)
    return _record(value)
