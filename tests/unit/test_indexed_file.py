"""Tests reading aggregated logs in YARN's indexed format, and what Java's serialization writes of them."""

from __future__ import annotations

import hashlib
import io
import struct
import zlib
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from howdah.engines.yarn.logs import indexed_file, java_serialization
from howdah.engines.yarn.logs.tfile import TFileError

APPLICATION = "application_17_0003"
MARK = hashlib.sha256(APPLICATION.encode()).digest()
OUTER = "org.apache.hadoop.yarn.logaggregation.filecontroller.ifile.LogAggregationIndexedFileController$"
Logs = Mapping[str, Mapping[str, bytes]]
"""What files a container has left."""


class Java:
    """Writes as java.io.ObjectOutputStream does, for values of a few kinds; what was written before is referred to."""

    def __init__(self) -> None:
        self.out = bytearray(b"\xac\xed\x00\x05")
        self._handles: dict[Any, int] = {}
        self._count = 0

    def text(self, text: str) -> Java:
        if not self._before(("text", text)):
            self.out += b"\x74" + self._utf(text)
        return self

    def describe(self, name: str, fields: str, writes_more: bool = False) -> None:
        """`fields` are types and names: "I size J time L user"."""
        if self._before(("class", name)):
            return
        words = fields.split()
        self.out += self._utf(name, mark=b"\x72") + bytes(8) + bytes([3 if writes_more else 2])
        self.out += struct.pack(">H", len(words) // 2)
        for kind, field in zip(words[::2], words[1::2], strict=True):
            self.out += kind.encode() + self._utf(field)
            if kind == "L":
                self.text("Ljava/lang/Object;")
        self.out += b"\x78\x70"

    def begin(self, name: str, fields: str, writes_more: bool = False) -> None:
        self.out += b"\x73"
        self.describe(name, fields, writes_more)
        self._count += 1

    def number(self, kind: str, value: float) -> None:
        self.out += struct.pack(f">{kind}", value)

    def begin_list(self, size: int) -> None:
        self.begin("java.util.ArrayList", "I size", True)
        self.number("i", size)
        self.out += b"\x77\x04" + struct.pack(">i", size)

    def begin_map(self, size: int) -> None:
        self.begin("java.util.HashMap", "F loadFactor I threshold", True)
        self.number("f", 0.75)
        self.number("i", 12)
        self.out += b"\x77\x08" + struct.pack(">ii", 16, size)

    def end(self) -> None:
        self.out += b"\x78"

    def _before(self, what: Any) -> bool:
        if what in self._handles:
            self.out += b"\x71" + struct.pack(">i", 0x7E0000 + self._handles[what])
            return True
        self._handles[what], self._count = self._count, self._count + 1
        return False

    def _utf(self, text: str, mark: bytes = b"") -> bytes:
        return mark + struct.pack(">H", len(text.encode())) + text.encode()


def written(*rounds: Logs, compression: str = "gz", mark: bytes = MARK) -> tuple[bytes, list[int]]:
    """A node's file to which so many rounds have brought logs, and where each has ended."""
    file, ends, turns = bytearray(mark + b"\n"), [], []
    for logs in rounds:
        turns.append([(id_, [(name, *_stored(file, data, compression)) for name, data in files.items()])
                      for id_, files in logs.items()])  # fmt: skip
        index = _index(turns, compression)
        file += index + struct.pack(">i", len(index)) + mark
        ends.append(len(file))
    return bytes(file), ends


def _stored(file: bytearray, data: bytes, compression: str) -> tuple[int, int, int]:
    start = len(file)
    file += zlib.compress(data) if compression == "gz" else data
    return start, len(data), len(file) - start


def _index(turns: list[Any], compression: str) -> bytes:
    java = Java()
    java.begin(f"{OUTER}IndexedLogsMeta", "I version L acls L compressName L logMetas L nodeId L user")
    java.number("i", 1)
    java.out += b"\x70"
    java.text(compression)
    java.begin_list(len(turns))
    for containers in turns:
        java.begin(f"{OUTER}IndexedPerAggregationLogMeta", "J uploadTimeStamp L logMetas L remoteNodeLogFileName")
        java.number("q", 17)
        java.begin_map(len(containers))
        for container, logs in containers:
            java.text(container)
            java.begin_list(len(logs))
            for name, start, size, stored in logs:
                fields = "J fileCompressedSize J fileSize J lastModificatedTime J startIndex L containerId L fileName"
                java.begin(f"{OUTER}IndexedFileLogMeta", fields)
                for number in (stored, size, 17, start):
                    java.number("q", number)
                java.text(container).text(name)
            java.end()
        java.end()
        java.text("n1_45454")
    java.end()
    java.text("n1:45454").text("alice")
    return bytes(java.out)


def read(
    file: bytes, good: bytes = b"", containers: Collection[str] | None = None, mark: int = 32
) -> dict[tuple[str, str], bytes]:
    found: dict[tuple[str, str], bytes] = {}
    for container, name, piece in indexed_file.read(io.BytesIO(file), mark, good, containers):
        found[container, name] = found.get((container, name), b"") + piece
    return found


FIRST = {"c1": {"stdout": b"one\n" * 50000, "stderr": b""}, "c2": {"stdout": b"two\n"}}
SECOND = {"c2": {"stdout": b"two again\n"}}


@pytest.mark.parametrize("compression", ["none", "gz"])
def test_files_of_containers(compression: str) -> None:
    file, _ = written(FIRST, SECOND, compression=compression)
    assert indexed_file.header_length(io.BytesIO(file), APPLICATION) == 32
    assert read(file) == {
        ("c1", "stdout"): b"one\n" * 50000,
        ("c1", "stderr"): b"",
        ("c2", "stdout"): b"two\ntwo again\n",
    }
    assert read(file, containers=["c2", "c3"]) == {("c2", "stdout"): b"two\ntwo again\n"}


def test_of_a_round_that_failed_nothing_is_read() -> None:
    file, ends = written(FIRST, SECOND)
    assert read(file[:-9], good=struct.pack(">q", ends[0]), containers=["c2"]) == {("c2", "stdout"): b"two\n"}
    assert read(file[:100], good=bytes(8)) == {}


def test_the_mark_of_a_file_is_found() -> None:
    uuid = b"0f8fad5b-d9cb-469f-a165-70867728950e"
    file, _ = written(FIRST, mark=uuid)
    assert indexed_file.header_length(io.BytesIO(file), APPLICATION) == 36
    assert read(file, mark=36, containers=["c2"]) == {("c2", "stdout"): b"two\n"}
    assert indexed_file.header_length(io.BytesIO(file), "application_17_0004") == 36
    assert indexed_file.header_length(io.BytesIO(written(FIRST)[0]), "application_17_0004") == 0
    assert indexed_file.header_length(io.BytesIO(b""), APPLICATION) == 0


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        (written(FIRST)[0][:-9], "not written to its end|not written by Java"),
        (MARK, "not written to its end"),
        (MARK + struct.pack(">i", 12) + MARK, "not written by Java"),
        (MARK + b"\xac\xed\x00\x05" + struct.pack(">i", 4) + MARK, "cut off"),
        (MARK + b"\xac\xed\x00\x05\x70" + struct.pack(">i", 5) + MARK, "not as YARN writes it"),
        (MARK + b"\xac\xed\x00\x05\x7d" + struct.pack(">i", 5) + MARK, "kind 0x7d"),
        (MARK + b"\xac\xed\x00\x05\x71\x00\x7e\x00\x09" + struct.pack(">i", 9) + MARK, "damaged"),
        (written(FIRST, compression="lzo")[0], "compressed with lzo"),
    ],
    ids=["cut", "mark", "text", "nothing", "null", "kind", "reference", "lzo"],
)
def test_a_damaged_file_is_refused(file: bytes, problem: str) -> None:
    with pytest.raises(TFileError, match=problem):
        read(file)


def test_every_cut_of_an_index_is_noticed() -> None:
    index = _index([[("c1", [("stdout", 33, 4, 4)])]], "none")
    assert java_serialization.load(index).fields["user"] == "alice"
    for size in range(len(index)):
        with pytest.raises(java_serialization.JavaError):
            java_serialization.load(index[:size])


def test_java_values_are_decoded() -> None:
    java = Java()
    java.begin("Two", "B a Z b C c S d F e")
    for kind, value in (("b", -1), ("?", True), ("H", 65), ("h", -2), ("f", 0.5)):
        java.number(kind, value)
    two = java_serialization.load(bytes(java.out))
    assert two == java_serialization.Instance("Two", {"a": -1, "b": True, "c": 65, "d": -2, "e": 0.5})
    array = bytearray(b"\xac\xed\x00\x05\x75\x72\x00\x02[I") + bytes(8) + b"\x02\x00\x00\x78\x70"
    assert java_serialization.load(bytes(array + struct.pack(">iii", 2, 7, 8))) == [7, 8]
    kind = b"\x72\x00\x01K" + bytes(8) + b"\x12\x00\x00\x78\x70"
    assert java_serialization.load(b"\xac\xed\x00\x05\x7e" + kind + b"\x74\x00\x04VIEW") == "VIEW"
