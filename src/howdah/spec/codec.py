"""Convert dataclasses to JSON and back, by their declared types alone: `decode` gives back what `encode` wrote, equal.

This is for values that howdah wrote itself; `howdah.config.job_file` validates what people write. The conversion of a
type is compiled once, because a master of thousands of executors reads and writes thousands of messages a second.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import operator
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Dict, Optional, Tuple, Type, TypeVar

T = TypeVar("T")
Decoder = Callable[[Any], Any]
_PLAIN = frozenset((str, int, float, bool, type(None)))
_NO_DEFAULT = object()
WIRE_NAME = "wire_name"
"""Key of a field's metadata: the name that the field has in JSON, where code calls it otherwise."""
FLAT = "flat"
"""Key of a field's metadata: the field's value is a dataclass, and JSON has its fields beside those of the record."""


def encode(value: Any) -> Any:
    """Return `value` ready for JSON; fields equal to their default are left out to keep messages small."""
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    fields = _fields(kind)
    if fields is not None:
        record = {}
        for attribute, name, default in fields:
            item = getattr(value, attribute)
            if item is not default and item != default:
                if name:
                    record[name] = item if type(item) in _PLAIN else encode(item)
                else:
                    record.update(encode(item))
        return record
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def decode(cls: Type[T], data: Any) -> T:
    """Build a `cls` from what `encode` returned; unknown keys are ignored, so that an older reader can read a newer
    writer.

    Raises:
        TypeError: a required field is absent.
    """
    decoder = _decoder(typing.cast(Any, cls))
    return typing.cast(T, data if decoder is None else decoder(data))


@functools.cache
def _fields(kind: Any) -> Optional[Tuple[Tuple[str, str, Any], ...]]:
    """Return attribute, name in JSON ("" for a flat one) and default of each field; None if `kind` is no dataclass."""
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple((field.name, _wire_name(field), _default(field)) for field in dataclasses.fields(kind))


def _wire_name(field: dataclasses.Field[Any]) -> str:
    return "" if field.metadata.get(FLAT) else str(field.metadata.get(WIRE_NAME, field.name))


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else _NO_DEFAULT


@functools.cache
def _decoder(kind: Any) -> Optional[Decoder]:
    """Return a function that makes a value of `kind` from JSON; None when the JSON value is that value already."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union:
        return _union(arguments)
    if origin in (tuple, list, Sequence):
        make = tuple if origin is tuple else list
        return _items(make, _decoder(arguments[0]))
    if origin in (dict, Mapping):
        item = _decoder(arguments[1])
        return dict if item is None else lambda data: {key: item(value) for key, value in data.items()}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind
    return _Record(kind) if isinstance(kind, type) and dataclasses.is_dataclass(kind) else None


def _items(make: Callable[[Any], Any], item: Optional[Decoder]) -> Decoder:
    return make if item is None else lambda data: make([item(value) for value in data])


def is_well_typed(kind: Any, value: Any) -> bool:
    """Return True if what `decode` made of JSON that may be damaged has the types that `kind` declares, down to the
    last field."""
    return _checker(kind)(value)


@functools.cache
def _checker(kind: Any) -> Callable[[Any], bool]:
    """Return a function that recognises values of `kind`."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda _: True
    if origin is typing.Union:
        return lambda value: any(is_well_typed(each, value) for each in arguments)
    if origin in (tuple, list, Sequence):
        return _items_checker((tuple, list), iter, _checker(arguments[0]))
    if origin in (dict, Mapping):
        return _items_checker(Mapping, lambda value: value.values(), _checker(arguments[1]))
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _RecordChecker(kind)
    allowed = (int, float) if kind is float else kind
    return lambda value: isinstance(value, allowed)


def _items_checker(kinds: Any, items: Callable[[Any], Any], check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds) and all(map(check, items(value)))


class _RecordChecker:
    """Check a dataclass; most fields hold a plain value, or their default, and a look at that alone is enough."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._fields: Sequence[Tuple[Any, Callable[[Any], bool]]] = ()
        self._read: Callable[[Any], Any] = tuple

    def __call__(self, value: Any) -> bool:
        if not isinstance(value, self._kind):
            return False
        if not self._fields:
            hints = typing.get_type_hints(self._kind)
            names = [field.name for field in dataclasses.fields(self._kind)]
            nested = {name for name in names if dataclasses.is_dataclass(hints[name])}
            self._fields = [(None if name in nested else hints[name], _checker(hints[name])) for name in names]
            self._read = operator.attrgetter(*names, "__class__")  # of one name alone it would give no tuple
        items = zip(self._read(value), self._fields)  # noqa: B905 - 3.9
        return all(type(item) is hint or check(item) for item, (hint, check) in items)


class _Record:
    """Convert a dataclass; its fields are inspected when the first value comes, because a class may hold others of its
    own kind."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._decoders: Optional[Dict[str, Tuple[str, Optional[Decoder]]]] = None
        self._flat: Sequence[Tuple[str, Decoder]] = ()

    def __call__(self, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        if self._decoders is None:
            hints, fields = typing.get_type_hints(self._kind), dataclasses.fields(self._kind)
            self._flat = [(field.name, _Record(hints[field.name])) for field in fields if not _wire_name(field)]
            self._decoders = {_wire_name(field): (field.name, _decoder(hints[field.name])) for field in fields}
        values = {}
        for name, item in data.items():
            if name in self._decoders:
                attribute, decoder = self._decoders[name]
                values[attribute] = item if decoder is None else decoder(item)
        for attribute, decoder in self._flat:
            values[attribute] = decoder(data)
        return self._kind(**values)


def _union(kinds: Tuple[Any, ...]) -> Decoder:
    """Convert Optional[X] and Union[str, Tuple[...]], the only unions in our values: the type of the JSON value
    decides."""
    row = next((_decoder(kind) for kind in kinds if typing.get_origin(kind) is tuple), None)
    other = next((_decoder(kind) for kind in kinds if typing.get_origin(kind) is not tuple), None)

    def decode_one(data: Any) -> Any:
        decoder = row if isinstance(data, (list, tuple)) else other
        return data if data is None or decoder is None else decoder(data)

    return decode_one


def to_json(value: object) -> str:
    """Return one line of JSON, as `--json` prints it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
