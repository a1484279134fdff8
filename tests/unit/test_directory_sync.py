"""Tests synchronising checkpoints with storage: what is fetched and stored, in which order, and never overwritten."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from test_checkpoint_discovery import Directory, archive, tensorflow

from howdah.checkpoints import directory_lock, discovery
from howdah.checkpoints.directory_snapshot import Stamp
from howdah.checkpoints.directory_sync import UNFINISHED, DirectorySync
from howdah.checkpoints.empty_directories import EMPTY
from howdah.checkpoints.known_files import MEMORY
from howdah.errors import StagingError
from howdah.spec import uris
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Sink
from howdah.storage.local import LocalFileSystem


class Task:
    """A task with a directory of its own."""

    def __init__(self, directory: Path, name: str, replace: bool = True) -> None:
        self.path, self.shared, self.replace = directory / name, directory / "shared", replace
        self.shared.mkdir(exist_ok=True)
        self.clock = time.time() - 1000.0

    @property
    def mirror(self) -> DirectorySync:
        return DirectorySync(str(self.path), uris.of_local(self.shared), self.replace)

    def write(self, name: str, data: bytes) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.clock += 1
        os.utime(path, (self.clock, self.clock))

    def up(self) -> DirectorySync:
        mirror = self.mirror
        mirror.up(0.0)
        return mirror

    def down(self) -> str:
        """Fetch the newest whole one; its name."""
        shared = uris.of_local(self.shared)
        found = discovery.find(filesystem(shared), shared).checkpoint
        name = found.name if found else ""
        self.mirror.down(uris.join(shared, name) if found else "")
        return name

    @property
    def there(self) -> set[str]:
        return {str(path.relative_to(self.shared)) for path in self.shared.rglob("*") if path.is_file()}

    @property
    def here(self) -> set[str]:
        found = {str(path.relative_to(self.path)) for path in self.path.rglob("*") if path.is_file()}
        return found - {MEMORY}


class Watched(DirectorySync):
    """Looks what somebody who came after each file would go on from."""

    def __init__(self, path: str, uri: str) -> None:
        super().__init__(path, uri)
        self.order: list[str] = []
        self.newest: list[str] = []

    def _store(self, name: str, stamp: Stamp) -> None:
        super()._store(name, stamp)
        self.order.append(name)
        found = discovery.find(self.fs, self.uri).checkpoint
        self.newest.append(found.name if found else "")


@pytest.fixture
def chief(tmp_path: Path) -> Task:
    return Task(tmp_path, "chief")


def test_what_is_written_is_stored_and_what_changed_is_stored_again(chief: Task) -> None:
    chief.write("a.pt", archive(b"1"))
    assert chief.up().files == 1
    assert chief.up().files == 0
    changed = archive(b"2")
    chief.write("a.pt", changed)
    chief.write("sub/b.pt", archive())
    assert chief.up().files == 2
    assert (chief.shared / "a.pt").read_bytes() == changed


def test_half_a_file_is_not_stored(chief: Task) -> None:
    chief.write("a.pt", archive()[:-3])
    mirror = chief.up()
    assert chief.there == set()
    assert mirror.skipped == ["a.pt: it is cut: the archive has no end"]


def test_the_newest_and_what_names_it_is_fetched_with_its_time(tmp_path: Path, chief: Task) -> None:
    shared = Directory(chief.shared)
    tensorflow(shared, "ckpt-1", 100)
    tensorflow(shared, "ckpt-2", 100)
    shared.write("checkpoint", 'model_checkpoint_path: "ckpt-2"\n')
    assert chief.down() == "ckpt-2"
    assert chief.here == {"checkpoint", "ckpt-2.index", "ckpt-2.data-00000-of-00001"}
    assert (chief.path / "ckpt-2.index").stat().st_mtime == (chief.shared / "ckpt-2.index").stat().st_mtime
    assert chief.up().files == 0


def test_tensorflows_own_search_is_led_to_the_whole_one(chief: Task) -> None:
    shared = Directory(chief.shared)
    tensorflow(shared, "ckpt-1", 100)
    shared.write("ckpt-2.index", b"half")
    shared.write("checkpoint", 'model_checkpoint_path: "ckpt-2"\n')
    assert chief.down() == "ckpt-1"
    assert (chief.path / "checkpoint").read_text().startswith('model_checkpoint_path: "ckpt-1"\n')


def test_nothing_there_makes_an_empty_directory(chief: Task) -> None:
    assert chief.down() == ""
    assert chief.path.is_dir()


def test_a_file_overwritten_half_is_fetched_again(chief: Task) -> None:
    chief.write("a.pt", archive(b"good"))
    chief.up()
    chief.write("a.pt", archive(b"good")[:-5])
    assert chief.down() == "a.pt"
    assert (chief.path / "a.pt").read_bytes() == archive(b"good")


def test_what_the_program_removes_is_removed_there_but_nothing_else(chief: Task) -> None:
    (chief.shared / "theirs.pt").write_bytes(archive())
    for number in range(3):
        chief.write(f"epoch-{number}.pt", archive())
    chief.up()
    (chief.path / "epoch-0.pt").unlink()
    chief.up()
    assert chief.there == {"theirs.pt", "epoch-1.pt", "epoch-2.pt"}
    for name in ("epoch-1.pt", "epoch-2.pt"):
        (chief.path / name).unlink()
    chief.up()
    assert chief.there == {"theirs.pt", "epoch-1.pt", "epoch-2.pt"}, "an emptied directory empties nothing"


@pytest.mark.parametrize("backup", ["last.pt~", "last.pt.tmp", ".last.pt", "_temporary/last.pt"])
def test_a_checkpoint_that_is_renamed_to_what_is_never_stored_stays_until_the_next(chief: Task, backup: str) -> None:
    chief.write("last.pt", archive(b"1"))
    chief.write("notes.txt", b"epoch 1")
    chief.up()
    (chief.path / backup).parent.mkdir(exist_ok=True)
    (chief.path / "last.pt").rename(chief.path / backup)
    assert chief.up().told == []
    mirror = chief.mirror
    mirror.up(0.0, last=True)
    uri = uris.of_local(chief.shared)
    assert [str(line) for line in mirror.reply().told] == [
        f"what the program has removed stays in {uri}, for no newer whole checkpoint is there: last.pt"
    ]
    assert chief.there == {"last.pt", "notes.txt"}
    assert chief.down() == "last.pt"
    (chief.path / "last.pt").unlink()
    chief.write("next.pt", archive(b"2"))
    chief.up()
    assert chief.there == {"next.pt", "notes.txt"}, "a newer one is there"


def test_the_last_checkpoint_stays_while_the_next_is_half_written(chief: Task) -> None:
    for name in ("step-1/shard-1", "step-1/shard-2", "step-1/DONE"):
        chief.write(name, b"1")
    chief.up()
    shutil.rmtree(chief.path / "step-1")
    chief.write("step-2/shard-1", b"2")
    chief.up()
    assert chief.there == {"step-1/shard-1", "step-1/shard-2", "step-1/DONE", "step-2/shard-1"}
    chief.write("step-2/shard-2", b"2")
    chief.write("step-2/DONE", b"2")
    chief.up()
    assert chief.there == {"step-2/shard-1", "step-2/shard-2", "step-2/DONE"}


def test_the_last_file_stays_while_the_next_is_cut(chief: Task) -> None:
    chief.write("step-1.pt", archive(b"1"))
    chief.up()
    (chief.path / "step-1.pt").unlink()
    chief.write("step-2.pt", archive(b"2")[:-3])
    chief.up()
    assert chief.there == {"step-1.pt"}
    chief.write("step-2.pt", archive(b"2"))
    chief.up()
    assert chief.there == {"step-2.pt"}


def test_who_keeps_the_last_three_checkpoints_has_no_more_there(chief: Task) -> None:
    for step in range(6):
        chief.write(f"step-{step}.pt", archive(b"%d" % step))
        if step >= 3:
            (chief.path / f"step-{step - 3}.pt").unlink()
        chief.up()
    assert chief.there == {"step-3.pt", "step-4.pt", "step-5.pt"}


def test_a_file_of_no_known_format_stays_while_its_successor_may_be_on_its_way(chief: Task) -> None:
    chief.write("step-1.weights", b"1")
    chief.write("notes", b"")
    chief.up()
    (chief.path / "step-1.weights").unlink()
    chief.write("step-2.weights.tmp", b"2")
    chief.up()
    assert chief.there == {"step-1.weights", "notes"}
    (chief.path / "step-2.weights.tmp").rename(chief.path / "step-2.weights")
    chief.up()
    assert chief.there == {"step-2.weights", "notes"}


def write_anew_in_its_place(chief: Task, names: Sequence[str]) -> None:
    """Store a checkpoint of three parts, and write some files of the next one in its place."""
    for name in ("s/shard-1", "s/shard-2", "s/shard-3", "s/DONE"):
        chief.write(name, b"1")
    chief.up()
    shutil.rmtree(chief.path / "s")
    for name in names:
        chief.write(name, b"2")


def test_a_checkpoint_stays_until_the_one_that_is_written_in_its_place_is_whole(chief: Task) -> None:
    write_anew_in_its_place(chief, ["s/shard-1", "s/shard-2"])
    chief.write("notes", b"")
    first = chief.up()
    assert first.skipped == [
        f"s/shard-{number}: belongs to a checkpoint that is not whole, so the earlier one stays" for number in (1, 2)
    ]
    mirror = chief.mirror
    mirror.up(0.0, last=True)
    uri = uris.of_local(chief.shared)
    assert [str(line) for line in mirror.reply().told] == [
        f"what the program has removed stays in {uri}, for no newer whole checkpoint is there: s/shard-3, s/DONE"
    ]
    assert {(chief.shared / name).read_bytes() for name in ("s/shard-1", "s/shard-2", "s/shard-3", "s/DONE")} == {b"1"}
    assert (chief.shared / "notes").exists(), "what is no part of it waits for nothing"
    chief.write("s/DONE", b"2")
    chief.up()
    assert chief.there == {"s/shard-1", "s/shard-2", "s/DONE", "notes"}, "no shard of another moment"
    assert {(chief.shared / name).read_bytes() for name in ("s/shard-1", "s/shard-2", "s/DONE")} == {b"2"}


@pytest.mark.parametrize("broken", ["s/shard-1", "s/shard-2", "s/DONE"])
def test_a_checkpoint_is_replaced_all_at_once_or_not_at_all(
    chief: Task, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_anew_in_its_place(chief, ["s/shard-1", "s/shard-2", "s/DONE"])
    kept, copy = chief.there, DirectorySync._copy

    def copy_some(sync: DirectorySync, name: str, stamp: Stamp, sink: Sink) -> None:
        copy(sync, name, stamp, sink)
        if name == broken:
            raise StagingError("the connection broke")

    with monkeypatch.context() as broken_off:
        broken_off.setattr(DirectorySync, "_copy", copy_some)
        with pytest.raises(StagingError):
            chief.up()
    assert chief.there == kept
    assert {(chief.shared / name).read_bytes() for name in kept} == {b"1"}
    chief.up()
    assert chief.there == {"s/shard-1", "s/shard-2", "s/DONE"}


def test_weights_that_tensorflow_writes_to_the_same_prefix_are_replaced_together(
    chief: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = Directory(chief.path)
    local.clock = int(time.time()) - 1000
    tensorflow(local, "weights", 100)
    local.write("train.log", "step 1\n")
    chief.up()
    tensorflow(local, "weights", 60)
    local.write("train.log", "step 1\nstep 2\n")
    renamed = list[set[str]]()
    rename = LocalFileSystem.rename

    def rename_and_list(files: LocalFileSystem, old: str, new: str, overwrite: bool = False) -> None:
        renamed.append({name for name in chief.there if ".part" in name})
        rename(files, old, new, overwrite)

    monkeypatch.setattr(LocalFileSystem, "rename", rename_and_list)
    chief.up()
    assert [len(beside) for beside in renamed] == [2, 1, 1], "both parts are there before the first gets its name"
    assert chief.down() == "weights"
    assert chief.there == chief.here


def test_a_part_of_a_checkpoint_that_other_tasks_store_to_is_stored_by_itself(tmp_path: Path, chief: Task) -> None:
    worker = Task(tmp_path, "worker", replace=False)
    for task, name in ((chief, "s/shard-1"), (worker, "s/shard-2"), (chief, "s/DONE")):
        task.write(name, b"1")
        task.up()
    worker.write("s/shard-2", b"2")
    worker.up()
    assert (chief.shared / "s/shard-2").read_bytes() == b"2"


def test_a_checkpoint_that_changes_while_it_is_copied_is_copied_again(
    chief: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_anew_in_its_place(chief, ["s/shard-1", "s/shard-2", "s/DONE"])
    copy, changes = DirectorySync._copy, [b"3"]

    def copy_while_it_changes(sync: DirectorySync, name: str, stamp: Stamp, sink: Sink) -> None:
        copy(sync, name, stamp, sink)
        if name == "s/shard-1" and changes:
            chief.write("s/shard-2", changes.pop())

    monkeypatch.setattr(DirectorySync, "_copy", copy_while_it_changes)
    chief.up()
    assert (chief.shared / "s/shard-2").read_bytes() == b"3"
    assert chief.there == {"s/shard-1", "s/shard-2", "s/DONE"}


def test_what_somebody_has_removed_there_is_stored_again_at_the_end(chief: Task, tmp_path: Path) -> None:
    names = {"s/shard-1", "s/shard-2", "s/DONE", "notes"}
    for name in names:
        chief.write(name, b"1")
    chief.up()
    shutil.rmtree(chief.shared / "s")
    chief.write("s/shard-1", b"2")
    mirror = chief.mirror
    mirror.up(0.0, last=True)
    assert chief.there == names
    (line,) = map(str, mirror.reply().told)
    told, _, files = line.rpartition(": ")
    assert told == f"stored again, for somebody has removed it from {uris.of_local(chief.shared)}"
    assert set(files.split(", ")) == names - {"notes"}
    worker = Task(tmp_path, "worker-1", replace=False)
    worker.down()
    (chief.shared / "s/shard-2").unlink()
    worker.mirror.up(0.0, last=True)
    assert "s/shard-2" not in chief.there, "what another task has fetched, it does not bring back"


def fetch_linked_checkpoint(task: Task, place: Path) -> None:
    """Let a checkpoint be there a part of which is at `place`, and fetch it."""
    place.mkdir()
    (place / "opt.bin").write_text("weights")
    (task.shared / "step-1").mkdir()
    (task.shared / "step-1/DONE").touch()
    (task.shared / "step-1/lnk").symlink_to(place)
    assert task.down() == "step-1"


def test_what_lies_behind_a_link_of_the_last_checkpoint_stays_with_it(chief: Task, tmp_path: Path) -> None:
    fetch_linked_checkpoint(chief, tmp_path / "real")
    shutil.rmtree(chief.path / "step-1")
    chief.write("notes", b"")
    chief.up()
    assert (chief.shared / "step-1/lnk/opt.bin").exists()
    chief.write("step-2/DONE", b"")
    chief.up()
    assert chief.there == {"step-2/DONE", "notes"}
    assert (tmp_path / "real/opt.bin").exists()


def test_what_lies_behind_a_link_there_is_not_missing(chief: Task, tmp_path: Path) -> None:
    fetch_linked_checkpoint(chief, tmp_path / "real")
    mirror = chief.mirror
    mirror.up(0.0, last=True)
    assert mirror.reply().told == ()
    assert (chief.shared / "step-1/lnk").is_symlink()


def test_interrupted_anywhere_the_newest_there_is_whole(chief: Task) -> None:
    """Stored one after another, and the file that names a checkpoint after it: any beginning of the row is fine."""
    local = Directory(chief.path)
    local.clock = int(time.time()) - 1000
    tensorflow(local, "ckpt-1", 100)
    local.write("checkpoint", 'model_checkpoint_path: "ckpt-1"\n')
    chief.up()
    tensorflow(local, "ckpt-2", 50, 60)
    local.write("checkpoint", 'model_checkpoint_path: "ckpt-2"\n')
    mirror = Watched(str(chief.path), uris.of_local(chief.shared))
    mirror.up(0.0)
    assert mirror.order[-2:] == ["ckpt-2.index", "checkpoint"]
    assert mirror.newest == ["ckpt-1", "ckpt-1", "ckpt-2", "ckpt-2"]


def test_another_tasks_files_are_left_alone_unless_one_leads(tmp_path: Path, chief: Task) -> None:
    worker = Task(tmp_path, "worker-1", replace=False)
    chief.write("model.pt", archive(b"chief"))
    chief.up()
    worker.write("model.pt", archive(b"worker"))
    worker.write("rank-1.pt", archive(b"own"))
    mirror = worker.up()
    assert mirror.skipped == []
    assert (worker.shared / "model.pt").read_bytes() == archive(b"chief")
    worker.write("rank-1.pt", archive(b"own, newer"))
    worker.up()
    assert (worker.shared / "rank-1.pt").read_bytes() == archive(b"own, newer")


SECOND_EPOCH = """
import signal, sys
from howdah.executor.event_loop import EventLoop
from howdah.executor.io.directory_sync import CheckpointSyncRunner
from howdah.wire.messages import Goal, CheckpointSyncOrder, Orders

here, uri = sys.argv[1:]
loop, told = EventLoop(), []
loop.on_signal(signal.SIGCHLD, loop.reaper.reap)
sync = CheckpointSyncRunner(loop, CheckpointSyncOrder("local", uri, writes=False), here, 60.0)

def wait(count):
    while len(told) < count:
        loop.run_once()

sync.fetch(Orders(1, Goal.RUN), told.append)
wait(1)
sync.begin()
sync.finish(told.append)
wait(2)
sync.fetch(Orders(2, Goal.RUN), told.append)
sync.stop(5.0)
wait(3)
print(told)
"""


def test_who_writes_none_gives_a_fetch_up_in_any_epoch(tmp_path: Path, chief: Task) -> None:
    command = (sys.executable, "-c", SECOND_EPOCH, str(tmp_path), uris.of_local(chief.shared))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "['', '', 'stopped while checkpoints were fetched']", done.stderr


def test_a_home_is_kept_whole_and_without_our_own_files(tmp_path: Path) -> None:
    home, shared = tmp_path / "home", tmp_path / "shared"
    (home / ".git").mkdir(parents=True)
    shared.mkdir()
    (shared / ".howdah-lease").write_text("held")
    (shared / ".howdah-local-1-0").mkdir()  # an output that is being collected there
    (shared / ".howdah-local-1-0/part").write_text("")
    for name in ("notes.txt", ".git/HEAD", "half.tmp", "model.pt", ".howdah-mine"):
        (home / name).write_text(name)

    def sync() -> DirectorySync:
        return DirectorySync(str(home), uris.of_local(shared), rule=discovery.WHOLE)

    (home / "link").symlink_to("/etc")
    first = sync()
    first.up(0.0)
    assert first.skipped == ["link: is a link out of the working directory"]
    (home / "link").unlink()
    for name in (".git/refs/heads", "gone", "filled", "lock", "kind"):
        (home / name).mkdir(parents=True)
    (home / "lock/pid").write_text("1")
    sync().up(0.0)
    (home / "gone").rmdir()
    shutil.rmtree(home / "lock")
    (home / "filled/file").write_text("x")
    (home / "kind").rmdir()
    (home / "kind").write_text("a file now")
    (home / "half.tmp").unlink()
    (home / "notes.txt").write_text("changed")
    sync().up(0.0)
    there = {str(path.relative_to(shared)) for path in shared.rglob("*") if path.is_file()}
    shutil.rmtree(shared / ".howdah-local-1-0")
    own = {".howdah-lease", ".howdah-local-1-0/part", EMPTY}
    assert there == {"notes.txt", ".git/HEAD", "model.pt", ".howdah-mine", "filled/file", "kind", *own}
    shutil.rmtree(home)
    found = discovery.find(filesystem(uris.of_local(shared)), uris.of_local(shared), discovery.WHOLE).checkpoint
    assert found is not None
    sync().down(uris.join(uris.of_local(shared), found.name))
    here = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()} - {MEMORY, EMPTY}
    assert here == {"notes.txt", ".git/HEAD", "model.pt", ".howdah-mine", "filled/file", "kind"}
    directories = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_dir()}
    assert directories == {".git", ".git/refs", ".git/refs/heads", "filled"}
    assert (home / "notes.txt").read_text() == "changed"


def test_who_fetches_a_home_is_told_that_its_last_copy_broke_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, shared = tmp_path / "home", tmp_path / "shared"
    home.mkdir()

    def sync() -> DirectorySync:
        return DirectorySync(str(home), uris.of_local(shared), rule=discovery.WHOLE)

    def fetch() -> bool:
        one = DirectorySync(tempfile.mkdtemp(dir=tmp_path), uris.of_local(shared), rule=discovery.WHOLE)
        one.down(uris.of_local(shared))
        return one.reply().is_unfinished

    def stop(*_: object) -> None:
        raise StagingError("broken off")

    (home / "optimizer").write_text("1")
    sync().up(0.0)
    assert not fetch()
    (home / "optimizer").write_text("2")
    (home / "weights").mkdir()
    (home / "weights/layer").write_text("2")
    with monkeypatch.context() as broken:
        broken.setattr(DirectorySync, "_copy", stop)
        with pytest.raises(StagingError):
            sync().up(0.0)
    assert fetch()
    sync().up(0.0)
    assert not fetch()
    (home / "optimizer").unlink()
    with monkeypatch.context() as broken:
        broken.setattr(DirectorySync, "_remove_gone", stop)
        with pytest.raises(StagingError):
            sync().up(0.0)
    assert fetch(), "what is gone is there"
    sync().up(0.0)
    assert not fetch()
    assert sorted(path.name for path in shared.iterdir()) == ["weights"]


def test_a_program_that_writes_nothing_makes_no_whole_of_a_mixture(tmp_path: Path) -> None:
    home, shared = tmp_path / "home", tmp_path / "shared"
    shared.mkdir()
    (shared / UNFINISHED).touch()
    (shared / "weights").write_text("1")
    for _ in range(2):
        sync = DirectorySync(str(home), uris.of_local(shared), rule=discovery.WHOLE)
        sync.down(uris.of_local(shared))
        assert sync.reply().is_unfinished
        DirectorySync(str(home), uris.of_local(shared), rule=discovery.WHOLE).up(0.0)
        assert (shared / UNFINISHED).exists()


def test_permission_bits_come_back_as_they_were(tmp_path: Path) -> None:
    first = Task(tmp_path, "first")
    for name, mode in (("step-1/private.pt", 0o600), ("step-1/run.sh", 0o755), ("step-1/plain.json", 0o644)):
        first.write(name, archive() if name.endswith(".pt") else b"{}")
        (first.path / name).chmod(mode)
    (first.path / "step-1").chmod(0o700)
    first.up()
    second = Task(tmp_path, "second")
    DirectorySync(str(second.path), uris.of_local(second.shared), rule=discovery.WHOLE).down(
        uris.of_local(second.shared)
    )
    for root in (first.shared, second.path):
        modes = {path.name: path.stat().st_mode & 0o777 for path in (root / "step-1").iterdir()}
        assert modes == {"private.pt": 0o600, "run.sh": 0o755, "plain.json": 0o644}
        assert (root / "step-1").stat().st_mode & 0o777 == 0o700


def test_what_another_job_left_is_kept_and_told_but_not_what_a_try_of_this_one_did(chief: Task, tmp_path: Path) -> None:
    fs, shared = filesystem("file:///"), uris.of_local(chief.shared)
    (chief.shared / "logs").mkdir()
    (chief.shared / "logs/history.csv").write_text("job 1")
    (chief.shared / "model.pt").write_bytes(archive(b"1"))
    for path in (chief.shared / "logs/history.csv", chief.shared / "model.pt"):
        os.utime(path, (chief.clock, chief.clock))
    directory_lock.acquire(fs, shared, "job-2")
    assert chief.down() == "model.pt"
    chief.write("model.pt", archive(b"2"))
    chief.write("logs/history.csv", b"job 2, try 1")
    aside = chief.shared / ".howdah-before-job-2"
    assert list(chief.up().reply().told) == [
        f"logs/history.csv in {shared} is replaced; what was there before the job is kept in {uris.of_local(aside)}"
    ]
    assert [path.name for path in aside.rglob("*") if path.is_file()] == ["history.csv"], "what was fetched is replaced"
    again = Task(tmp_path, "again")
    again.write("logs/history.csv", b"job 2, try 2")
    assert again.up().reply().told == ()
    assert (aside / "logs/history.csv").read_text() == "job 1"
    assert (chief.shared / "logs/history.csv").read_text() == "job 2, try 2"
    assert again.down() == "model.pt"
    whole = DirectorySync(str(tmp_path / "whole"), shared, rule=discovery.WHOLE)
    whole.down(shared)
    assert not list((tmp_path / "whole").glob(".howdah-before*")), "no checkpoint, and no file of a home"


def test_what_is_kept_of_many_files_is_one_line(chief: Task) -> None:
    for name in ("a", "b"):
        (chief.shared / name).write_text("before")
        os.utime(chief.shared / name, (chief.clock, chief.clock))
        chief.write(name, b"now")
    directory_lock.acquire(filesystem("file:///"), uris.of_local(chief.shared), "job-1")
    (line,) = chief.up().reply().told
    assert "2 files in " in line
    assert sorted(path.read_text() for path in chief.shared.glob(".howdah-before-*/*")) == ["before", "before"]


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A home that a person has made: with links, out of it too, empty directories, and what can't be copied."""
    shared, real = tmp_path / "shared", tmp_path / "real"
    for path in (shared / "empty", shared / "s1/deep", real):
        path.mkdir(parents=True)
    for path in (real / "opt.bin", shared / "notes", shared / "s1/deep/file"):
        path.write_text(path.name)
    (shared / "ln").symlink_to("notes")
    (shared / "dir").symlink_to(real)
    (shared / "inner").symlink_to("s1")
    (shared / "nowhere").symlink_to("gone")
    os.mkfifo(shared / "pipe")
    return shared


def test_a_home_comes_with_what_its_links_lead_to_and_without_what_cannot_be_copied(
    tmp_path: Path, linked: Path
) -> None:
    sync = DirectorySync(str(tmp_path / "home"), uris.of_local(linked), rule=discovery.WHOLE)
    sync.down(uris.of_local(linked))
    found = {str(path.relative_to(tmp_path / "home")) for path in (tmp_path / "home").rglob("*")} - {MEMORY, EMPTY}
    directories = {"empty", "s1", "s1/deep", "dir", "inner", "inner/deep"}
    assert found == directories | {"notes", "ln", "dir/opt.bin", "s1/deep/file", "inner/deep/file"}
    assert sorted(sync.reply().told) == [
        "nowhere is left out: it leads to gone, which is not there",
        "pipe is left out: it is neither a file nor a directory",
    ]


def test_a_task_changes_its_copies_and_not_what_links_lead_to(tmp_path: Path, linked: Path) -> None:
    home, shared = tmp_path / "home", uris.of_local(linked)

    def sync() -> DirectorySync:
        return DirectorySync(str(home), shared, rule=discovery.WHOLE)

    sync().down(shared)
    sync().up(0.0)
    assert (linked / "ln").is_symlink()
    assert (linked / "dir").is_symlink(), "who changes nothing leaves the links"
    (home / "notes").unlink()
    (home / "dir/opt.bin").write_text("mine")
    (home / "empty").rmdir()
    (home / "s1").rename(home / "s2")
    assert sync().up(0.0) is None
    assert (linked / "ln").read_text() == "notes"
    assert (linked / "inner/deep/file").read_text() == "file"
    assert (linked / "dir/opt.bin").read_text() == "mine"
    assert (tmp_path / "real/opt.bin").read_text() == "opt.bin"
    names = {path.name for path in linked.iterdir()}
    assert names == {"ln", "dir", "inner", "s2", "nowhere", "pipe", EMPTY}, "no directory is left empty"
    (home / "dir/opt.bin").unlink()
    sync().up(0.0)
    assert (tmp_path / "real/opt.bin").exists()
    shutil.rmtree(home)
    sync().down(shared)
    assert {path.name for path in home.iterdir()} - {MEMORY, EMPTY} == {"ln", "dir", "inner", "s2"}


def test_a_link_that_was_not_fetched_is_set_aside_when_a_file_goes_behind_it(chief: Task, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/x").write_text("theirs")
    (chief.shared / "link").symlink_to(os.path.relpath(tmp_path / "real", chief.shared))
    chief.write("link/x", b"mine")
    told = chief.up().reply().told
    assert (tmp_path / "real/x").read_text() == "theirs"
    assert (chief.shared / "link/x").read_text() == "mine"
    assert [line.partition(" in ")[0] for line in told] == ["link"]
    (kept,) = chief.shared.glob(".howdah-before-*/link")
    assert kept.is_symlink()
    assert kept.samefile(tmp_path / "real")


def test_a_checkpoint_that_a_program_removes_leaves_no_empty_directory(chief: Task) -> None:
    for number in (1, 2):
        chief.write(f"step-{number}/sub/model.pt", archive())
    (chief.shared / "theirs").mkdir()
    chief.up()
    shutil.rmtree(chief.path / "step-1")
    chief.up()
    assert {path.name for path in chief.shared.iterdir()} == {"step-2", "theirs"}


def test_a_checkpoint_is_fetched_with_linked_and_empty_directories(chief: Task, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/opt.bin").write_text("weights")
    for name in ("step-1/DONE", "step-2/DONE", "step-2/lost"):
        path = chief.shared / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (chief.clock, chief.clock))
    (chief.shared / "step-2/lnk").symlink_to(tmp_path / "real")
    os.utime(tmp_path / "real/opt.bin", (chief.clock, chief.clock))
    (chief.shared / "step-2/empty").mkdir()
    for step in ("step-1", "step-2"):
        (chief.shared / step / "pipe").symlink_to("nothing")
    sync, rule = chief.mirror, "marker:DONE"
    sync.rule = rule
    shared = uris.of_local(chief.shared)
    found = discovery.find(sync.fs, shared, rule).checkpoint
    assert found is not None
    sync.down(uris.join(shared, found.name))
    names = {str(path.relative_to(chief.path)) for path in chief.path.rglob("*")} - {MEMORY}
    assert names == {"step-2", *(f"step-2/{name}" for name in ("DONE", "lost", "lnk", "lnk/opt.bin", "empty"))}
    assert sync.reply().told == ("step-2/pipe is left out: it leads to nothing, which is not there",)
