"""Tests finding the newest complete checkpoint, of each library's format and by the user's own rule."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import zipfile
from pathlib import Path

import pytest

from howdah.checkpoints import discovery, file_validation
from howdah.checkpoints import tensorflow_index as bundle
from howdah.spec import uris
from howdah.storage.factory import filesystem


def find(folder: Path, rule: str = "") -> tuple[str | None, tuple[str, ...]]:
    found = discovery.find(filesystem("file:///"), uris.of_local(folder), rule)
    return (found.checkpoint.name if found.checkpoint else None), found.skipped


class Folder:
    """Writes files one after another, each a second newer than the one before."""

    def __init__(self, path: Path) -> None:
        self.path, self.clock = path, 1_700_000_000

    def write(self, name: str, data: bytes | str = b"x") -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        self.clock += 1
        os.utime(path, (self.clock, self.clock))
        return path


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "checkpoints")


def archive(*contents: bytes) -> bytes:
    """As torch.save writes it: stored, not compressed."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as whole:
        for number, content in enumerate(contents or (b"tensor",)):
            whole.writestr(zipfile.ZipInfo(f"archive/data/{number}"), content)  # the same bytes at any time
    return file.getvalue()


def varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def block(*entries: tuple[bytes, bytes]) -> bytes:
    """A block of LevelDB's table, in which keys share nothing, and its trailer."""
    body = b"".join(b"\0" + varint(len(key)) + varint(len(value)) + key + value for key, value in entries)
    return body + (0).to_bytes(4, "little") + (1).to_bytes(4, "little") + b"\0" + b"crc."


def tensorflow_index(*sizes: int) -> bytes:
    """An index whose tensors end where `sizes` say, one tensor in each data file."""
    header = b"\x08" + varint(len(sizes)) + b"\x1a\x02\x08\x01"
    entries = [(b"", header)]
    for shard, size in enumerate(sizes):
        entry = (
            b"\x08\x01\x12\x00\x18" + varint(shard) + b"\x20" + varint(size // 2) + b"\x28" + varint(size - size // 2)
        )
        entries.append((f"tensor{shard}".encode(), entry + b"\x35\x01\x02\x03\x04"))
    data = block(*entries)
    handle = varint(0) + varint(len(data) - 5)
    index = block((b"tensor9", handle))
    footer = varint(0) + varint(0) + varint(len(data)) + varint(len(index) - 5)
    return data + index + footer.ljust(40, b"\0") + bundle.MAGIC


def tensorflow(folder: Folder, prefix: str, *sizes: int) -> None:
    for shard, size in enumerate(sizes):
        folder.write(f"{prefix}.data-{shard:05d}-of-{len(sizes):05d}", b"d" * size)
    folder.write(f"{prefix}.index", tensorflow_index(*sizes))


def safetensors(size: int = 8) -> bytes:
    header = json.dumps({"__metadata__": {}, "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, size]}}).encode()
    return len(header).to_bytes(8, "little") + header + b"w" * size


def test_nothing_is_found_where_nothing_is(folder: Folder) -> None:
    assert find(folder.path) == (None, ())
    folder.write("notes.txt")
    folder.write("config.json", "{}")
    assert find(folder.path) == (None, ())


def test_the_newest_by_time_is_taken(folder: Folder) -> None:
    for number in (100, 5, 6):  # a training that began anew in the same place
        folder.write(f"epoch-{number}.pt", archive())
    assert find(folder.path) == ("epoch-6.pt", ())


def test_equally_old_ones_go_by_number(folder: Folder) -> None:
    for number in (9, 10):
        path = folder.write(f"epoch-{number}.pt", archive())
        os.utime(path, (folder.clock, 1_700_000_000))
    assert find(folder.path)[0] == "epoch-10.pt"


@pytest.mark.parametrize("name", ["m.pt", "m.pth", "m.ckpt", "m.keras", "m.safetensors"])
def test_a_file_cut_anywhere_is_not_whole(name: str) -> None:
    data = safetensors() if name.endswith(".safetensors") else archive(b"a" * 50, b"b" * 60)
    assert file_validation.find_defect(io.BytesIO(data), name, len(data)) == ""
    for length in range(len(data)):
        assert file_validation.find_defect(io.BytesIO(data[:length]), name, length), length


def test_a_large_archive_is_whole_too(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as whole, whole.open("archive/data/0", "w", force_zip64=True) as entry:
        entry.write(b"x" * 1000)
    data = bytearray(file.getvalue())
    # What zipfile writes beyond 4 GiB: the 64-bit end and its locator before the old end, which then says ffffffff.
    place, length, offset = len(data) - 22, *(int.from_bytes(data[n : n + 4], "little") for n in (-10, -6))
    end64 = b"PK\x06\x06" + (44).to_bytes(8, "little") + b"\x2d\0\x2d\0" + bytes(8)
    end64 += (1).to_bytes(8, "little") * 2 + length.to_bytes(8, "little") + offset.to_bytes(8, "little")
    locator = b"PK\x06\x07" + bytes(4) + place.to_bytes(8, "little") + (1).to_bytes(4, "little")
    old = bytes(data[place : place + 8]) + b"\xff" * 12 + b"\0\0"
    whole_file = bytes(data[:place]) + end64 + locator + old
    assert file_validation.find_defect(io.BytesIO(whole_file), "m.pt", len(whole_file)) == ""
    for length in range(len(whole_file)):
        assert file_validation.find_defect(io.BytesIO(whole_file[:length]), "m.pt", length), length


def test_a_cut_one_is_passed_over_and_told(folder: Folder) -> None:
    folder.write("a.pt", archive())
    folder.write("b.pt", archive()[:-1])
    folder.write("c.pt", b"")
    assert find(folder.path) == ("a.pt", ("c.pt: it is empty", "b.pt: it is cut: the archive has no end"))


def test_hdf5_shorter_than_it_says_is_cut() -> None:
    for version, head in ((0, bytes([0, 0, 0, 0, 0, 8, 8, 0]) + bytes(8)), (2, bytes([2, 8, 8, 0]))):
        block_ = b"\x89HDF\r\n\x1a\n" + head + bytes(16) + (200).to_bytes(8, "little")
        data = block_.ljust(200, b"\0")
        assert file_validation.find_defect(io.BytesIO(data), "m.h5", 200) is None, version
        for length in range(200):
            assert file_validation.find_defect(io.BytesIO(data[:length]), "m.h5", length), (version, length)


def test_a_tensorflow_checkpoint_is_named_by_its_prefix(folder: Folder) -> None:
    tensorflow(folder, "ckpt-1", 300)
    tensorflow(folder, "ckpt-2", 100, 200)
    assert find(folder.path) == ("ckpt-2", ())
    assert find(folder.path, "tensorflow") == ("ckpt-2", ())
    assert find(folder.path, "torch") == (None, ())


def test_a_tensorflow_index_cut_anywhere_is_not_whole(folder: Folder) -> None:
    tensorflow(folder, "ckpt-1", 300)
    whole = tensorflow_index(300)
    for length in range(len(whole)):
        (folder.path / "ckpt-1.index").write_bytes(whole[:length])
        assert find(folder.path)[0] is None, length


def test_a_tensorflow_data_file_cut_or_missing_is_found_out(folder: Folder) -> None:
    tensorflow(folder, "ckpt-1", 100, 200)
    data = folder.path / "ckpt-1.data-00001-of-00002"
    for length in (0, 1, 199):
        data.write_bytes(b"d" * length)
        assert find(folder.path) == (None, (f"ckpt-1: {data.name} has {length} of 200 bytes",))
    data.unlink()
    assert find(folder.path)[1] == (f"ckpt-1: {data.name} is missing",)
    (folder.path / "ckpt-1.index").unlink()
    assert find(folder.path)[1] == ("ckpt-1: its index is missing",)


def test_temporary_names_are_no_checkpoints(folder: Folder) -> None:
    folder.write("a.pt", archive())
    for name in (".b.pt", "b.pt.tmp", "ckpt-1_temp/part-00000-of-00001.index", "step.orbax-checkpoint-tmp-1/x.pt"):
        folder.write(name, archive())
    assert find(folder.path) == ("a.pt", ())


def test_a_torch_directory_needs_its_table_of_contents_and_all_that_it_names(folder: Folder) -> None:
    folder.write("step-1/__0_0.distcp")
    folder.write("step-1/__1_0.distcp")
    folder.write("step-1/.metadata", pickle.dumps(["__0_0.distcp", "__1_0.distcp"]))
    assert find(folder.path) == ("step-1", ())
    folder.write("step-2/__0_0.distcp")
    assert find(folder.path)[1] == ("step-2: its .metadata, which is written last, is missing",)
    folder.write("step-2/.metadata", pickle.dumps(["__0_0.distcp", "__1_0.distcp"]))
    assert find(folder.path) == ("step-1", ("step-2: __1_0.distcp is missing",))
    folder.write("step-2/.metadata", pickle.dumps(["__0_0.distcp"])[:-1])
    assert find(folder.path)[0] == "step-1"


def test_a_torch_directory_may_be_the_directory_itself(folder: Folder) -> None:
    folder.write("__0_0.distcp")
    folder.write(".metadata", pickle.dumps(["__0_0.distcp"]))
    assert find(folder.path) == ("", ())


def test_a_trainers_directory_is_whole_with_its_state_and_all_shards(folder: Folder) -> None:
    folder.write("checkpoint-10/model.safetensors", safetensors())
    folder.write("checkpoint-10/optimizer.pt", archive())
    folder.write("checkpoint-10/trainer_state.json", "{}")
    folder.write("checkpoint-20/model-1.safetensors", safetensors())
    folder.write("checkpoint-20/model.safetensors.index.json", json.dumps({"weight_map": {"a": "model-2.safetensors"}}))
    assert "trainer_state.json" in find(folder.path)[1][0]
    folder.write("checkpoint-20/trainer_state.json", "{}")
    assert find(folder.path) == ("checkpoint-10", ("checkpoint-20: model-2.safetensors is missing",))
    folder.write("checkpoint-20/model-2.safetensors", safetensors()[:-1])
    assert "model-2.safetensors: it has" in find(folder.path)[1][0]


def test_deepspeed_names_a_whole_one_in_latest(folder: Folder) -> None:
    folder.write("step1/mp_rank_00_model_states.pt", archive())
    assert find(folder.path) == (None, ("step1: no `latest` names it",))
    folder.write("latest", "step1")
    assert find(folder.path) == ("step1", ())
    folder.write("step2/mp_rank_00_model_states.pt", archive())
    assert find(folder.path) == ("step1", ("step2: `latest` does not name it yet",))
    folder.write("latest", "step2")
    assert find(folder.path)[0] == "step2"


def test_a_saved_model_and_a_marked_directory(folder: Folder) -> None:
    folder.write("export/saved_model.pb")
    tensorflow(folder, "export/variables/variables", 50)
    assert find(folder.path) == ("export", ())
    (folder.path / "export/variables/variables.data-00000-of-00001").write_bytes(b"")
    assert find(folder.path)[0] is None
    shutil.rmtree(folder.path / "export")
    folder.write("tree-5/part-0")
    folder.write("tree-5/_SUCCESS")
    assert find(folder.path) == ("tree-5", ())


def test_rules_of_the_user(folder: Folder) -> None:
    folder.write("booster-1.json", "{")
    folder.write("step-1/weights.bin")
    folder.write("step-1/READY")
    folder.write("step-2/weights.bin")
    folder.write("model.bin")
    folder.write("model.bin.done")
    assert find(folder.path, "glob:booster-*.json") == ("booster-1.json", ())
    assert find(folder.path, "glob:step-?") == ("step-2", ())
    assert find(folder.path, "marker:READY") == ("step-1", ("step-2: it has no READY",))
    assert find(folder.path, "marker:.done")[0] == "model.bin"
    assert find(folder.path, "marker:NEVER")[0] is None


def test_what_does_not_tell_is_not_believed(folder: Folder) -> None:
    folder.write("old.pt", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")
    assert find(folder.path) == (None, ("old.pt: its format does not tell whether it is whole: see checkpoint.valid",))


def test_the_name_in_tensorflows_state() -> None:
    assert (
        file_validation.named_by(b'model_checkpoint_path: "ckpt-7"\nall_model_checkpoint_paths: "ckpt-6"\n') == "ckpt-7"
    )
    assert file_validation.named_by(b"") == ""
