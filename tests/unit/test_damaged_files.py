"""Tests that damaged or truncated files are reported as such, and stop nothing."""

from __future__ import annotations

import contextlib
import json
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import orc
from record_files import blocks, put, records

from howdah.checkpoints import file_validation
from howdah.eventfiles import tensor_files
from howdah.eventfiles.errors import FileUnreadable
from howdah.eventfiles.statistics import statistics
from howdah.inputs.formats import Corrupt, reader
from howdah.spec import uris
from howdah.storage.factory import filesystem

PICKLE = (
    b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x06tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89}tRs."
)
"""{"w": a float32 tensor of shape 2, 3}, as torch.save has it."""
FLOATS = np.arange(6, dtype="float32")


def torch_archive(path: Path, method: int) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("archive/data.pkl", PICKLE)
        archive.writestr("archive/data/0", FLOATS.tobytes())


def safetensors(path: Path, length: int = -1) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header) if length < 0 else length) + header + FLOATS.tobytes())


WRITERS = {
    "stored.pt": lambda path: torch_archive(path, zipfile.ZIP_STORED),
    "deflated.pt": lambda path: torch_archive(path, zipfile.ZIP_DEFLATED),
    "bzip2.pt": lambda path: torch_archive(path, zipfile.ZIP_BZIP2),
    "lzma.pt": lambda path: torch_archive(path, zipfile.ZIP_LZMA),
    "a.npz": lambda path: np.savez(path, w=FLOATS),
    "packed.npz": lambda path: np.savez_compressed(path, w=FLOATS),
    "a.npy": lambda path: np.save(path, FLOATS),
    "a.safetensors": safetensors,
    "a.pkl": lambda path: path.write_bytes(pickle.dumps({"a": [1, 2]}, 4)),
    "b.metadata": lambda path: path.write_bytes(pickle.dumps({"a": [1, 2]}, 2)),
    "a.json": lambda path: path.write_text('{"a": [1, {"b": null}]}'),
    "a.h5": lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes([0] * 5 + [8, 8, 0]) + bytes(80)),
}


def looked_at(path: Path) -> None:
    """By all that reads checkpoints."""
    file_validation.describe_defect(str(path))
    fs = filesystem("file:///")
    with contextlib.suppress(FileUnreadable):
        for tensor in tensor_files.read_tensors(fs, uris.of_local(path)):
            statistics(fs, tensor)


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_whole_has_no_flaw(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    assert file_validation.describe_defect(str(tmp_path / name)) in ("", None)
    looked_at(tmp_path / name)


@pytest.mark.parametrize("name", WRITERS)
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.data())
def test_wrong_bytes_are_a_refusal_at_most(tmp_path: Path, name: str, data: st.DataObject) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        large = st.sampled_from([1 << 63, (1 << 64) - 1, 1 << 62, 1 << 40]).map(lambda one: struct.pack("<Q", one))
        new = data.draw(st.one_of(st.binary(min_size=1, max_size=1), large))
        content[at : at + len(new)] = new
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    looked_at(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("short.npy", b"\x93NUMPY"),
        ("short.npy", b"\x93NUMPY\x01\x00\x10"),
        ("deep.json", b"[" * 100_000),
        ("deep.safetensors", struct.pack("<Q", 100_000) + b"[" * 100_000),
        ("far.pt", b"PK\x03\x04" + b"PK\x06\x07" + bytes(4) + b"\xff" * 8 + bytes(4) + b"PK\x05\x06" + bytes(18)),
    ],
)
def test_what_once_ended_a_reader_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert file_validation.describe_defect(str(path)) != ""
    with pytest.raises(FileUnreadable):
        tensor_files.read_tensors(filesystem("file:///"), uris.of_local(path))


def test_a_header_that_says_it_is_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    safetensors(path, 200 << 20)
    with path.open("r+b") as file:
        file.truncate(300 << 20)
    assert file_validation.describe_defect(str(path)) == "its header is larger than any of safetensors"


def test_text_in_orc_that_is_none(tmp_path: Path) -> None:
    table = pyarrow.table({"text": ['"aaaaaaaa"'] * 10})
    orc.write_table(table, str(tmp_path / "a.orc"), compression="uncompressed", dictionary_key_size_threshold=0.0)
    content = (tmp_path / "a.orc").read_bytes()
    assert b"aaaaaaaa" in content
    split = put(tmp_path / "a.orc", content.replace(b"aaaaaaaa", b"aaa\xff\xfeaaa"))
    for read in (blocks, records):
        with pytest.raises(Corrupt, match=r"a\.orc: "):
            read(reader("orc", {}), split)
