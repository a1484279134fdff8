"""Parses YAML into a tree of texts, lists and mappings, each with its line.

No scalar gets a type here, because the field that it is read into has one. So `no`, `on`, `010`, `1e3` or `12:30:00` in
a place for text is exactly that text, and YAML 1.1's surprises can't happen. Tags, merge keys and documents after the
first are refused; size, depth and the number of aliases are bounded.
"""

from __future__ import annotations

import json
import numbers
import os
from collections.abc import Iterator, Mapping
from dataclasses import field

import yaml

from howdah.errors import Mistake, SpecError
from howdah.spec.values import dataclass

MAX_BYTES = 1024 * 1024
MAX_ALIASES = 1000
MAX_DEPTH = 32
_NULLS = ("", "~", "null", "Null", "NULL")
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@dataclass(frozen=True)
class Text:
    """A scalar as it was written."""

    value: str
    origin: str = ""
    plain: bool = True
    """Whether it is written without quotes and not as a block; only such a scalar can be null."""

    @property
    def null(self) -> bool:
        """Return whether the scalar means that there is no value."""
        return self.plain and self.value in _NULLS


@dataclass(frozen=True)
class Items:
    """A list."""

    items: tuple[Node, ...] = ()
    origin: str = ""


@dataclass(frozen=True)
class Keys:
    """A mapping, in the order written."""

    entries: Mapping[str, Node] = field(default_factory=dict)
    origin: str = ""


Node = Text | Items | Keys


def tree_of(value: object, origin: str, place: str = "", depth: int = 0) -> Node:
    """Return the tree of a Python value; its texts stay byte for byte.

    Raises:
        SpecError: the value at `place`, or one in it, is of a type that a job file does not have, lies `depth` levels
            deep, deeper than a job file's, or cannot be written as text.
    """
    if depth > MAX_DEPTH:  # it may contain itself
        raise SpecError([Mistake(_outer(place), f"is nested deeper than {MAX_DEPTH} levels", origin=origin)])
    try:
        return _tree_of(value, origin, place, depth)
    except ValueError as error:  # an integer of more than 4,300 digits
        problem = str(error).partition(";")[0]
        raise SpecError([Mistake(place, f"cannot be written as text: {problem}", origin=origin)]) from error


def _outer(place: str) -> str:
    return ".".join(place.split(".")[:2])


def _tree_of(value: object, origin: str, place: str, depth: int) -> Node:
    if value is None or isinstance(value, bool):
        return Text(json.dumps(value), origin)
    if isinstance(value, str):
        return Text(value, origin, plain=False)
    if isinstance(value, (int, float)):
        return Text(json.dumps(value), origin)  # as YAML reads it, whatever subclass it is of
    if isinstance(value, numbers.Number) or not (callable(value) or hasattr(value, "__iter__")):
        return Text(str(value), origin)  # a date, a UUID
    if isinstance(value, os.PathLike) and isinstance(path := os.fspath(value), str):
        return Text(path, origin, plain=False)
    if isinstance(value, Mapping):
        entries = ((str(name), inner) for name, inner in value.items())
        inside = {name: tree_of(inner, origin, child_place(place, name), depth + 1) for name, inner in entries}
        return Keys(inside, origin)
    if isinstance(value, (list, tuple)):
        items = (tree_of(inner, origin, child_place(place, str(n)), depth + 1) for n, inner in enumerate(value))
        return Items(tuple(items), origin)
    problem = f"is {repr(value)[:60]}, must be text, a number, a boolean, a list or a mapping"
    raise SpecError([Mistake(place, problem, origin=origin)])


def parse(text: str, file: str, lines: bool = True) -> tuple[Node, list[Mistake]]:
    """Return the tree of the first document, and the mistakes that leave a tree (a duplicate key, a tag).

    An origin is `file:line`, or `file` alone without `lines`.

    Raises:
        SpecError: the text is no YAML, or not UTF-8, or exceeds the bounds.
    """
    if len(text) > MAX_BYTES:
        raise SpecError.at(file, f"is {len(text)} characters long, a job file has at most {MAX_BYTES}")
    builder = _Builder(file, lines)
    try:
        return builder.document(yaml.parse(text, Loader=_LOADER)), builder.mistakes
    except UnicodeEncodeError as error:  # text of a command line or a program, not read from a file
        part = error.object[error.start : error.end]
        raise SpecError.at(file, f"has {part!r}, which is not UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        if mark and "".join(text.split("\n")[mark.line : mark.line + 1])[mark.column : mark.column + 1] == "\t":
            raise SpecError.at(where, "is a tab: indent with spaces") from None
        what = ", ".join(filter(None, (error.context, error.problem)))
        raise SpecError.at(where, f"is not YAML: {what}") from None
    except yaml.YAMLError as error:
        raise SpecError.at(file, f"is not YAML: {str(error).splitlines()[0]}") from None


class _Builder:
    """Builds the tree from the parser's events: PyYAML's own composers recurse without bound, the C one until it
    crashes."""

    def __init__(self, file: str, lines: bool) -> None:
        self.file = file
        self.lines = lines
        self.mistakes: list[Mistake] = []
        self.anchors: dict[str, Node] = {}
        self.aliases = 0

    def document(self, events: Iterator[yaml.Event]) -> Node:
        root: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                raise SpecError.at(self.origin(event), "starts a second document, a job file has one")
            if isinstance(event, yaml.NodeEvent):
                root = self.node(event, events, "", 0)
        return root if root is not None else Keys(origin=f"{self.file}:1")

    def node(self, event: yaml.Event, events: Iterator[yaml.Event], place: str, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        assert isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent))
        if depth > MAX_DEPTH:
            raise SpecError.at(self.origin(event), f"is nested deeper than {MAX_DEPTH} levels")
        self.refuse_tag(event.tag, event, place)
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = Text(event.value, self.origin(event), event.style in (None, ""))
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self.sequence(event, events, place, depth)
        else:
            node = self.mapping(event, events, place, depth)
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def alias(self, event: yaml.AliasEvent) -> Node:
        self.aliases += 1
        if self.aliases > MAX_ALIASES:
            raise SpecError.at(
                self.origin(event), f"is alias number {self.aliases}, at most {MAX_ALIASES} are possible"
            )
        if event.anchor not in self.anchors:
            raise SpecError.at(self.origin(event), f"*{event.anchor} refers to nothing before it")
        return self.anchors[event.anchor]

    def sequence(self, start: yaml.Event, events: Iterator[yaml.Event], place: str, depth: int) -> Items:
        items: list[Node] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self.node(event, events, child_place(place, str(len(items))), depth + 1))
        return Items(tuple(items), self.origin(start))

    def mapping(self, start: yaml.Event, events: Iterator[yaml.Event], place: str, depth: int) -> Keys:
        entries: dict[str, Node] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self.node(event, events, place, depth + 1)
            name = key.value if isinstance(key, Text) else "?"
            value = self.node(next(events), events, child_place(place, name), depth + 1)
            problem = self.key_problem(key, entries)
            if problem:
                self.mistakes.append(Mistake(child_place(place, name), problem, origin=self.origin(event)))
            else:
                entries[name] = value
        return Keys(entries, self.origin(start))

    def key_problem(self, key: Node, entries: Mapping[str, Node]) -> str:
        if not isinstance(key, Text):
            return "a key must be text"
        if key.value == "<<" and key.plain:
            return "merge keys are not supported: repeat the keys, or give whole values by alias (`resources: *big`)"
        if key.value in entries:
            return f"is there twice, first at {entries[key.value].origin}"
        return ""

    def refuse_tag(self, tag: str | None, event: yaml.Event, place: str) -> None:
        if tag not in (None, "!"):
            self.mistakes.append(
                Mistake(place or "the job", f"has the tag {tag}, tags are refused", origin=self.origin(event))
            )

    def origin(self, event: yaml.Event) -> str:
        return f"{self.file}:{event.start_mark.line + 1}" if event.start_mark and self.lines else self.file


def child_place(place: str, name: str) -> str:
    """Return the place of `name` inside `place`."""
    return f"{place}.{name}" if place else name
