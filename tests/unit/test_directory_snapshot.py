"""Tests that a copy of a changing directory has complete files of one moment."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import pytest

from howdah.checkpoints import directory_snapshot
from howdah.checkpoints.directory_snapshot import DirectorySnapshot, Stamp


def old(path: Path, seconds: float = 60.0) -> Path:
    """As if it had been written a while ago."""
    moment = time.time() - seconds
    os.utime(path, (moment, moment))
    return path


def write(path: Path, text: str | bytes = "x", seconds: float = 60.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return old(path, seconds)


class Copier:
    """Copies to `target`; `before` is called with each file before it is copied, `after` afterwards."""

    def __init__(self, source: Path, target: Path) -> None:
        self.source, self.target = source, target
        self.before: Callable[[str], object] = lambda _: None
        self.after: Callable[[str], object] = lambda _: None
        self.copied: list[str] = []
        self.rounds = 0

    def put(self, file: BinaryIO, name: str, size: int) -> None:
        self.before(name)
        there = self.target / name
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_bytes(file.read(size))
        self.copied.append(name)
        self.after(name)

    def drop(self, name: str) -> None:
        (self.target / name).unlink(missing_ok=True)

    def take(self, known: Mapping[str, Stamp] | None = None, settle_s: float = 0.0) -> DirectorySnapshot:
        return directory_snapshot.copy_directory(str(self.source), self.put, self.drop, known, settle_s)

    def files(self) -> dict[str, str]:
        found = (path for path in self.target.rglob("*") if path.is_file())
        return {str(path.relative_to(self.target)): path.read_text() for path in found}


@pytest.fixture
def copier(tmp_path: Path) -> Copier:
    (tmp_path / "output").mkdir()
    return Copier(tmp_path / "output", tmp_path / "copy")


def test_everything_is_copied_but_what_is_hidden_or_temporary(copier: Copier) -> None:
    for name in ("a", "sub/b", "sub/deep/c.txt", ".metadata"):
        write(copier.source / name)
    for name in (".hidden", "x~", "x.tmp", "m.pt.part", "ckpt.data-00000-of-00001.tempstate123", ".git/config"):
        write(copier.source / name)
    for name in ("ckpt-1_temp/part-0", "workertemp_1/m", "7.orbax-checkpoint-tmp-3/d", "_temporary/y"):
        write(copier.source / name)
    assert copier.take().skipped == []
    assert set(copier.files()) == {"a", "sub/b", "sub/deep/c.txt", ".metadata"}


def test_a_file_just_written_is_waited_for_or_left_out(copier: Copier) -> None:
    write(copier.source / "old")
    with (copier.source / "new").open("wb") as file:  # somebody writes it
        file.write(b"half")
        file.flush()
        found = copier.take()
        assert set(found.files) == {"old"}
        assert found.skipped == ["new: is still being written"]
    assert set(copier.take(settle_s=5.0).files) == {"old", "new"}


def test_a_file_that_changes_while_it_is_copied_is_copied_again(copier: Copier) -> None:
    write(copier.source / "a", "one")
    changes = iter(["two", "three"])

    def change(name: str) -> None:
        if text := next(changes, ""):
            write(copier.source / name, text, seconds=50.0 - len(text))

    copier.after = change
    found = copier.take()
    assert copier.files() == {"a": "three"}
    assert len(copier.copied) == 3
    assert found.files["a"] == directory_snapshot.stamp_of(str(copier.source / "a"))


def test_what_changes_after_its_copying_is_copied_again_so_that_all_are_of_one_moment(copier: Copier) -> None:
    write(copier.source / "a", "a1")
    write(copier.source / "b", "b1")

    def change(name: str) -> None:
        if name == "b" and copier.copied.count("b") == 1:
            write(copier.source / "a", "a2", seconds=40.0)

    copier.after = change
    copier.take()
    assert copier.files() == {"a": "a2", "b": "b1"}


def test_what_vanishes_is_not_in_it(copier: Copier) -> None:
    for name in ("a", "b"):
        write(copier.source / name)
    copier.after = lambda name: (copier.source / "a").unlink(missing_ok=True)
    copier.take()
    assert set(copier.files()) == {"b"}


def test_what_is_replaced_all_the_time_is_there_as_it_was(copier: Copier) -> None:
    write(copier.source / "a", "0")
    write(copier.source / "b")

    def replace(name: str) -> None:  # several are copied at once
        if name == "a":
            copier.rounds += 1
            fresh = write(copier.source / "a.tmp", f"{copier.rounds}", seconds=50.0 - copier.rounds)
            fresh.replace(copier.source / "a")

    copier.before = replace
    found = copier.take()
    assert set(found.files) == {"a", "b"}
    assert int(copier.files()["a"]) == copier.rounds - 1
    assert found.skipped == ["a: has been replaced since it was copied"]


def test_what_is_overwritten_all_the_time_is_left_out(copier: Copier) -> None:
    write(copier.source / "a")
    write(copier.source / "b")

    def overwrite(_: str) -> None:
        copier.rounds += 1
        write(copier.source / "a", f"{copier.rounds}", seconds=50.0 - copier.rounds)

    copier.before = overwrite
    found = copier.take()
    assert set(found.files) == set(copier.files()) == {"b"}
    assert found.skipped == ["a: changes faster than it can be copied"]


def test_what_belongs_together_is_left_out_together(copier: Copier) -> None:
    for name in ("c-1.data-00000-of-00001", "c-1.index", "checkpoint"):
        write(copier.source / name)

    one_at_a_time = threading.Lock()

    def replace(_: str) -> None:
        with one_at_a_time:
            copier.rounds += 1
            write(copier.source / "c-1.index.tmp", f"{copier.rounds}", seconds=50.0 - copier.rounds).replace(
                copier.source / "c-1.index"
            )

    copier.before = replace
    assert set(copier.take().files) == {"checkpoint"}


def test_logs_are_copied_as_far_as_they_had_come(copier: Copier) -> None:
    for name in ("train.log", "events.out.tfevents.1.host"):
        write(copier.source / name, "12345", seconds=0.0)

    def grow(name: str) -> None:
        with (copier.source / name).open("a") as file:
            file.write("more")

    copier.before = grow
    found = copier.take()
    assert set(copier.files().values()) == {"12345"}
    assert found.skipped == []


def test_unchanged_files_of_an_earlier_copy_are_not_copied(copier: Copier) -> None:
    for name in ("same", "changed", "gone", "grown.log"):
        write(copier.source / name)
    first = copier.take()
    shutil.rmtree(copier.target)
    copier.copied.clear()
    write(copier.source / "changed", "yy")
    write(copier.source / "grown.log", "xyz")
    (copier.source / "gone").unlink()
    dropped: list[str] = []
    found = directory_snapshot.copy_directory(str(copier.source), copier.put, dropped.append, first.files, 0.0)
    assert sorted(copier.copied) == ["changed", "grown.log"]
    assert set(found.files) == {"same", "changed", "grown.log"}
    assert dropped == ["gone"]


def test_half_a_tensorflow_checkpoint_is_none(copier: Copier) -> None:
    for name in ("c-1.data-00000-of-00002", "c-1.data-00001-of-00002", "c-1.index"):
        write(copier.source / name)
    write(copier.source / "c-2.data-00000-of-00001")
    write(copier.source / "c-3.index")
    write(copier.source / "c-3.data-00001-of-00002")
    found = copier.take()
    assert set(copier.files()) == {"c-1.data-00000-of-00002", "c-1.data-00001-of-00002", "c-1.index"}
    assert len(found.skipped) == 3


def test_a_failing_copy_is_told(copier: Copier) -> None:
    write(copier.source / "a")

    def fail(name: str) -> None:
        raise PermissionError(13, "Permission denied", name)

    copier.before = fail
    with pytest.raises(PermissionError):
        copier.take()
