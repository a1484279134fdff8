"""Dataclass <-> JSON, by the declared types alone: what `encode` writes, `decode` gives back equal.

For values howdah wrote itself. What people write is validated in `howdah.client.jobfile`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Dict, Type, TypeVar

T = TypeVar("T")


def encode(value: Any) -> Any:
    """A JSON-ready copy of `value`; fields equal to their default are left out to keep messages small."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: encode(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if not _is_default(field, getattr(value, field.name))
        }
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def decode(cls: Type[T], data: Any) -> T:
    """Build `cls` from what `encode` gave; unknown keys are ignored, so that an older reader meets a newer writer.

    Raises:
        TypeError: a required field is absent.
    """
    return typing.cast(T, _decode(cls, data))


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return bool(value == field.default)
    if field.default_factory is not dataclasses.MISSING:
        return bool(value == field.default_factory())
    return False


@functools.cache
def _hints(cls: Any) -> Dict[str, Any]:
    return typing.get_type_hints(cls)


def _decode(kind: Any, data: Any) -> Any:
    origin = typing.get_origin(kind)
    if origin is typing.Union:
        return _decode_union(typing.get_args(kind), data)
    if origin is tuple:
        return tuple(_decode(typing.get_args(kind)[0], item) for item in data)
    if origin in (list, Sequence):
        return [_decode(typing.get_args(kind)[0], item) for item in data]
    if origin in (dict, Mapping):
        item_kind = typing.get_args(kind)[1]
        return {key: _decode(item_kind, item) for key, item in data.items()}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(data)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and isinstance(data, Mapping):
        hints = _hints(kind)
        return kind(**{name: _decode(hints[name], item) for name, item in data.items() if name in hints})
    return data


def _decode_union(kinds: Any, data: Any) -> Any:
    """Optional[X] and Union[str, Tuple[...]] are all our values use: the JSON type tells which."""
    if data is None:
        return None
    wants_tuple = isinstance(data, (list, tuple))
    return next(
        (_decode(kind, data) for kind in kinds if (typing.get_origin(kind) is tuple) == wants_tuple),
        data,
    )
