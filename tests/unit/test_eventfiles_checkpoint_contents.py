"""Tests reading contents of checkpoints that their own libraries wrote, without ever running code in them."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import random
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from howdah.errors import NotFound
from howdah.eventfiles import sampling, tensor_files, torch_file
from howdah.eventfiles.checkpoint_contents import CheckpointContents
from howdah.eventfiles.errors import FileUnreadable
from howdah.eventfiles.statistics import numbers, statistics
from howdah.eventfiles.tensor import Tensor
from howdah.spec import uris
from howdah.storage.factory import filesystem


def read(path: Path) -> list[Tensor]:
    uri = uris.of_local(path)
    return tensor_files.read_tensors(filesystem(uri), uri)


def safetensors(path: Path, **held: np.ndarray[Any, Any]) -> Path:
    header, content = {"__metadata__": {"format": "pt"}}, b""
    for name, one in held.items():
        data, kind = one.tobytes(), {"f": "F", "i": "I", "b": "BOOL"}[one.dtype.kind]
        kind = kind if kind == "BOOL" else f"{kind}{one.dtype.itemsize * 8}"
        span = [len(content), len(content) + len(data)]
        header[name] = {"dtype": kind, "shape": list(one.shape), "data_offsets": span}  # type: ignore[assignment]
        content += data
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content)
    return path


WEIGHTS = np.random.RandomState(1).randn(300, 7).astype("float32")
WEIGHTS[0, :3] = [0.0, np.nan, np.inf]


def test_safetensors_and_its_statistics(tmp_path: Path) -> None:
    path = safetensors(tmp_path / "a.safetensors", w=WEIGHTS, steps=np.arange(5), mask=np.array([True, False]))
    by_name = {one.name: one for one in read(path)}
    assert {name: (one.dtype, one.shape) for name, one in by_name.items()} == {
        "w": ("float32", (300, 7)),
        "steps": ("int64", (5,)),
        "mask": ("bool", (2,)),
    }
    answer = statistics(filesystem("file:///"), by_name["w"])
    good = WEIGHTS[np.isfinite(WEIGHTS)].astype("float64")
    assert (answer["zeros"], answer["nan"], answer["infinite"]) == (1, 1, 1)
    assert (answer["min"], answer["max"]) == (good.min(), good.max())
    assert answer["mean"] == pytest.approx(good.mean())
    assert answer["std"] == pytest.approx(good.std())
    assert sum(count for _, _, count in answer["histogram"]) == len(good) == answer["sampled"] - 2
    assert statistics(filesystem("file:///"), by_name["mask"])["mean"] == 0.5


def test_the_same_without_numpy(tmp_path: Path) -> None:
    path = safetensors(tmp_path / "a.safetensors", w=WEIGHTS, half=WEIGHTS.astype("float16"), steps=np.arange(5))
    program = (
        "import json, sys\n"
        "if sys.argv[2] == 'without': sys.modules['numpy'] = None\n"
        "from howdah.eventfiles import tensor_files\n"
        "from howdah.eventfiles.statistics import statistics\n"
        "from howdah.storage.factory import filesystem\n"
        "fs = filesystem(sys.argv[1])\n"
        "print(json.dumps([statistics(fs, one) for one in tensor_files.read_tensors(fs, sys.argv[1])]))\n"
    )
    both = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", program, uris.of_local(path), how], capture_output=True, text=True, check=True
            ).stdout
        )
        for how in ("with", "without")
    ]
    for one, other in zip(*both, strict=True):
        for key in one:
            if key in ("mean", "std"):
                assert one[key] == pytest.approx(other[key], rel=1e-6)
            else:
                assert one[key] == other[key]


def test_numbers_of_small_types_are_decoded() -> None:
    assert list(numbers(struct.pack("<2H", 0x3F80, 0xC000), "bfloat16")) == [1.0, -2.0]
    assert list(numbers(bytes((0x38, 0xB8, 0x7E, 0x01)), "float8_e4m3fn")) == [1.0, -1.0, 448.0, 2.0**-9]
    assert math.isnan(numbers(b"\x7f", "float8_e4m3fn")[0])
    assert list(numbers(bytes((0x3C, 0x7C)), "float8_e5m2")) == [1.0, math.inf]
    assert list(numbers(struct.pack(">2f", 1.5, 2.5), "float32", big_endian=True)) == [1.5, 2.5]


def test_numpy_files_are_read(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", w=WEIGHTS, names=np.array(["a", "bc"]), deep=np.ones((2, 3), ">i4"))
    by_name = {one.name: one for one in read(tmp_path / "a.npz")}
    assert by_name["w"].shape == (300, 7)
    assert statistics(filesystem("file:///"), by_name["deep"])["max"] == 1.0
    with pytest.raises(FileUnreadable, match="only numbers"):
        statistics(filesystem("file:///"), by_name["names"])
    np.save(tmp_path / "b.npy", np.arange(6).reshape(2, 3))
    assert [(one.name, one.shape, one.dtype) for one in read(tmp_path / "b.npy")] == [("array", (2, 3), "int64")]


# Torch's archives, whose pickles are written here by hand


def archive(path: Path, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", content)
        file.writestr("archive/data/0", np.arange(6, dtype="float32").tobytes())
    return path


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


def test_nothing_that_a_pickle_names_is_called(tmp_path: Path) -> None:
    mark = tmp_path / "called"
    path = archive(tmp_path / "evil.pt", pickle.dumps({"a": Evil(mark), "b": [Evil(mark)]}, 2))
    assert read(path) == []
    for protocol in range(2, 6):
        value = [Evil(mark), {"x": Evil(mark)}, {1, 2}, b"x", (1, 2.0, None, True)]
        torch_file.load_pickle(pickle.dumps(value, protocol))
    for text in (b"cos\nsystem\n(S'touch %b'\ntR.", b"(S'touch %b'\nios\nsystem\n.", b"cbuiltins\neval\n(S'1'\ntR."):
        torch_file.load_pickle(text.replace(b"%b", str(mark).encode()))
    assert not mark.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x02",
        b"\x80\x02r\xff\xff\xff\xff.",  # a memo of four thousand million entries
        b"\x80\x02K\x01r\xff\xff\xff\x7f.",
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x80\x02X\xff\xff\xff\x7fabc.",
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(K\x01K\x02tR.",
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n" + b"(" * 1000,
        b"\x80\x02\x82\x01.",
        b"P1\n.",
        b"\x80\x02]" + b"(" * 5000 + b"t" * 5000 + b".",
    ],
)
def test_pickles_that_are_none(content: bytes, tmp_path: Path) -> None:
    path = archive(tmp_path / "bad.pt", content)
    with contextlib.suppress(FileUnreadable):
        assert read(path) == []


def test_a_table_of_shards_that_is_none(tmp_path: Path) -> None:
    for content in (pickle.dumps({"a": 1}), pickle.dumps(Evil(tmp_path / "called")), b"\x80\x02N."):
        (tmp_path / ".metadata").write_bytes(content)
        assert CheckpointContents().tensors([uris.of_local(tmp_path)], uris.of_local(tmp_path))["tensors"] == []
    assert not (tmp_path / "called").exists()


def test_a_pickle_that_holds_itself_many_times_is_walked_once(tmp_path: Path) -> None:
    value: list[Any] = []
    for _ in range(200):
        value = [value, value]
    assert read(archive(tmp_path / "bomb.pt", pickle.dumps(value, 2))) == []


def test_no_room_is_made_for_what_a_pickle_only_says_it_holds() -> None:
    tracemalloc.start()
    with contextlib.suppress(FileUnreadable):
        torch_file.load_pickle(b"\x80\x05\x96" + struct.pack("<Q", 1 << 33) + b"few.")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert torch_file.load_pickle(pickle.dumps(bytearray(b"some"), 5)) == bytearray(b"some")


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False))
def test_pickles_with_wrong_bytes_fail_here_if_at_all(chance: random.Random) -> None:
    data = bytearray(pickle.dumps({"a": [1, 2.5, "x", (None, True)], "b": {"c": b"y" * 30}}, chance.randint(0, 5)))
    for _ in range(chance.randint(1, 4)):
        data[chance.randrange(len(data))] = chance.choice([chance.randrange(256), *b"cR}u(]eb\x81"])
    with contextlib.suppress(FileUnreadable):
        torch_file.load_pickle(bytes(data))


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<Q", 1 << 60) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 12) + b'{"a": [1,2]}',
        b"PK\x03\x04" + bytes(100),
        b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535,
        b"\x93NUMPY\x01\x00\x10\x00__import__('os')",
        b"",
        b"nothing of the kind",
    ],
)
def test_files_that_are_not_what_they_begin_as(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(FileUnreadable):
        read(path)


def test_a_tensor_beyond_the_end_of_its_file(tmp_path: Path) -> None:
    path = safetensors(tmp_path / "a.safetensors", w=WEIGHTS)
    path.write_bytes(path.read_bytes()[:-100])
    (one,) = read(path)
    with pytest.raises(FileUnreadable, match="ends before the tensor"):
        statistics(filesystem("file:///"), one)


# Shards


@pytest.fixture
def indexed(tmp_path: Path) -> Path:
    """As `save_pretrained` writes one: two shards, their index, and another file beside them."""
    tmp_path = tmp_path / "final"
    tmp_path.mkdir()
    safetensors(tmp_path / "model-00001-of-00002.safetensors", a=WEIGHTS, b=np.arange(5))
    safetensors(tmp_path / "model-00002-of-00002.safetensors", c=WEIGHTS.astype("float16"))
    where = {name: f"model-0000{number}-of-00002.safetensors" for name, number in (("a", 1), ("b", 1), ("c", 2))}
    index = {"metadata": {"total_size": 1}, "weight_map": where}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    np.save(tmp_path / "steps.npy", np.arange(3))
    return tmp_path


def test_an_index_says_which_files_belong_together(indexed: Path) -> None:
    contents, uri = CheckpointContents(), uris.of_local(indexed)
    (row,) = contents.checkpoints([uris.of_local(indexed.parent)])["checkpoints"]
    assert (row["valid"], row["uri"], row["format"]) == (True, uri, "torch-transformers")
    rows = contents.tensors([uri], uri)["tensors"]
    assert [(one["name"], one["dtype"], one["shape"]) for one in rows] == [
        ("a", "float32", (300, 7)), ("b", "int64", (5,)), ("c", "float16", (300, 7)), ("steps/array", "int64", (3,)),
    ]  # fmt: skip
    assert contents.statistics([uri], uri, "c")["count"] == 2100
    assert contents.statistics([uri], uri, "steps/array")["max"] == 2
    alone = contents.tensors([uri], f"{uri}/model.safetensors.index.json")["tensors"]
    assert [one["name"] for one in alone] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"weight_map": {"a": "../../etc/passwd"}}', "not beside it"),
        ('{"weight_map": {"a": ".."}}', "not beside it"),
        ('{"weight_map": {"a": "model-3.safetensors"}}', "model-3.safetensors, which is not there"),
        ('{"weight_map": {"z": "model-00001-of-00002.safetensors"}}', "has no 'z'"),
        ('{"weight_map": {"a": 1}}', "which is not there"),
        ('{"weight_map": [1]}', "not an index"),
        ("[]", "not an index"),
        ("{", "not an index"),
        ('{"a": ' + "[" * 100_000, "not an index"),
    ],
)
def test_an_index_that_is_none(indexed: Path, text: str, words: str) -> None:
    (indexed / "model.safetensors.index.json").write_text(text)
    with pytest.raises(FileUnreadable, match=words):
        CheckpointContents().tensors([uris.of_local(indexed)], uris.of_local(indexed))


class Object:
    """Becomes some object of torch.distributed.checkpoint."""

    def __init__(self, **told: Any) -> None:
        self.__dict__.update(told)


TENSOR = (  # torch.save(tensor of six numbers), and its metadata's dtype, as torch writes them
    b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"
    b"X\x03\x00\x00\x00cpuK\x06tQK\x00K\x06\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR."
)


def metadata(
    size: Any = (12,), chunks: Any = None, places: Any = None, path: str = "__0_0.distcp", **more: Any
) -> bytes:
    chunks = [((0,), (6,)), ((6,), (6,))] if chunks is None else chunks
    listed = [Object(offsets=offset, sizes=sizes) for offset, sizes in chunks]
    named = {"w": Object(size=size, properties=("DTYPE", False), chunks=listed), "step": Object()}
    stored = {
        Object(fqn="w", offset=offset): Object(relative_path=path, offset=start, length=length, **more)
        for offset, start, length in places or ()
    }
    told = Object(state_dict_metadata=named, storage_data=stored)
    return pickle.dumps(told, 2).replace(b"X\x05\x00\x00\x00DTYPE", b"ctorch\nfloat32\n")


@pytest.fixture
def shards(tmp_path: Path) -> tuple[Path, list[tuple[Any, int, int]]]:
    """Two parts of six numbers in one file."""
    data = archive(tmp_path / "part", TENSOR).read_bytes()
    (tmp_path / "part").unlink()
    (tmp_path / "__0_0.distcp").write_bytes(data + data)
    return tmp_path, [((0,), 0, len(data)), ((6,), len(data), len(data))]


def told(directory: Path, content: bytes) -> dict[str, Any]:
    (directory / ".metadata").write_bytes(content)
    contents, uri = CheckpointContents(), uris.of_local(directory)
    (row,) = contents.tensors([uri], uri)["tensors"]
    assert (row["name"], row["dtype"], row["shape"]) == ("w", "float32", (12,))
    return contents.statistics([uri], uri, "w")


def test_a_tensor_in_shards_is_all_of_them(shards: tuple[Path, list[tuple[Any, int, int]]]) -> None:
    directory, places = shards
    answer = told(directory, metadata(places=places))
    assert (answer["sampled"], answer["min"], answer["max"], answer["mean"], answer["zeros"]) == (12, 0, 5, 2.5, 2)
    with pytest.raises(FileUnreadable, match="as one that compresses"):
        told(directory, metadata(places=places, transform_descriptors=["zstd"]))
    with pytest.raises(FileUnreadable, match="does not say where"):
        told(directory, metadata(places=places[:1]))
    with pytest.raises(FileUnreadable, match="not as large"):
        told(directory, metadata(places=places, chunks=[((0,), (6,))]))
    for wrong in ("../x", "/etc/passwd", "a/b", "..", "", ".hidden"):
        with pytest.raises(FileUnreadable, match="in no file of this directory"):
            told(directory, metadata(places=places, path=wrong))
    (_, first, size), (_, second, _) = places
    for start, length in ((1, size), (first, size - 1), (second, 0), (1 << 61, size)):
        with pytest.raises((FileUnreadable, OSError)):
            told(directory, metadata(places=[places[0], ((6,), start, length)]))
    with pytest.raises(FileUnreadable, match="are not 8 float32"):
        told(directory, metadata(places=places, chunks=[((0,), (8,)), ((6,), (4,))]))
    (directory / "__0_0.distcp").rename(directory.parent / "away")
    (directory / "__0_0.distcp").symlink_to(directory.parent / "away")
    with pytest.raises(NotFound, match="not below"):
        told(directory, metadata(places=places))


@pytest.mark.parametrize("size", [("a",), (-1,), ((),), (1,) * 65, (1.5,), (1 << 62,)])
def test_shapes_that_no_tensor_has(tmp_path: Path, size: Any) -> None:
    for content in (
        metadata(size),
        metadata(chunks=[((0,), size)], places=[((0,), 0, 1)]),
        metadata(places=[(size, 0, 1)]),
    ):
        with contextlib.suppress(FileUnreadable):
            assert torch_file.read_distributed_metadata(content, "file:///c/.metadata")[0].parts == ()


def test_a_table_that_names_the_same_again_and_again_is_no_trap() -> None:
    deep: Any = "x"
    for _ in range(5):
        deep = [deep] * 1000
    chunks = [Object(offsets=(0,), sizes=(1,))] * 200_000
    named = {f"w{number}": Object(size=(1,), properties=deep, chunks=chunks) for number in range(200)}
    stored = {Object(fqn="w0", offset=(0,)): Object(relative_path="a", offset=0, length=1)}
    content = pickle.dumps(Object(state_dict_metadata=named, storage_data=stored), 2)
    assert len(torch_file.read_distributed_metadata(content, "file:///c/.metadata")) == 200


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False))
def test_tables_of_shards_with_wrong_bytes_fail_here_if_at_all(chance: random.Random) -> None:
    data = bytearray(metadata(places=[((0,), 0, 100), ((6,), 100, 100)]))
    for _ in range(chance.randint(1, 6)):
        data[chance.randrange(len(data))] = chance.choice([chance.randrange(256), *b"cR}u(]eb\x81K"])
    with contextlib.suppress(FileUnreadable):
        for one in torch_file.read_distributed_metadata(bytes(data), "file:///c/.metadata"):
            assert one.unreadable_reason or sum(part.count for part in one.parts) == one.count


def test_what_is_found_below_a_directory(tmp_path: Path) -> None:
    safetensors(tmp_path / "step-10.safetensors", w=WEIGHTS)
    cut = safetensors(tmp_path / "step-20.safetensors", w=WEIGHTS)
    cut.write_bytes(cut.read_bytes()[:-1])
    outside = tmp_path.parent / "outside.npy"
    np.save(outside, WEIGHTS)
    (tmp_path / "link.npy").symlink_to(outside)
    contents, directories = CheckpointContents(), [uris.of_local(tmp_path)]
    rows = {row["step"]: row for row in contents.checkpoints(directories)["checkpoints"] if row["step"]}
    assert (rows[10]["valid"], rows[20]["valid"]) == (True, False)
    assert "bytes" in rows[20]["reason"]
    assert contents.tensors(directories, rows[10]["uri"])["tensors"][0]["name"] == "w"
    assert contents.statistics(directories, rows[10]["uri"], "w")["nan"] == 1
    with pytest.raises(NotFound, match="no tensor"):
        contents.statistics(directories, rows[10]["uri"], "none")
    for wrong in (outside, tmp_path / "link.npy", tmp_path / ".." / "outside.npy", Path("/etc/passwd")):
        with pytest.raises(NotFound, match="not below"):
            contents.tensors(directories, f"file://{wrong}")
    assert contents.checkpoints([uris.of_local(tmp_path / "never")])["checkpoints"] == []


# Few points of many


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(width=32), max_size=300), st.integers(4, 60))
def test_a_sample_keeps_ends_and_extremes(values: list[float], maximum: int) -> None:
    steps, walls = array("q", range(len(values))), array("d", range(len(values)))
    found = sampling.sample(steps, walls, array("d", values), maximum)
    assert found == sampling.sample(steps, walls, array("d", values), maximum)
    assert len(found.points) <= max(4, maximum + 1)
    good = [value for value in values if math.isfinite(value)]
    assert found.nan + found.infinite + len(good) == len(values)
    if values:
        assert (found.points[0][0], found.points[-1][0]) == (0, len(values) - 1)
    if good:
        assert min(point[2] for point in found.points if point[2] is not None) == min(good)
        assert max(point[4] for point in found.points if point[4] is not None) == max(good)


def test_a_growing_curve_keeps_its_points() -> None:
    values = array("d", [math.sin(number) for number in range(1000)])
    steps, walls = array("q", range(1000)), array("d", range(1000))
    before = sampling.sample(steps[:900], walls[:900], values[:900], 600).points
    after = sampling.sample(steps, walls, values, 600).points
    assert after[: len(before) - 2] == before[:-2]
