"""Reads and writes Hadoop credentials ($HADOOP_TOKEN_FILE_LOCATION): tokens and secret keys.

Standard library only, because the executor reads its job secret from here. The format is what
org.apache.hadoop.security.Credentials writes: "HDTS", a version byte, then Writables (0) or protocol buffers (1).
"""

from __future__ import annotations

import dataclasses
import os
import struct
from dataclasses import field
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Tuple

MAGIC = b"HDTS"
JOB_KEY = "howdah.key"
"""Alias of the key its holder signs with: the master's is the job key, an executor's is derived from it."""
JOB = "howdah.job"
"""Alias of the job itself if it travels with the credentials: job.json, compressed by zlib."""
SECRET_PREFIX = "howdah.secret."  # noqa: S105 - a prefix of aliases, no secret
"""Aliases of the user's secret variables begin with this."""


@dataclasses.dataclass(frozen=True)
class Token:
    """A Hadoop token."""

    identifier: bytes
    """The name by which the server knows the token."""
    password: bytes = field(repr=False)
    """The shared secret of the token's DIGEST-MD5 login; never shown."""
    kind: str
    """`YARN_AM_RM_TOKEN`, `HDFS_DELEGATION_TOKEN` and others."""
    service: str
    """The server that takes the token."""


@dataclasses.dataclass(frozen=True)
class Credentials:
    """The content of a credentials file."""

    tokens: Dict[str, Token] = field(default_factory=dict)
    """Tokens by alias."""
    secrets: Dict[str, bytes] = field(default_factory=dict, repr=False)
    """Secret keys by alias: opaque bytes, never shown."""

    def of_kind(self, kind: str) -> List[Token]:
        """Return the tokens of one kind (YARN_AM_RM_TOKEN, HDFS_DELEGATION_TOKEN, ...)."""
        return [token for token in self.tokens.values() if token.kind == kind]

    def to_bytes(self) -> bytes:
        """Write the file's content in version 0, which every Hadoop reads."""
        out = [MAGIC, b"\0", write_vlong(len(self.tokens))]
        for alias, token in self.tokens.items():
            parts = (alias.encode(), token.identifier, token.password, token.kind.encode(), token.service.encode())
            out.extend(write_vlong(len(part)) + part for part in parts)
        out.append(write_vlong(len(self.secrets)))
        for alias, secret in self.secrets.items():
            out.extend(write_vlong(len(part)) + part for part in (alias.encode(), secret))
        return b"".join(out)


def parse(data: bytes) -> Credentials:
    """Read a credentials file of version 0 or 1.

    Raises:
        ValueError: the file is damaged; it says where.
    """
    if data[:4] != MAGIC or len(data) < 5:
        raise ValueError("not a Hadoop credentials file (it does not start with HDTS)")
    if data[4] not in (0, 1):
        raise ValueError(f"Hadoop credentials file of unknown version {data[4]}")
    try:
        return _parse_writable(_Cursor(data, 5)) if data[4] == 0 else _parse_protobuf(_Cursor(data, 5))
    except KeyError as error:
        raise ValueError(f"Hadoop credentials lack field {error}") from None


def load(path: Optional[str] = None) -> Credentials:
    """Read the file `path`, or the one that HADOOP_TOKEN_FILE_LOCATION names for Hadoop's own programs.

    Raises:
        KeyError: the variable is not set.
        OSError: the file cannot be read.
        ValueError: the file is damaged.
    """
    return parse(Path(path or os.environ["HADOOP_TOKEN_FILE_LOCATION"]).read_bytes())


def last_date(token: Token) -> float:
    """Return when a delegation token ends for good, in seconds since 1970; 0.0 when the token does not say.

    org.apache.hadoop.security.token.delegation.AbstractDelegationTokenIdentifier writes a version byte, 0; its owner,
    renewer and real user; the date of its issue and the last one, in milliseconds.
    """
    cursor = _Cursor(token.identifier)
    try:
        if cursor.read_exactly(1) != b"\0":
            return 0.0
        for _ in range(3):
            cursor.block()
        cursor.vlong()
        return cursor.vlong() / 1000
    except ValueError:
        return 0.0


class _Cursor:
    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data, self.position = data, position

    def read_exactly(self, length: int) -> bytes:
        end = self.position + length
        if length < 0 or end > len(self.data):
            raise ValueError(f"Hadoop credentials are cut off at byte {self.position}")
        self.position, start = end, self.position
        return self.data[start:end]

    def vlong(self) -> int:
        """Read a number as WritableUtils.readVLong: one byte from -112 to 127, else a sign-and-length byte first."""
        (first,) = struct.unpack("b", self.read_exactly(1))
        if first >= -112:
            return int(first)
        negative = first < -120
        value = int.from_bytes(self.read_exactly(-(first + (120 if negative else 112))), "big")
        return ~value if negative else value

    def block(self) -> bytes:
        return self.read_exactly(self.vlong())

    def varint(self) -> int:
        """Read a protocol buffers varint."""
        value = shift = 0
        while True:
            byte = self.read_exactly(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def fields(self) -> Iterator[Tuple[int, bytes]]:
        """Yield (number, bytes) of every length-delimited field of a protocol buffers message; skip the others."""
        skip: Dict[int, Callable[[], object]] = {
            0: self.varint,
            1: lambda: self.read_exactly(8),
            5: lambda: self.read_exactly(4),
        }
        while self.position < len(self.data):
            number, wire_type = divmod(self.varint(), 8)
            if wire_type == 2:
                yield number, self.read_exactly(self.varint())
            elif wire_type in skip:
                skip[wire_type]()
            else:
                raise ValueError(f"Hadoop credentials: unknown wire type {wire_type}")


def write_vlong(value: int) -> bytes:
    """Write a number as org.apache.hadoop.io.WritableUtils.writeVLong does."""
    if -112 <= value <= 127:
        return struct.pack("b", value)
    base, magnitude = (-120, ~value) if value < 0 else (-112, value)
    length = (magnitude.bit_length() + 7) // 8
    return struct.pack("b", base - length) + magnitude.to_bytes(length, "big")


def _parse_writable(cursor: _Cursor) -> Credentials:
    found = Credentials()
    for _ in range(cursor.vlong()):
        alias = cursor.block().decode()
        identifier, password = cursor.block(), cursor.block()
        found.tokens[alias] = Token(identifier, password, cursor.block().decode(), cursor.block().decode())
    for _ in range(cursor.vlong()):
        alias = cursor.block().decode()
        found.secrets[alias] = cursor.block()
    return found


def _parse_protobuf(cursor: _Cursor) -> Credentials:
    found = Credentials()
    for number, body in _Cursor(cursor.read_exactly(cursor.varint())).fields():
        entry: Dict[int, bytes] = dict(_Cursor(body).fields())
        alias = entry.get(1, b"").decode()
        if number == 1:
            token: Dict[int, bytes] = dict(_Cursor(entry[2]).fields())
            found.tokens[alias] = Token(token[1], token[2], token[3].decode(), token[4].decode())
        elif number == 2:
            found.secrets[alias] = entry[3]
    return found
