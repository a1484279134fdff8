"""TFile, from files written here by the format's rules; the real ones are read in the e2e tests."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.data.local import LocalFileSystem
from howdah.engines.yarn import logs, tfile
from howdah.engines.yarn.conf import Configuration
from howdah.errors import StagingError

APPLICATION = "application_17_0003"


def vlong(value: int) -> bytes:
    """Utils.writeVLong for what these tests need."""
    if -32 <= value < 128:
        return struct.pack("b", value)
    if -(1 << 15) <= value < 1 << 13 and value >= 0:
        return (
            bytes([((value >> 8) - 52) & 0xFF, value & 0xFF]) if value < 20 << 8 else b"\x83" + struct.pack(">i", value)
        )
    return b"\x83" + struct.pack(">i", value)


def text(value: str) -> bytes:
    return vlong(len(value.encode())) + value.encode()


def chunked(value: bytes, size: int) -> bytes:
    """All chunks but the last have a negative length."""
    pieces = [value[start : start + size] for start in range(0, len(value), size)] or [b""]
    return b"".join(vlong(-len(piece)) + piece for piece in pieces[:-1]) + vlong(len(pieces[-1])) + pieces[-1]


def written(blocks: Iterable[Iterable[tuple[bytes, bytes]]], compression: str = "none", chunk: int = 20) -> bytes:
    pack = zlib.compress if compression == "gz" else bytes
    out, regions = b"", []
    for block in blocks:
        raw = b"".join(vlong(len(key)) + key + chunked(value, chunk) for key, value in block)
        regions.append((len(out), len(pack(raw)), len(raw)))
        out += pack(raw)
    index = text(compression) + vlong(len(regions)) + b"".join(vlong(n) for region in regions for n in region)
    packed = pack(index)
    meta = vlong(1) + text(tfile.INDEX) + text(compression) + vlong(len(out)) + vlong(len(packed)) + vlong(len(index))
    return out + packed + meta + struct.pack(">qhh", len(out) + len(packed), 1, 0) + tfile.MAGIC


def read(data: bytes) -> list[tuple[bytes, bytes]]:
    return [(key, value.take(1 << 30)) for key, value in tfile.records(io.BytesIO(data))]


@pytest.mark.parametrize("compression", ["none", "gz"])
@given(blocks=st.lists(st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=300)), min_size=1), max_size=4))
def test_any_records(compression: str, blocks: list[list[tuple[bytes, bytes]]]) -> None:
    assert read(written(blocks, compression)) == [record for block in blocks for record in block]


def test_values_that_are_not_read_are_skipped() -> None:
    data = written([[(b"a", b"x" * 500), (b"b", b"y" * 500)]])
    assert [key for key, _ in tfile.records(io.BytesIO(data))] == [b"a", b"b"]


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"\x7f", 127), (b"\xe0", -32), (b"\xcc\x80", 128), (b"\xb8\x00", -5120), (b"\xa8\x14\x00", 5120),
     (b"\x88\x00\x00\x00", -(8 << 24)), (b"\x83\x7f\xff\xff\xff", (1 << 31) - 1), (b"\x87" + b"\xff" * 8, -1)],
)  # fmt: skip
def test_integers(data: bytes, value: int) -> None:
    assert tfile.Stream(io.BytesIO(data), 0, len(data), "none").vlong() == value


def test_what_is_no_tfile() -> None:
    for data in (b"", b"x" * 100, written([[(b"a", b"b")]])[:-1]):
        with pytest.raises(tfile.TFileError):
            read(data)
    with pytest.raises(tfile.TFileError, match="compressed with lzo"):
        read(written([[(b"a", b"b")]], "lzo"))


def utf(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode()


def container(**files: bytes) -> bytes:
    return b"".join(utf(name) + utf(str(len(content))) + content for name, content in files.items())


def store(directory: Path, node: str, data: bytes) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / node).write_bytes(data)


CONTAINERS = [
    [(utf("VERSION"), struct.pack(">i", 1)), (utf("APPLICATION_OWNER"), utf("alice"))],
    [(utf("container_17_0003_01_000001"), container(stdout=b"hello\n" * 9, stderr=b""))],
]


@pytest.mark.parametrize("layout", ["bucket-logs-tfile/0003/", "logs/", "bucket-logs/0003/", "logs-tfile/"])
def test_logs_are_found_in_every_layout(tmp_path: Path, layout: str) -> None:
    directory = tmp_path / "alice" / layout / APPLICATION
    store(directory, "n1_45454", written(CONTAINERS))
    store(directory, "n2_45454.tmp", b"unfinished")
    configuration = Configuration("", {"yarn.nodemanager.remote-app-log-dir": str(tmp_path)})
    found = list(logs.read(LocalFileSystem(), configuration, APPLICATION, "alice"))
    id_ = "container_17_0003_01_000001"
    assert {name for _, name, _ in found} == {"stdout", "stderr"}
    assert b"".join(piece for owner, name, piece in found if (owner, name) == (id_, "stdout")) == b"hello\n" * 9


def test_no_logs(tmp_path: Path) -> None:
    configuration = Configuration("", {"yarn.nodemanager.remote-app-log-dir": str(tmp_path)})
    with pytest.raises(StagingError, match="log aggregation is off"):
        list(logs.read(LocalFileSystem(), configuration, APPLICATION, "alice"))
