"""Reads values and the names of their classes from Java's serialization (Object Serialization Stream Protocol, version
5). No class that the bytes name is created or run."""

from __future__ import annotations

import struct
from dataclasses import field
from typing import Any

from howdah.spec.values import dataclass

_START = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING, _ARRAY = range(0x70, 0x76)
_BLOCK, _END, _LONG_BLOCK, _LONG_STRING, _ENUM = 0x77, 0x78, 0x7A, 0x7C, 0x7E
_FIRST_HANDLE = 0x7E0000
_WRITES_MORE, _SERIALIZABLE = 1, 2
_PRIMITIVES = {"B": ">b", "C": ">H", "D": ">d", "F": ">f", "I": ">i", "J": ">q", "S": ">h", "Z": ">?"}


class JavaError(ValueError):
    """The bytes are not Java's serialization, or use a part of it that this module does not read."""


@dataclass
class Instance:
    """One Java object: its class name, its fields, and what its class has written in addition."""

    name: str
    fields: dict[str, Any] = field(default_factory=dict)
    more: list[Any] = field(default_factory=list)

    def items(self) -> list[Any]:
        """Return the items of one of Java's lists."""
        return [value for value in self.more if not isinstance(value, bytes)]

    def pairs(self) -> list[tuple[Any, Any]]:
        """Return the pairs of one of Java's maps."""
        items = self.items()
        return list(zip(items[::2], items[1::2], strict=True))


@dataclass
class _Class:
    name: str
    flags: int = 0
    fields: list[tuple[str, str]] = field(default_factory=list)
    parent: _Class | None = None


def load(data: bytes) -> Any:
    """Return the first value of `data`: an Instance, text, a number, a list or None.

    Raises:
        JavaError: the value is of another kind.
    """
    if data[:4] != _START:
        raise JavaError("not written by Java's serialization")
    try:
        return _Reader(data).value()
    except (struct.error, IndexError, UnicodeDecodeError, RecursionError) as error:
        raise JavaError(f"damaged: {error}") from None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, len(_START)
        self._handles: list[Any] = []

    def value(self) -> Any:
        tag = self._number(">B")
        if tag == _NULL:
            return None
        if tag == _REFERENCE:
            return self._handles[self._number(">i") - _FIRST_HANDLE]
        if tag == _CLASS:
            return self._class()
        if tag in (_STRING, _LONG_STRING):
            return self._remember(self._text(">H" if tag == _STRING else ">q"))
        if tag in (_BLOCK, _LONG_BLOCK):
            return self._bytes(self._number(">B" if tag == _BLOCK else ">i"))
        if tag == _OBJECT:
            return self._object()
        if tag == _ARRAY:
            kind, found = self._class_description(), self._remember([])
            found.extend(self._of_type(kind.name[1:2]) for _ in range(self._number(">i")))
            return found
        if tag == _ENUM:
            self._class_description()
            handle = len(self._handles)
            self._handles.append(None)
            self._handles[handle] = self.value()
            return self._handles[handle]
        raise JavaError(f"at {self._at - 1}: a value of kind {tag:#x} is not known")

    def _object(self) -> Instance:
        kind = self._class_description()
        found: Instance = self._remember(Instance(kind.name))
        for ancestor in _lineage(kind):
            if not ancestor.flags & _SERIALIZABLE:
                raise JavaError(f"{ancestor.name} has a format of its own")
            for code, name in ancestor.fields:
                found.fields[name] = self._of_type(code)
            if ancestor.flags & _WRITES_MORE:
                found.more += self._to_end()
        return found

    def _class_description(self) -> _Class:
        found = self.value()
        if not isinstance(found, _Class):
            raise JavaError(f"at {self._at}: no class")
        return found

    def _class(self) -> _Class:
        name = self._text(">H")
        self._bytes(8)  # serialVersionUID
        found: _Class = self._remember(_Class(name, self._number(">B")))
        for _ in range(self._number(">H")):
            code = chr(self._number(">B"))
            found.fields.append((code, self._text(">H")))
            if code in "[L":
                self.value()  # the type's name
        self._to_end()
        found.parent = self.value()
        return found

    def _to_end(self) -> list[Any]:
        found = []
        while self._data[self._at] != _END:
            found.append(self.value())
        self._at += 1
        return found

    def _of_type(self, code: str) -> Any:
        return self._number(_PRIMITIVES[code]) if code in _PRIMITIVES else self.value()

    def _remember(self, value: Any) -> Any:
        """Remember a value to which later ones may refer; return it."""
        self._handles.append(value)
        return value

    def _text(self, size: str) -> str:
        # Java's own UTF-8 differs for zero and for characters beyond 16 bits.
        return self._bytes(self._number(size)).replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")

    def _number(self, kind: str) -> Any:
        (found,) = struct.unpack(kind, self._bytes(struct.calcsize(kind)))
        return found

    def _bytes(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if size < 0 or len(found) < size:
            raise JavaError(f"cut off at {self._at}")
        self._at += size
        return found


def _lineage(kind: _Class) -> list[_Class]:
    """Return the classes of an object, the most general first, as the bytes have them."""
    found = [kind]
    while found[0].parent is not None:
        if found[0].parent in found:
            raise JavaError(f"{kind.name} descends from itself")
        found.insert(0, found[0].parent)
    return found
