"""Sentences for people that events, statuses and errors carry: English text that knows its template and its values.

The rule: a `Message` is its English text, so code that knows nothing of templates reads, stores and joins it like any
other text. If messages are joined by an f-string, the result is plain text again, and is translated by the patterns for
sentences of earlier versions (`howdah.locale.stored_sentences`). See docs/adr/0014.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Dict, Iterable, Mapping, Optional, Union

PLACEHOLDER = re.compile(r"\{(\w+)\}")
MAX_LETTERS = 20_000
"""The most letters of a message that is read from a file: nested templates could otherwise produce any number of
them."""
MAX_TEMPLATE_LETTERS = 1000
"""The most letters of a template that is read from a file."""

Sentence = Annotated[str, "sentence"]
"""The type of a field that people read. It holds a `Message`, or plain text that has no template."""

Value = Union[str, int, float]
"""A value in a message; a str may be a `Message` itself."""


class Message(str):
    """English text, with the template and the values that it was made of; both are empty for plain text."""

    template: str
    """The English text with a `{name}` in place of each value: the key of its translations."""
    values: Mapping[str, Value]
    """The values by name."""

    def __new__(cls, text: str = "", template: str = "", values: Optional[Mapping[str, Value]] = None) -> Message:
        made = super().__new__(cls, text)
        made.template, made.values = template, values or {}
        return made

    def __str__(self) -> str:
        """Return the message itself, so that `str(error)` of an error with a message is the message."""
        return self


def message(template: str, /, **values: object) -> Message:
    """Return the message that `template` makes of the values that it names; braces in values are plain text."""
    kept = {name: _to_value(values[name]) for name in PLACEHOLDER.findall(template) if name in values}
    return Message(fill(template, kept), template, kept)


def _to_value(value: object) -> Value:
    return value if type(value) in (Message, str, int, float) else str(value)  # type: ignore[return-value]


def fill(template: str, values: Mapping[str, Value]) -> str:
    """Return `template` with each `{name}` replaced by its value. Templates are read from files, too, and
    `str.format` would let them reach into the program."""
    return PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), template)


def join_messages(parts: Iterable[str], separator: str = "; ") -> Message:
    """Return the parts with `separator` between them, as one message. Each part is translated by itself."""
    names = {f"part{number}": part for number, part in enumerate(parts, 1)}
    return message(separator.join(f"{{{name}}}" for name in names), **names)


def to_record(text: str) -> Optional[Dict[str, Any]]:
    """Return the template and the values of a message as JSON; None for plain text."""
    if not isinstance(text, Message) or not text.template:
        return None
    values = {
        name: (to_record(value) or str.__str__(value)) if isinstance(value, str) else value
        for name, value in text.values.items()
    }
    return {"template": text.template, "values": values}


def from_record(text: str, record: Any) -> str:
    """Return `text` as the message whose template and values are in `record`, if they make exactly this text; otherwise
    return it as it is."""
    made = _from_record(record) if isinstance(text, str) else None
    return text if made is None or made != text else made


def _from_record(record: Any) -> Optional[Message]:
    """Return the message of a record; None if the record, which may hold anything, holds no message."""
    if not isinstance(record, Mapping):
        return None
    template, found = record.get("template"), record.get("values")
    if not isinstance(template, str) or len(template) > MAX_TEMPLATE_LETTERS or not isinstance(found, Mapping):
        return None
    values: Dict[str, Value] = {}
    for name, item in found.items():
        value = _from_record(item) if isinstance(item, Mapping) else item
        if not isinstance(value, (str, int, float)) or (isinstance(value, str) and len(value) > MAX_LETTERS):
            return None
        values[name] = value
    return Message(fill(template, values), template, values)
