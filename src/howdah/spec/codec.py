"""Converts dataclasses to JSON and back, by their declared types alone: `decode` gives back what `encode` wrote, equal.

This is for values that howdah wrote itself; `howdah.config.job_file` validates what people write. The conversion of a
type is compiled once, because a master of thousands of executors reads and writes thousands of messages a second.

A `Message` is written as its English text, which readers of any version understand, and beside it, under the field's
name with `_message` after it, as its template and values.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import operator
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Callable, Dict, Optional, Tuple, Type, TypeVar

from howdah.spec.message import Message, Sentence, from_record, to_record

T = TypeVar("T")
Decoder = Callable[[Any], Any]
_PLAIN = frozenset((str, int, float, bool, type(None)))
_NO_DEFAULT = object()
WIRE_NAME = "wire_name"
"""Key of a field's metadata: the name that the field has in JSON, where code calls it otherwise."""
FLAT = "flat"
"""Key of a field's metadata: the field's value is a dataclass, and JSON has its fields beside those of the record."""
TEMPLATE = "_message"
"""The suffix of a field's name: together they name the record with the template and the values of the field's
message."""
_SENTENCES = Tuple[Sentence, ...]
_FieldCheckers = Sequence[Tuple[Any, Any, Callable[[Any], bool]]]


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
                if type(item) in _PLAIN:
                    record[name] = item
                elif name:
                    record[name] = encode(item)
                    templates = _templates(item)
                    if templates is not None:
                        record[name + TEMPLATE] = templates
                else:
                    record.update(encode(item))
        return record
    if kind is Message:
        return str.__str__(value)
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


def _templates(item: Any) -> Any:
    """Return the template and the values of a message, or of each of several messages; None where there are none."""
    if type(item) is Message:
        return to_record(item)
    if type(item) is tuple and Message in map(type, item):
        return [to_record(each) for each in item]
    return None


@functools.cache
def _fields(kind: Any) -> Optional[Tuple[Tuple[str, str, Any], ...]]:
    """Return attribute, name in JSON ("" for a flat one) and default of each field; None if `kind` is no dataclass."""
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple((field.name, _wire_name(field), _default_value(field)) for field in dataclasses.fields(kind))


def _wire_name(field: dataclasses.Field[Any]) -> str:
    return "" if field.metadata.get(FLAT) else str(field.metadata.get(WIRE_NAME, field.name))


def _default_value(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else _NO_DEFAULT


@functools.cache
def _decoder(kind: Any) -> Optional[Decoder]:
    """Return a function that makes a value of `kind` from JSON; None if the value in JSON needs no conversion."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _decoder(arguments[0])
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
    """Return whether `value`, which `decode` made from JSON that may be damaged, has the types that `kind` declares,
    down to the last field."""
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
        return _items_checker((dict, Mapping), lambda value: value.values(), _checker(arguments[1]))  # a dict's is fast
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _RecordChecker(kind)
    allowed = (int, float) if kind is float else kind
    return lambda value: isinstance(value, allowed)


def _items_checker(kinds: Any, items: Callable[[Any], Any], check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds) and (not value or all(map(check, items(value))))


class _RecordChecker:
    """Checks a dataclass. Most fields hold a plain value or their default, so looking at the value itself is enough for
    them."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._compiled: Optional[Tuple[Callable[[Any], Any], _FieldCheckers]] = None

    def __call__(self, value: Any) -> bool:
        if not isinstance(value, self._kind):
            return False
        if self._compiled is None:
            self._compiled = (
                self._compile()
            )  # in one step: other threads, and code after an interrupt, see all or nothing
        read, checkers = self._compiled
        for item, (default, hint, check) in zip(read(value), checkers):  # noqa: B905 - 3.9
            if item is not default and type(item) is not hint and not check(item):
                return False
        return True

    def _compile(self) -> Tuple[Callable[[Any], Any], _FieldCheckers]:
        """Return a function that reads the values of all fields, and the default, type and checker of each."""
        hints = typing.get_type_hints(self._kind)
        fields = [(field.name, _default_value(field), hints[field.name]) for field in dataclasses.fields(self._kind)]
        checkers = [
            (default, None if dataclasses.is_dataclass(hint) else hint, _checker(hint)) for _, default, hint in fields
        ]
        read = operator.attrgetter(*(name for name, *_ in fields), "__class__")  # a tuple, also of one field
        return read, checkers


class _Record:
    """Converts a dataclass. Its fields are inspected when the first value comes, because a class may contain fields of
    its own type."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._decoders: Optional[Dict[str, Tuple[str, Optional[Decoder]]]] = None
        self._flat: Sequence[Tuple[str, Decoder]] = ()
        self._templates: Dict[str, Tuple[str, Callable[[Any, Any], Any]]] = {}

    def __call__(self, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        if self._decoders is None:
            hints = typing.get_type_hints(self._kind, include_extras=True)
            fields = dataclasses.fields(self._kind)
            self._flat = [(field.name, _Record(hints[field.name])) for field in fields if not _wire_name(field)]
            for field in fields:
                add_templates = _TEMPLATE_READERS.get(hints[field.name])
                if add_templates is not None:
                    self._templates[_wire_name(field) + TEMPLATE] = field.name, add_templates
            # Last: other threads, and code after an interrupt, take it as the sign that the rest is complete.
            self._decoders = {_wire_name(field): (field.name, _decoder(hints[field.name])) for field in fields}
        values = {}
        for name, item in data.items():
            known = self._decoders.get(name)
            if known is not None:
                attribute, decoder = known
                values[attribute] = item if decoder is None else decoder(item)
            elif name in self._templates:
                attribute, add_templates = self._templates[name]
                if attribute in values:
                    values[attribute] = add_templates(values[attribute], item)
        for attribute, decoder in self._flat:
            values[attribute] = decoder(data)
        return self._kind(**values)


def _add_templates(texts: Any, records: Any) -> Any:
    """Return the texts as messages, as far as the records beside them hold templates and values for them."""
    if not isinstance(texts, tuple) or not isinstance(records, list) or len(texts) != len(records):
        return texts
    return tuple(map(from_record, texts, records))


_TEMPLATE_READERS: Dict[Any, Callable[[Any, Any], Any]] = {Sentence: from_record, _SENTENCES: _add_templates}


def _union(kinds: Tuple[Any, ...]) -> Decoder:
    """Convert Optional[X] and Union[str, Tuple[...]], the only unions in howdah's values: the type of the JSON value
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
