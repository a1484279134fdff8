"""Tests reading TFiles that are written here by the format's rules; e2e tests read real ones."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.engines.yarn.conf import Configuration
from howdah.engines.yarn.logs import aggregated, tfile
from howdah.errors import EngineUnavailable, StagingError
from howdah.storage.local import LocalFileSystem

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


def written(
    blocks: Iterable[Iterable[tuple[bytes, bytes]]], compression: str = "none", chunk: int = 20, told: bool = True
) -> bytes:
    """A file with these blocks; without `told` it does not say which keys they end with."""
    pack = zlib.compress if compression == "gz" else bytes
    out, regions, first, lasts = b"", [], b"", b""
    for block in blocks:
        pairs = list(block)
        raw = b"".join(vlong(len(key)) + key + chunked(value, chunk) for key, value in pairs)
        regions.append((len(out), len(pack(raw)), len(raw)))
        out += pack(raw)
        entry = vlong(len(pairs[-1][0])) + pairs[-1][0] + vlong(len(pairs))
        lasts += vlong(len(entry)) + entry
        first = first or vlong(len(pairs[0][0])) + pairs[0][0]
    index = text(compression) + vlong(len(regions)) + b"".join(vlong(n) for region in regions for n in region)
    metas = {tfile.INDEX: index, **({tfile.KEYS: vlong(len(first)) + first + lasts} if told else {})}
    meta = vlong(len(metas))
    for name, content in metas.items():
        packed = pack(content)
        meta += text(name) + text(compression) + vlong(len(out)) + vlong(len(packed)) + vlong(len(content))
        out += packed
    return out + meta + struct.pack(">qhh", len(out), 1, 0) + tfile.MAGIC


def read(data: bytes) -> list[tuple[bytes, bytes]]:
    return [(key, value.read_exactly(1 << 30)) for key, value in tfile.records(io.BytesIO(data))]


@pytest.mark.parametrize("compression", ["none", "gz"])
@given(blocks=st.lists(st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=300)), min_size=1), max_size=4))
def test_any_records_are_read_back(compression: str, blocks: list[list[tuple[bytes, bytes]]]) -> None:
    assert read(written(blocks, compression)) == [record for block in blocks for record in block]


records = st.lists(
    st.tuples(st.binary(min_size=1, max_size=2), st.binary(max_size=300)), min_size=1, unique_by=lambda one: one[0]
)


@pytest.mark.parametrize("told", [True, False])
@given(blocks=st.lists(records, max_size=4), keys=st.sets(st.binary(min_size=1, max_size=2), max_size=5))
def test_any_of_the_records(told: bool, blocks: list[list[tuple[bytes, bytes]]], keys: set[bytes]) -> None:
    keys |= {block[0][0] for block in blocks[:1]} | {block[-1][0] for block in blocks[1:2]}
    file = io.BytesIO(written(blocks, told=told))
    found = [(key, value.read_exactly(1 << 30)) for key, value in tfile.records(file, keys)]
    assert found == [record for block in blocks for record in block if record[0] in keys]


class Counted(io.BytesIO):
    """A file that counts the bytes which are read of it."""

    count = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.count += len(data)
        return data


@pytest.mark.parametrize("wanted", range(6))
def test_of_others_little_is_read(wanted: int) -> None:
    sizes = [700_000, 1_000, 2_000, 900_000, 800_000, 500]
    pairs = [(b"container %d" % number, b"x" * size) for number, size in enumerate(sizes)]
    file = Counted(written([pairs[:1], pairs[1:4], pairs[4:5], pairs[5:]], chunk=100_000))
    ((key, value),) = ((key, value.read_exactly(1 << 30)) for key, value in tfile.records(file, {pairs[wanted][0]}))
    assert (key, value) == pairs[wanted]
    assert file.count < sizes[wanted] + 3 * tfile.PIECE


def test_values_that_are_not_read_are_skipped() -> None:
    data = written([[(b"a", b"x" * 500), (b"b", b"y" * 500)]])
    assert [key for key, _ in tfile.records(io.BytesIO(data))] == [b"a", b"b"]


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"\x7f", 127), (b"\xe0", -32), (b"\xcc\x80", 128), (b"\xb8\x00", -5120), (b"\xa8\x14\x00", 5120),
     (b"\x88\x00\x00\x00", -(8 << 24)), (b"\x83\x7f\xff\xff\xff", (1 << 31) - 1), (b"\x87" + b"\xff" * 8, -1)],
)  # fmt: skip
def test_integers_are_decoded(data: bytes, value: int) -> None:
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
    found = list(aggregated.read(LocalFileSystem(), configuration, APPLICATION, "alice"))
    id_ = "container_17_0003_01_000001"
    assert {name for _, name, _ in found} == {"stdout", "stderr"}
    assert b"".join(piece for owner, name, piece in found if (owner, name) == (id_, "stdout")) == b"hello\n" * 9


def test_only_the_file_of_its_own_node_is_read(tmp_path: Path) -> None:
    directory = tmp_path / "alice" / "logs" / APPLICATION
    ids = [f"container_17_0003_01_{number:06d}" for number in range(3)]
    store(directory, "n1_45454", written([[(utf(id_), container(stdout=id_[-6:].encode()))] for id_ in ids]))
    store(directory, "n1_40000_1700000000", written([[(utf("container_17_0003_01_000009"), container(stdout=b"y"))]]))
    store(directory, "n12_45454", b"not to be read")
    configuration = Configuration("", {"yarn.nodemanager.remote-app-log-dir": str(tmp_path)})
    on = {ids[1]: "n1", ids[2]: "n1", "container_17_0003_01_000009": "n1"}
    found = {
        owner: piece for owner, _, piece in aggregated.read(LocalFileSystem(), configuration, APPLICATION, "alice", on)
    }
    assert found == {ids[1]: b"000001", ids[2]: b"000002", "container_17_0003_01_000009": b"y"}
    assert list(aggregated.read(LocalFileSystem(), configuration, APPLICATION, "alice", {})) == []
    with pytest.raises(StagingError, match="n12_45454"):
        list(aggregated.read(LocalFileSystem(), configuration, APPLICATION, "alice", {"c": "n12"}))


def test_a_node_that_has_not_brought_its_logs_is_named(tmp_path: Path) -> None:
    directory = tmp_path / "alice" / "logs" / APPLICATION
    store(directory, "n1_45454", written(CONTAINERS))
    store(directory, "n2_45454.tmp", b"unfinished")
    configuration = Configuration("", {"yarn.nodemanager.remote-app-log-dir": str(tmp_path)})
    for on in ({"c": "n2"}, {"c": "n2", "d": "n3"}):
        with pytest.raises(EngineUnavailable, match=r"n2_45454\.tmp: this node has not brought its logs yet"):
            list(aggregated.read(LocalFileSystem(), configuration, APPLICATION, "alice", on))


def test_logs_without_aggregation_are_refused(tmp_path: Path) -> None:
    configuration = Configuration("", {"yarn.nodemanager.remote-app-log-dir": str(tmp_path)})
    with pytest.raises(StagingError, match="log aggregation is off"):
        list(aggregated.read(LocalFileSystem(), configuration, APPLICATION, "alice"))
