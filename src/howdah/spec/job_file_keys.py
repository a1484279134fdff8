"""Writes a job with the keys and units of a job file."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping

from howdah.spec.codec import encode
from howdah.spec.job import ALIASES, JobSpec
from howdah.spec.units import duration_text, memory_text


def job_file_record(spec: JobSpec) -> Any:
    """Return, as JSON, the job file that is read back as an equal `spec`; defaults are left out."""
    return _record(spec)


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
