"""Tests when the newest stored checkpoint gives way to what a program writes in its place."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from test_checkpoint_discovery import Directory, archive, safetensors, tensorflow
from test_directory_sync import Task

from howdah.checkpoints import directory_lock, discovery
from howdah.checkpoints.directory_snapshot import Stamp
from howdah.checkpoints.directory_sync import UNFINISHED, DirectorySync, store_checkpoints
from howdah.errors import StagingError
from howdah.spec import uris
from howdah.spec.codec import encode
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import NoSpace, Sink
from howdah.storage.local import LocalFileSystem
from howdah.wire.helper_main import answer_request
from howdah.wire.helper_messages import StoreCheckpointsRequest


@pytest.fixture
def chief(tmp_path: Path) -> Task:
    return Task(tmp_path, "chief")


def metadata(ranks: int) -> bytes:
    """What torch.distributed.checkpoint writes last: it names the files of all ranks."""
    return pickle.dumps([f"__{rank}_0.distcp" for rank in range(ranks)])


def test_each_of_several_tasks_stores_its_part_although_all_have_fetched_the_whole(chief: Task) -> None:
    for name, data in (("s/__0_0.distcp", b"1"), ("s/__1_0.distcp", b"1"), ("s/.metadata", metadata(2))):
        chief.write(name, data)
    chief.up()
    chief.write("s/__0_0.distcp", b"2")
    chief.write("s/.metadata", metadata(3))  # the third part is written by another task
    request = StoreCheckpointsRequest(str(chief.path), uris.of_local(chief.shared), is_alone=False, settle_s=0.0)
    assert store_checkpoints(request).skipped == []
    assert (chief.shared / "s/__0_0.distcp").read_bytes() == b"2"
    assert (chief.shared / "s/.metadata").read_bytes() == metadata(3)


def change_while_it_is_copied(chief: Task, monkeypatch: pytest.MonkeyPatch, changing: str) -> list[str]:
    """Let a program write a file again whenever some of it is copied; return a list that gets the names of copies."""
    copy, copied = DirectorySync._copy, list[str]()

    def copy_and_change(sync: DirectorySync, name: str, stamp: Stamp, sink: Sink) -> None:
        copied.append(name)
        with (chief.path / changing).open("ab") as file:
            file.write(b"2\n")
        copy(sync, name, stamp, sink)

    monkeypatch.setattr(DirectorySync, "_copy", copy_and_change)
    return copied


@pytest.mark.parametrize("changing", ["train.log", "metrics.csv", "state.db"])
def test_no_other_file_waits_for_one_that_changes_all_the_time(
    chief: Task, monkeypatch: pytest.MonkeyPatch, changing: str
) -> None:
    tensorflow(Directory(chief.path), "step-1", 100)
    chief.write("checkpoint", b'model_checkpoint_path: "step-1"\n')
    chief.write(changing, b"1\n")
    change_while_it_is_copied(chief, monkeypatch, changing)
    chief.up()
    assert chief.there - {changing} == {"step-1.index", "step-1.data-00000-of-00001", "checkpoint"}
    if changing != "state.db":
        assert (chief.shared / changing).read_bytes().startswith(b"1\n"), "what it had when it was listed"


def test_a_checkpoint_is_replaced_beside_a_file_that_changes_all_the_time(
    chief: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    for data in (b"1", b"2"):
        for name in ("s/shard-1", "s/shard-2", "s/DONE", "s/state.db"):
            chief.write(name, data)
        if data == b"1":
            chief.up()
    copied = change_while_it_is_copied(chief, monkeypatch, "s/state.db")
    chief.up()
    assert {(chief.shared / name).read_bytes() for name in ("s/shard-1", "s/shard-2", "s/DONE")} == {b"2"}
    assert copied.count("s/shard-1") == 1, "what has not changed is not copied again"
    assert not [name for name in chief.there if ".part" in name]


def test_a_copy_in_which_a_file_was_passed_over_stays_marked(chief: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("weights", "state.db"):
        chief.write(name, b"1")
    with monkeypatch.context() as running:
        change_while_it_is_copied(chief, running, "state.db")
        DirectorySync(str(chief.path), uris.of_local(chief.shared), rule=discovery.WHOLE).up(0.0)
    assert chief.there == {"weights", UNFINISHED}
    DirectorySync(str(chief.path), uris.of_local(chief.shared), rule=discovery.WHOLE).up(0.0, last=True)
    assert chief.there == {"weights", "state.db"}


def replace_checkpoint(chief: Task, names: Sequence[str], root: str = "") -> list[str]:
    """Store files, and what a program writes in their place; return what is left out the second time."""
    for data in (b"1", b"2"):
        for name in names:
            chief.write(name, data)
        sync = DirectorySync(str(chief.path), uris.of_local(chief.shared), root=root)
        sync.up(0.0)
    assert {(chief.shared / name).read_bytes() for name in names} == {b"2"}
    return sync.skipped


def test_a_checkpoint_behind_a_link_in_the_working_directory_is_replaced(chief: Task) -> None:
    (chief.path.parent / "run").mkdir()
    chief.path.mkdir()
    (chief.path / "s").symlink_to("../run")
    assert replace_checkpoint(chief, ["s/shard-1", "s/DONE"], root=str(chief.path.parent)) == []


def test_a_checkpoint_is_replaced_although_some_of_it_is_never_stored(chief: Task) -> None:
    (chief.path / "s").mkdir(parents=True)
    (chief.path / "s/vocabulary").symlink_to("/etc/passwd")
    (chief.path / "s/.complete").touch()
    skipped = replace_checkpoint(chief, ["s/shard-1", "s/DONE"])
    assert skipped == ["s/vocabulary: is a link out of the working directory"]


def test_a_checkpoint_of_more_data_files_than_before_is_replaced_at_once(
    chief: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = Directory(chief.path)
    tensorflow(local, "weights", 100)
    chief.up()
    (chief.path / "weights.data-00000-of-00001").unlink()
    tensorflow(local, "weights", 50, 60)
    renamed = list[str]()
    rename = LocalFileSystem.rename

    def rename_and_note(files: LocalFileSystem, old: str, new: str, overwrite: bool = False) -> None:
        renamed.append(uris.name(new))
        rename(files, old, new, overwrite)

    monkeypatch.setattr(LocalFileSystem, "rename", rename_and_note)
    chief.up()
    assert renamed == ["weights.data-00000-of-00002", "weights.data-00001-of-00002", "weights.index"]
    assert chief.there == chief.here


@pytest.mark.parametrize(
    ("names", "other"),
    [
        (["__0_0.distcp", ".metadata"], "run.db"),
        (["saved_model.pb", "variables/part"], "epoch.pt"),
        (["s/shard-1", "s/DONE"], "s/run.db"),
    ],
)
def test_a_checkpoint_is_replaced_beside_a_file_that_is_written_all_the_time(
    chief: Task, names: Sequence[str], other: str
) -> None:
    for name in (other, *names):
        chief.write(name, metadata(1) if name == ".metadata" else archive(b"1"))
    chief.up()
    with (chief.path / other).open("ab") as file:
        file.write(b"2")
        file.flush()
        for name in names:
            chief.write(name, metadata(1) if name == ".metadata" else archive(b"2"))
        skipped = chief.up().skipped
    assert [line.partition(":")[0] for line in skipped] == [other]
    assert (chief.shared / names[0]).read_bytes() == archive(b"2")


@pytest.mark.parametrize(("rule", "mark"), [("", ".done"), ("marker:.done", ".done"), ("marker:.ready", ".ready")])
def test_a_hidden_mark_is_stored_with_the_checkpoint_that_it_marks(chief: Task, rule: str, mark: str) -> None:
    for name in ("s/shard", f"s/{mark}", "s/.hidden"):
        chief.write(name, b"1")
    uri = uris.of_local(chief.shared)
    DirectorySync(str(chief.path), uri, rule=rule).up(0.0)
    assert chief.there == {"s/shard", f"s/{mark}"}
    found = discovery.find(filesystem(uri), uri, rule).checkpoint
    assert found is not None
    assert found.name == "s"


@pytest.mark.parametrize(("rule", "mark"), [("", "s/DONE"), ("marker:.a", "s/.a"), ("marker:.a", "s.a")])
def test_of_files_of_one_moment_the_mark_is_stored_last(
    chief: Task, monkeypatch: pytest.MonkeyPatch, rule: str, mark: str
) -> None:
    store, stored = DirectorySync._store, list[str]()

    def store_and_note(sync: DirectorySync, name: str, stamp: Stamp) -> None:
        stored.append(name)
        store(sync, name, stamp)

    monkeypatch.setattr(DirectorySync, "_store", store_and_note)
    for name in (mark, "s/shard", "t"):
        chief.write(name, b"1")
        os.utime(chief.path / name, (1e9, 1e9))
    DirectorySync(str(chief.path), uris.of_local(chief.shared), rule=rule).up(0.0)
    assert stored == ["s/shard", "t", mark]


def test_only_the_checkpoint_to_go_on_from_is_fetched_and_not_what_completes_others(chief: Task) -> None:
    files = ("model.safetensors", "trainer_state.json")
    shared = Directory(chief.shared)
    for step in (100, 200, 300):
        for name in files[step == 300 :]:  # of the last one the weights are missing
            content = safetensors() if name == files[0] else "{}"
            shared.write(f"checkpoint-{step}/{name}", content)
    shared.write("checkpoint-300/model.safetensors.index.json", '{"weight_map": {"a": "none"}}')
    assert chief.down() == "checkpoint-200"
    assert chief.here == {f"checkpoint-200/{name}" for name in files}


def test_what_is_of_another_kind_makes_way_and_is_kept(chief: Task) -> None:
    (chief.shared / "last.ckpt").mkdir()
    (chief.shared / "last.ckpt/shard").write_text("theirs")
    (chief.shared / "model").write_text("theirs")
    (chief.shared / "best.pt").symlink_to("nothing")
    chief.write("last.ckpt", archive())
    chief.write("model/a/b", b"1")
    chief.write("best.pt", archive())
    chief.up()
    (aside,) = chief.shared.glob(".howdah-before-*/last.ckpt")
    assert (aside / "shard").read_text() == "theirs"
    (aside,) = chief.shared.glob(".howdah-before-*/model")
    assert aside.read_text() == "theirs"
    assert {name for name in chief.there if not name.startswith(".")} == chief.here
    for _ in range(2):  # what is its own makes way, too
        (chief.path / "last.ckpt").unlink()
        chief.write("last.ckpt/shard", b"2")
        chief.up()
        shutil.rmtree(chief.path / "last.ckpt")
        chief.write("last.ckpt", archive(b"3"))
        chief.up()
    assert {name for name in chief.there if not name.startswith(".")} == chief.here


def test_what_a_killed_copy_has_left_is_removed_by_the_next(chief: Task) -> None:
    replace_checkpoint(chief, ["s/shard-1", "s/DONE"])
    old, new, other = ".shard-1.0123abcd.part", ".DONE.0123abce.part", ".mine.part"
    for name in (old, new, other):
        (chief.shared / "s" / name).write_bytes(b"half")
    for name in (old, other):
        os.utime(chief.shared / "s" / name, (time.time() - 4000,) * 2)
    chief.write("s/shard-1", b"3")
    chief.up()
    assert chief.there == {"s/shard-1", "s/DONE", f"s/{new}", f"s/{other}"}, "another may still write the new one"


@pytest.mark.parametrize(
    ("names", "other"),
    [(["s/shard-1", "s/shard-2", "s/DONE"], "s/train.log"), (["__0_0.distcp", "__1_0.distcp", ".metadata"], "run.db")],
)
def test_a_log_that_is_stored_beside_its_parts_does_not_give_a_checkpoint_up(
    chief: Task, names: Sequence[str], other: str
) -> None:
    for name in (other, *names):
        chief.write(name, metadata(2) if name == ".metadata" else b"1")
    chief.up()
    for name in names:
        (chief.path / name).unlink()
    chief.write(names[0], b"2")
    chief.write(other, b"1, 2")
    chief.up()
    assert {(chief.shared / name).read_bytes() for name in names[:2]} == {b"1"}
    assert (chief.shared / names[2]).exists()
    assert (chief.shared / other).read_bytes() == b"1, 2"


@pytest.mark.parametrize("is_first", [False, True])
def test_what_changes_faster_than_it_is_copied_is_told_and_keeps_nothing_else_waiting(
    chief: Task, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    local = Directory(chief.path)
    chief.write("notes", b"")
    if not is_first:
        tensorflow(local, "weights", 100)
        chief.up()
        chief.write("notes", b"more")
    tensorflow(local, "weights", 60)
    copy = DirectorySync._copy

    def copy_and_change(sync: DirectorySync, name: str, stamp: Stamp, sink: Sink) -> None:
        copy(sync, name, stamp, sink)
        tensorflow(local, "weights", 60)

    with monkeypatch.context() as training:
        training.setattr(DirectorySync, "_copy", copy_and_change)
        with pytest.raises(StagingError, match="is written in place of the last one changes faster than it can be"):
            chief.up()
    assert (chief.shared / "notes").read_bytes() == (b"" if is_first else b"more")
    assert is_first or (chief.shared / "weights.data-00000-of-00001").stat().st_size == 100
    assert "weights.index" not in chief.there or not is_first
    assert not [name for name in chief.there if ".part" in name]
    chief.up()
    assert (chief.shared / "weights.data-00000-of-00001").stat().st_size == 60


def test_each_of_several_tasks_removes_what_it_has_stored_itself(tmp_path: Path, chief: Task) -> None:
    worker = Task(tmp_path, "worker", replace=False)
    for step in (1, 2, 3):
        for task, name in ((worker, "__1_0.distcp"), (chief, "__0_0.distcp"), (chief, ".metadata")):
            task.write(f"step-{step}/{name}", metadata(2))
        for task in (chief, worker):
            task.up()
    late = Task(tmp_path, "late", replace=False)
    late.down()
    late.write("mine", b"")
    for task in (chief, worker, late):
        shutil.rmtree(task.path / "step-1", ignore_errors=True)
        shutil.rmtree(task.path / "step-3", ignore_errors=True)
    for task in (late, worker):
        task.up()
    assert {name for name in chief.there if "__1" in name} == {"step-2/__1_0.distcp", "step-3/__1_0.distcp"}
    chief.up()
    parts = ("__0_0.distcp", "__1_0.distcp", ".metadata")
    assert chief.there == {"mine", *(f"step-{step}/{name}" for step in (2, 3) for name in parts)}


def write_trainers_checkpoint(chief: Task, step: int, *names: str) -> None:
    """Write a checkpoint of Transformers' Trainer."""
    contents = {"model.safetensors": safetensors(), "optimizer.pt": archive()[:-5], "trainer_state.json": b"{}"}
    for name in names or ("model.safetensors", "trainer_state.json"):
        chief.write(f"run/checkpoint-{step}/{name}", contents[name])


@pytest.mark.parametrize(("age_s", "names"), [(1000, ["optimizer.pt"]), (5000, ["model.safetensors", "optimizer.pt"])])
def test_a_save_that_has_failed_does_not_hold_up_later_ones(chief: Task, age_s: int, names: Sequence[str]) -> None:
    chief.clock = time.time() - age_s
    chief.write("run/model.safetensors", safetensors())
    write_trainers_checkpoint(chief, 100)
    chief.up()
    write_trainers_checkpoint(chief, 200, *names)
    write_trainers_checkpoint(chief, 300)
    shutil.rmtree(chief.path / "run/checkpoint-100")
    chief.up()
    assert "run/checkpoint-300/trainer_state.json" in chief.there
    assert chief.there == chief.here - {"run/checkpoint-200/optimizer.pt"}


def test_what_a_program_that_has_ended_left_unfinished_holds_up_nothing_else(chief: Task) -> None:
    for data in (b"1", b"2"):
        for name in ("s/shard-1", "s/DONE"):
            chief.write(name, data)
        if data == b"1":
            chief.up()
    with_comment = archive()[:-2] + b"\x03\x00abc"  # for all that is known here it may have been cut
    chief.write("s/code.zip", with_comment)
    chief.up()
    assert (chief.shared / "s/shard-1").read_bytes() == b"1", "the program may still write the rest"
    chief.mirror.up(0.0, last=True)
    assert (chief.shared / "s/shard-1").read_bytes() == b"2"
    for name in ("s/DONE", "s/shard-1"):
        chief.write(name, b"3")
    chief.write("s/part.pt", archive())
    chief.up()
    for name, data in (("s/shard-1", b"4"), ("s/part.pt", archive()[:-5]), ("s/DONE", b"4")):
        chief.write(name, data)
    chief.mirror.up(0.0, last=True)
    assert (chief.shared / "s/shard-1").read_bytes() == b"3", "one that was there before is missed"


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_checkpoint_of_another_format_takes_the_place_of_one_that_was_given_up(chief: Task, is_whole: bool) -> None:
    for name, data in (("best/config.json", b"{}"), ("best/model.safetensors", safetensors())):
        chief.write(name, data)
    chief.up()
    old = chief.there
    shutil.rmtree(chief.path / "best")
    chief.write("best/notes.txt", b"")
    if is_whole:
        chief.write("best/model.pt", archive())
    chief.up()
    assert chief.there == old, "the program may still write the rest"
    chief.mirror.up(0.0, last=True)
    assert chief.there == (chief.here if is_whole else old)


def test_a_file_that_is_cut_gives_no_checkpoint_up(chief: Task) -> None:
    for name, data in (("best/config.json", b"{}"), ("best/model.safetensors", safetensors())):
        chief.write(name, data)
    chief.up()
    old = chief.there
    shutil.rmtree(chief.path / "best")
    for name, data in (("best/optimizer.pt", archive()), ("best/model.pt", archive()[:-5])):
        chief.write(name, data)
    chief.mirror.up(0.0, last=True)
    assert chief.there == old


def test_what_is_uploaded_of_an_output_among_the_checkpoints_stays(chief: Task) -> None:
    replace_checkpoint(chief, ["s/shard-1", "s/DONE"])
    uploads = {f"{directory}/.howdah-job-0/w.0/.big.0123abcd.part" for directory in (".", "s", "other")}
    uploads.add(".howdah-job-0-replaced/.big.0123abcd.part")
    for name in uploads:
        path = chief.shared / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
        os.utime(path, (time.time() - 4000,) * 2)
    chief.write("s/shard-1", b"3")
    chief.up()
    assert {os.path.normpath(name) for name in uploads} <= chief.there


def test_what_a_killed_copy_has_left_is_removed_at_the_end_although_nothing_was_replaced(chief: Task) -> None:
    left = chief.shared / ".step-0.pt.0123abcd.part"
    left.write_bytes(b"half")
    os.utime(left, (time.time() - 4000,) * 2)
    chief.write("step-1.pt", archive())
    chief.up()
    chief.mirror.up(0.0, last=True)
    assert chief.there == {"step-1.pt"}


def test_what_was_set_aside_is_told_although_not_all_could_be_stored(
    chief: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    (chief.shared / "notes").write_text("theirs")
    directory_lock.acquire(LocalFileSystem(), uris.of_local(chief.shared), "job-1")
    os.utime(chief.shared / "notes", (1e9, 1e9))
    for name in ("notes", "weights"):
        chief.write(name, b"1")
    copy = DirectorySync._copy

    def fail(sync: DirectorySync, name: str, stamp: Stamp, sink: Sink) -> None:
        if name == "weights":
            raise NoSpace("the quota is used up")
        copy(sync, name, stamp, sink)

    monkeypatch.setattr(DirectorySync, "_copy", fail)
    request = StoreCheckpointsRequest(str(chief.path), uris.of_local(chief.shared), settle_s=0.0)
    answer = answer_request({"up": store_checkpoints}, ["up"], json.dumps(encode(request)).encode())
    assert answer["error"] == "the quota is used up"
    assert "ok" not in answer
    (told,) = answer["told"]
    assert "what was there before the job is kept in" in told
