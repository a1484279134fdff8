"""Tests finding the newest complete checkpoint, of each library's format and by the user's own rule."""

from __future__ import annotations

import errno
import io
import json
import os
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from howdah.checkpoints import discovery, file_validation
from howdah.checkpoints import tensorflow_index as bundle
from howdah.spec import uris
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Entry


def find(directory: Path, rule: str = "") -> tuple[str | None, tuple[str, ...]]:
    found = discovery.find(filesystem("file:///"), uris.of_local(directory), rule)
    return (found.checkpoint.name if found.checkpoint else None), found.skipped


class Directory:
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
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "checkpoints")


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


def tensorflow(directory: Directory, prefix: str, *sizes: int) -> None:
    for shard, size in enumerate(sizes):
        directory.write(f"{prefix}.data-{shard:05d}-of-{len(sizes):05d}", b"d" * size)
    directory.write(f"{prefix}.index", tensorflow_index(*sizes))


def safetensors(size: int = 8) -> bytes:
    header = json.dumps({"__metadata__": {}, "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, size]}}).encode()
    return len(header).to_bytes(8, "little") + header + b"w" * size


def test_nothing_is_found_where_nothing_is(directory: Directory) -> None:
    assert find(directory.path) == (None, ())
    directory.write("notes.txt")
    directory.write("config.json", "{}")
    assert find(directory.path) == (None, ())


def test_the_newest_by_time_is_taken(directory: Directory) -> None:
    for number in (100, 5, 6):  # a training that began anew in the same place
        directory.write(f"epoch-{number}.pt", archive())
    assert find(directory.path) == ("epoch-6.pt", ())


def test_equally_old_ones_go_by_number(directory: Directory) -> None:
    for number in (9, 10):
        path = directory.write(f"epoch-{number}.pt", archive())
        os.utime(path, (directory.clock, 1_700_000_000))
    assert find(directory.path)[0] == "epoch-10.pt"


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


def test_a_cut_one_is_passed_over_and_told(directory: Directory) -> None:
    directory.write("a.pt", archive())
    directory.write("b.pt", archive()[:-1])
    directory.write("c.pt", b"")
    assert find(directory.path) == ("a.pt", ("c.pt: it is empty", "b.pt: it is cut: the archive has no end"))


def test_hdf5_shorter_than_it_says_is_cut() -> None:
    for version, head in ((0, bytes([0, 0, 0, 0, 0, 8, 8, 0]) + bytes(8)), (2, bytes([2, 8, 8, 0]))):
        block_ = b"\x89HDF\r\n\x1a\n" + head + bytes(16) + (200).to_bytes(8, "little")
        data = block_.ljust(200, b"\0")
        assert file_validation.find_defect(io.BytesIO(data), "m.h5", 200) is None, version
        for length in range(200):
            assert file_validation.find_defect(io.BytesIO(data[:length]), "m.h5", length), (version, length)


def test_a_tensorflow_checkpoint_is_named_by_its_prefix(directory: Directory) -> None:
    tensorflow(directory, "ckpt-1", 300)
    tensorflow(directory, "ckpt-2", 100, 200)
    assert find(directory.path) == ("ckpt-2", ())
    assert find(directory.path, "tensorflow") == ("ckpt-2", ())
    assert find(directory.path, "torch") == (None, ())


def test_a_tensorflow_index_cut_anywhere_is_not_whole(directory: Directory) -> None:
    tensorflow(directory, "ckpt-1", 300)
    whole = tensorflow_index(300)
    for length in range(len(whole)):
        (directory.path / "ckpt-1.index").write_bytes(whole[:length])
        assert find(directory.path)[0] is None, length


def test_a_tensorflow_data_file_cut_or_missing_is_found_out(directory: Directory) -> None:
    tensorflow(directory, "ckpt-1", 100, 200)
    data = directory.path / "ckpt-1.data-00001-of-00002"
    for length in (0, 1, 199):
        data.write_bytes(b"d" * length)
        assert find(directory.path) == (None, (f"ckpt-1: {data.name} has {length} of 200 bytes",))
    data.unlink()
    assert find(directory.path)[1] == (f"ckpt-1: {data.name} is missing",)
    (directory.path / "ckpt-1.index").unlink()
    assert find(directory.path)[1] == ("ckpt-1: its index is missing",)


def test_temporary_names_are_no_checkpoints(directory: Directory) -> None:
    directory.write("a.pt", archive())
    for name in (".b.pt", "b.pt.tmp", "ckpt-1_temp/part-00000-of-00001.index", "step.orbax-checkpoint-tmp-1/x.pt"):
        directory.write(name, archive())
    assert find(directory.path) == ("a.pt", ())


def test_a_torch_directory_needs_its_table_of_contents_and_all_that_it_names(directory: Directory) -> None:
    directory.write("step-1/__0_0.distcp")
    directory.write("step-1/__1_0.distcp")
    directory.write("step-1/.metadata", pickle.dumps(["__0_0.distcp", "__1_0.distcp"]))
    assert find(directory.path) == ("step-1", ())
    directory.write("step-2/__0_0.distcp")
    assert find(directory.path)[1] == ("step-2: its .metadata, which is written last, is missing",)
    directory.write("step-2/.metadata", pickle.dumps(["__0_0.distcp", "__1_0.distcp"]))
    assert find(directory.path) == ("step-1", ("step-2: __1_0.distcp is missing",))
    directory.write("step-2/.metadata", pickle.dumps(["__0_0.distcp"])[:-1])
    assert find(directory.path)[0] == "step-1"


def test_a_torch_directory_may_be_the_directory_itself(directory: Directory) -> None:
    directory.write("__0_0.distcp")
    directory.write(".metadata", pickle.dumps(["__0_0.distcp"]))
    assert find(directory.path) == ("", ())


def test_a_trainers_directory_is_whole_with_its_state_and_all_shards(directory: Directory) -> None:
    directory.write("checkpoint-10/model.safetensors", safetensors())
    directory.write("checkpoint-10/optimizer.pt", archive())
    directory.write("checkpoint-10/trainer_state.json", "{}")
    directory.write("checkpoint-20/model-1.safetensors", safetensors())
    directory.write(
        "checkpoint-20/model.safetensors.index.json", json.dumps({"weight_map": {"a": "model-2.safetensors"}})
    )
    assert "trainer_state.json" in find(directory.path)[1][0]
    directory.write("checkpoint-20/trainer_state.json", "{}")
    assert find(directory.path) == ("checkpoint-10", ("checkpoint-20: model-2.safetensors is missing",))
    directory.write("checkpoint-20/model-2.safetensors", safetensors()[:-1])
    assert "model-2.safetensors: it has" in find(directory.path)[1][0]


def test_deepspeed_names_a_whole_one_in_latest(directory: Directory) -> None:
    directory.write("step1/mp_rank_00_model_states.pt", archive())
    assert find(directory.path) == (None, ("step1: no `latest` names it",))
    directory.write("latest", "step1")
    assert find(directory.path) == ("step1", ())
    directory.write("step2/mp_rank_00_model_states.pt", archive())
    assert find(directory.path) == ("step1", ("step2: `latest` does not name it yet",))
    directory.write("latest", "step2")
    assert find(directory.path)[0] == "step2"


def test_a_saved_model_and_a_marked_directory(directory: Directory) -> None:
    directory.write("export/saved_model.pb")
    tensorflow(directory, "export/variables/variables", 50)
    assert find(directory.path) == ("export", ())
    (directory.path / "export/variables/variables.data-00000-of-00001").write_bytes(b"")
    assert find(directory.path)[0] is None
    shutil.rmtree(directory.path / "export")
    directory.write("tree-5/part-0")
    directory.write("tree-5/_SUCCESS")
    assert find(directory.path) == ("tree-5", ())


def test_rules_of_the_user(directory: Directory) -> None:
    directory.write("booster-1.json", "{")
    directory.write("step-1/weights.bin")
    directory.write("step-1/READY")
    directory.write("step-2/weights.bin")
    directory.write("model.bin")
    directory.write("model.bin.done")
    assert find(directory.path, "glob:booster-*.json") == ("booster-1.json", ())
    assert find(directory.path, "glob:step-?") == ("step-2", ())
    assert find(directory.path, "marker:READY") == ("step-1", ("step-2: it has no READY",))
    assert find(directory.path, "marker:.done")[0] == "model.bin"
    assert find(directory.path, "marker:NEVER")[0] is None


def test_what_does_not_tell_is_not_believed(directory: Directory) -> None:
    directory.write("old.pt", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")
    assert find(directory.path) == (
        None,
        ("old.pt: its format does not tell whether it is whole: see checkpoint.valid",),
    )


def test_the_name_in_tensorflows_state() -> None:
    assert (
        file_validation.named_by(b'model_checkpoint_path: "ckpt-7"\nall_model_checkpoint_paths: "ckpt-6"\n') == "ckpt-7"
    )
    assert file_validation.named_by(b"") == ""


def test_what_lies_behind_a_link_is_no_checkpoint_of_its_own(directory: Directory) -> None:
    """A link may lead to data, and one named `latest` to a checkpoint that has a name."""
    old = Directory(directory.path / "epoch")
    old.write("DONE")
    data = Directory(directory.path.parent / "data")
    data.clock += 100
    data.write("shard.tar", archive())
    (old.path / "data").symlink_to(data.path)
    (directory.path / "latest").symlink_to("epoch")
    (directory.path / "shards").symlink_to(data.path)
    tree = discovery.CheckpointTree(filesystem("file:///"), uris.of_local(directory.path))
    assert [each.files for each in discovery.candidates(tree)] == [("epoch/DONE",)]
    tree.follow("epoch")
    (found,) = discovery.candidates(tree)
    assert (found.name, sorted(found.files)) == ("epoch", ["epoch/DONE", "epoch/data/shard.tar"])
    for rule in ("glob:epoch", "marker:DONE", "torch"):
        assert find(directory.path, rule)[0] == (None if rule == "torch" else "epoch")


def test_a_directory_that_holds_no_file_of_a_program_is_no_checkpoint(directory: Directory) -> None:
    (directory.path / "empty").mkdir(parents=True)
    for name in (
        ".howdah-job-1-0/worker-0/part",
        ".howdah-lease",
        ".howdah-job-1-0-saves/1",
        ".howdah-job-1-0-removed",
    ):
        directory.write(name)
    assert find(directory.path, "all") == (None, ())


def test_a_search_does_not_list_what_links_lead_to(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Directory(directory.path.parent / "data")
    data.write("shard.tar", archive())
    directory.write("mine.pt", archive())
    (directory.path / "data").symlink_to(data.path)
    (directory.path / "circle").symlink_to("circle")
    listed, scan = set[str](), os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.add(os.path.realpath(path)) or scan(path))
    for rule in ("", "all"):
        assert find(directory.path, rule)[0] is not None
    assert listed == {str(directory.path)}


def test_a_directory_behind_a_link_that_cannot_be_listed_is_left_out(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Directory(directory.path.parent / "data")
    data.write("lost+found/block")
    data.write("shard.tar", archive())
    directory.write("mine.pt", archive())
    (directory.path / "data").symlink_to(data.path)
    scan = os.scandir

    def refuse(path: str) -> Any:
        if path.endswith("lost+found"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    tree = discovery.CheckpointTree(filesystem("file:///"), uris.of_local(directory.path), "all")
    tree.follow("")
    assert sorted(tree.entries) == ["data/shard.tar", "mine.pt"]
    assert tree.left_out == {"data/lost+found": "permission denied"}


@pytest.mark.parametrize("pattern", ["step-12:*.json", "step-*", "step-12%3A*"])
def test_a_rule_finds_the_names_that_a_program_has_given(pattern: str) -> None:
    """HDFS takes no colon: it is stored as %3A, and comes back."""
    uri = "hdfs://nn/checkpoints"
    entry = Entry(f"{uri}/step-12%3A30.json", 1, 1)
    tree = discovery.CheckpointTree(filesystem("file:///"), uri, f"glob:{pattern}", [entry])
    assert [each.name for each in discovery.candidates(tree, f"glob:{pattern}")] == ["step-12%3A30.json"]
