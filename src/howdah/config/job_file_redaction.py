"""Masks texts that look like secrets in a job file. The result is still a job file, since people read, copy and use it.

Only comments and values that hold a secret are changed; everything else stays byte for byte. The result is parsed again
to check it. A value that cannot be written in the style of the old one is quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

import yaml

from howdah.spec import redaction
from howdah.spec.values import dataclass

_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_NULLS = ("", "~", "null", "Null", "NULL")
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

_Rewrite = Callable[[yaml.ScalarEvent, str, str], str]
"""Takes a scalar's event, its text in the file and its new value; returns the text to write."""


def mask_job_file(text: str, known: Iterable[str] = ()) -> str:
    """Return `text` without the values that look secret, or hold one of `known`."""
    known = list(known)
    try:
        events = list(yaml.parse(text, Loader=_LOADER))
        walk = _Masking(known)
        for number, event in enumerate(events):
            walk.see(number, event)
        masked = walk.found
        expected = [(type(event), masked.get(number, _value(event))) for number, event in enumerate(events)]
        for rewrite in (_in_same_style, _quoted):
            shown = "".join(_rewritten_pieces(text, events, masked, known, rewrite))
            if [(type(event), _value(event)) for event in _parse_events(shown)] == expected:
                return shown
    except yaml.YAMLError:
        pass
    return redaction.lines(text, known)


def _parse_events(text: str) -> list[yaml.Event]:
    try:
        return list(yaml.parse(text, Loader=_LOADER))
    except yaml.YAMLError:
        return []


def _value(event: yaml.Event) -> str | None:
    return event.value if isinstance(event, yaml.ScalarEvent) else getattr(event, "anchor", None)


@dataclass(frozen=True)
class _Collection:
    """A mapping or a list whose end has not been reached."""

    is_mapping: bool
    name: str
    """The key of the collection in the mapping around it, if any."""
    keys: list[str] = field(default_factory=list)
    """In a mapping, the key whose value comes next."""
    items: list[int | None] = field(default_factory=list)
    """In a list, the numbers of the events that are its scalars, and None for other items."""


class _Masking:
    """Walks through the events; `found` has the new values of scalars, by the numbers of their events."""

    def __init__(self, known: Sequence[str]) -> None:
        self.found: dict[int, str] = {}
        self._known = known
        self._texts: dict[int, yaml.ScalarEvent] = {}
        self._anchors: dict[str, int] = {}
        self._open: list[_Collection] = []

    def see(self, number: int, event: yaml.Event) -> None:
        """Take the next event."""
        if isinstance(event, yaml.ScalarEvent):
            self._texts[number] = event
            if event.anchor:
                self._anchors[event.anchor] = number
            self._add_node(number)
        elif isinstance(event, yaml.AliasEvent):
            self._add_node(self._anchors.get(str(event.anchor)))
        elif isinstance(event, yaml.CollectionStartEvent):
            name = "".join(self._open[-1].keys) if self._open else ""
            self._open.append(_Collection(isinstance(event, yaml.MappingStartEvent), name))
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end(self._open.pop())
            self._add_node(None)

    def _add_node(self, number: int | None) -> None:
        """Note a key, a value or an item: the scalar with this number, or a collection (None)."""
        if not self._open:
            return
        within = self._open[-1]
        if not within.is_mapping:
            within.items.append(number)
        elif not within.keys:
            within.keys.append("" if number is None else self._texts[number].value)
        else:
            name = within.keys.pop()
            if number is not None:
                self._set_value(number, self._mask(number, name))

    def _end(self, ended: _Collection) -> None:
        texts = [number for number in ended.items if number is not None]
        if len(texts) == len(ended.items) and not redaction.looks_secret(ended.name):
            shown = redaction.words([self._texts[number].value for number in texts], self._known)
        else:
            shown = [self._mask(number, ended.name) for number in texts]
        for number, value in zip(texts, shown, strict=True):
            self._set_value(number, value)

    def _mask(self, number: int, name: str) -> str:
        return str(redaction.record(redaction.line(self._texts[number].value, self._known), name))

    def _set_value(self, number: int, value: str) -> None:
        event = self._texts[number]
        null = event.style in (None, "") and event.value in _NULLS
        # A scalar with aliases is masked if it is a secret in one of its places.
        if value != event.value and not null and self.found.get(number) != redaction.MASK:
            self.found[number] = value


def _rewritten_pieces(
    text: str, events: Sequence[yaml.Event], masked: Mapping[int, str], known: Sequence[str], rewrite: _Rewrite
) -> Iterator[str]:
    at = 0
    for number, event in enumerate(events):
        if not isinstance(event, yaml.ScalarEvent):
            continue
        assert event.start_mark is not None
        assert event.end_mark is not None
        begin, end = event.start_mark.index, event.end_mark.index
        yield _comments(text[at:begin], known)
        written, at = text[begin:end], end
        if number in masked:
            properties = _PROPERTIES.match(written)
            before = properties[0] if properties else ""
            yield before + rewrite(event, written[len(before) :], masked[number])
        else:
            yield written
    yield _comments(text[at:], known)


def _comments(between: str, known: Sequence[str]) -> str:
    """Return the text between scalars with its comments masked; nothing else in it can hold words."""
    return re.sub("#.*", lambda found: redaction.text(found[0], known), between)


def _in_same_style(event: yaml.ScalarEvent, written: str, value: str) -> str:
    if event.style in (None, "") and written == event.value and not value.startswith(redaction.MASK):
        return value
    header, _, content = written.partition("\n")
    ends_alike = value.endswith("\n") == event.value.endswith("\n")
    if event.style == "|" and content.strip() and ends_alike and not re.search(r"\d", header):
        indent = re.match(" *", next(line for line in content.split("\n") if line.strip()))
        assert indent is not None
        lines = value.split("\n")
        return "\n".join([header, *(indent[0] + line if line else "" for line in lines)])
    return _quoted(event, written, value)


def _quoted(event: yaml.ScalarEvent, written: str, value: str) -> str:
    quoted = _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
    return quoted + ("\n" if event.style in ("|", ">") and written.endswith("\n") else "")
