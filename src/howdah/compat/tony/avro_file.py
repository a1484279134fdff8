"""Avro container files, read by the schema they carry (Avro 1.8 specification, "Object Container Files").

As much of it as TonY's histories use: blocks as they are or deflated, and no default values, for what wrote a file is
what reads it. A file that was cut off gives what is whole.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

_MAGIC = b"Obj\x01"
_SYNC = 16
_LONGEST = 64 << 20
_MOST = 10_000_000


class NotAvro(ValueError):
    """It is no container file, or holds what its schema doesn't say."""


def records(data: bytes) -> Iterator[Any]:
    """The records in a container file: mappings for records, text for strings and enums.

    Raises:
        NotAvro: it can't be read from the start; a damaged end is passed over.
    """
    source = _Source(data)
    try:
        if source.take(len(_MAGIC)) != _MAGIC:
            raise NotAvro("it doesn't begin as an Avro file does")
        header = source.map(source.bytes)
        schema = json.loads(header["avro.schema"])
        codec = header.get("avro.codec", b"null").decode("latin-1")
        sync = source.take(_SYNC)
        read = _Schema().reader(schema)
    except (EOFError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise NotAvro(f"its header can't be read: {error}") from None
    if codec not in ("null", "deflate"):
        raise NotAvro(f"it is compressed by {codec}; null and deflate are read")
    yield from _blocks(source, sync, codec, read)


def _blocks(source: _Source, sync: bytes, codec: str, read: Callable[[_Source], Any]) -> Iterator[Any]:
    while True:
        try:
            count, block = source.long(), source.bytes()
            whole = source.take(_SYNC) == sync
            content = _Source(_inflated(block) if codec == "deflate" else block)
            if not whole:
                return
            for _ in range(_some(count)):
                yield read(content)
        except KeyError as error:
            raise NotAvro(f"its schema speaks of {error}, and doesn't say what that is") from None
        except (EOFError, zlib.error, IndexError, UnicodeDecodeError, struct.error):
            return


def _inflated(block: bytes) -> bytes:
    inflating = zlib.decompressobj(-15)
    content = inflating.decompress(block, _LONGEST)
    if not inflating.eof:
        raise EOFError("it ends too early, or is too long")
    return content


def _some(count: int) -> int:
    """Values may take no room at all: nobody writes as many as a file can claim to hold."""
    if not 0 <= count <= _MOST:
        raise EOFError(f"{count} values are too many")
    return count


class _Source:
    """Values in Avro's binary encoding, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._file = BytesIO(data)

    def take(self, count: int) -> bytes:
        data = self._file.read(count) if 0 <= count <= _LONGEST else b""
        if len(data) != count:
            raise EOFError("it ends too early")
        return data

    def long(self) -> int:
        """Zig-zag, seven bits a byte, the lowest first."""
        value, shift = 0, 0
        while shift < 70:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
        raise EOFError("a number has no end")

    def bytes(self) -> bytes:
        return self.take(self.long())

    def items(self, read: Callable[[], Any]) -> Iterator[Any]:
        """Of an array or map: blocks with their counts, until one has none."""
        while count := self.long():
            if count < 0:  # its size in bytes follows, for who would skip it
                self.long()
            for _ in range(_some(abs(count))):
                yield read()

    def map(self, read: Callable[[], Any]) -> dict[str, Any]:
        return dict(self.items(lambda: (self.bytes().decode(), read())))


_PLAIN: dict[str, Callable[[_Source], Any]] = {
    "null": lambda _: None,
    "boolean": lambda source: source.take(1) != b"\0",
    "int": _Source.long,
    "long": _Source.long,
    "float": lambda source: struct.unpack("<f", source.take(4))[0],
    "double": lambda source: struct.unpack("<d", source.take(8))[0],
    "bytes": _Source.bytes,
    "string": lambda source: source.bytes().decode(),
}


class _Schema:
    """Makes readers of schemas; names stand for what they named before."""

    def __init__(self) -> None:
        self._named: dict[str, Callable[[_Source], Any]] = {}

    def reader(self, schema: Any) -> Callable[[_Source], Any]:
        if isinstance(schema, list):
            branches = [self.reader(one) for one in schema]
            return lambda source: branches[source.long()](source)
        if isinstance(schema, str):
            name = schema.rpartition(".")[2]
            return _PLAIN[schema] if schema in _PLAIN else lambda source: self._named[name](source)
        kind = schema["type"]
        if kind in ("record", "enum", "fixed"):
            made = self._record(schema) if kind == "record" else self._other(schema)
            self._named[schema["name"].rpartition(".")[2]] = made
            return made
        if kind == "array":
            item = self.reader(schema["items"])
            return lambda source: list(source.items(lambda: item(source)))
        if kind == "map":
            value = self.reader(schema["values"])
            return lambda source: source.map(lambda: value(source))
        return self.reader(kind)

    def _record(self, schema: Any) -> Callable[[_Source], Any]:
        fields = [(field["name"], self.reader(field["type"])) for field in schema["fields"]]
        return lambda source: {name: read(source) for name, read in fields}

    def _other(self, schema: Any) -> Callable[[_Source], Any]:
        if schema["type"] == "enum":
            return lambda source: schema["symbols"][source.long()]
        return lambda source: source.take(schema["size"])
