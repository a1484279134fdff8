"""Provides the tests that every FileSystem must pass; the tests of each file system inherit them.

A subclass gives fixtures `fs` and `base`, the URI of an empty directory.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from howdah.errors import StagingError
from howdah.spec import uris
from howdah.storage.filesystem import FileSystem
from howdah.storage.fsspec_adapter import FsspecFileSystem
from howdah.storage.linked_tree import ignore

LONGEST = "é" * 127  # 254 bytes; 255 is the most
NAMES = ("plain", LONGEST, "with space", "é", "q?uestion", "ha#sh", "per%cent", "plus+&=", "quote'\"")


def write_together(fs: FileSystem, contents: Mapping[str, bytes]) -> None:
    """Write files by URI at the same time: HDFS's client rests for half a second at the end of each."""
    with ThreadPoolExecutor(len(contents)) as pool:
        list(pool.map(fs.write_bytes, contents, contents.values()))


class FileSystemContract:
    """Tests files, directories, names and errors."""

    names: tuple[str, ...] = NAMES

    def test_a_file_replaces_no_directory(self, fs: FileSystem, base: str) -> None:
        held = uris.join(base, "directory", "held")
        fs.mkdirs(uris.parent(held))
        write_together(fs, {held: b"one", uris.join(base, "file"): b"two"})
        may_have_both = not fs.moves_at_once(base)  # an object store
        with contextlib.nullcontext() if may_have_both else pytest.raises(StagingError):
            fs.rename(uris.join(base, "file"), uris.parent(held), overwrite=True)
        assert fs.read_bytes(held) == b"one"
        assert fs.read_bytes(uris.parent(held) if may_have_both else uris.join(base, "file")) == b"two"

    def test_what_is_written_is_read(self, fs: FileSystem, base: str) -> None:
        uri = uris.join(base, "file")
        fs.write_bytes(uri, b"one")
        fs.write_bytes(uri, b"two")
        assert fs.read_bytes(uri) == b"two"
        entry = fs.stat(uri)
        assert entry is not None
        assert (entry.size, entry.is_dir, uris.normalize(entry.uri)) == (3, False, uris.normalize(uri))

    def test_empty_file(self, fs: FileSystem, base: str) -> None:
        fs.write_bytes(uris.join(base, "empty"), b"")
        assert fs.read_bytes(uris.join(base, "empty")) == b""

    def test_names_are_taken_letter_by_letter(self, fs: FileSystem, base: str) -> None:
        write_together(fs, {uris.join(base, name): name.encode() for name in self.names})
        assert sorted(uris.name(entry.uri) for entry in fs.children(base)) == sorted(self.names)
        for entry in fs.walk(base):
            assert fs.read_bytes(entry.uri) == uris.name(entry.uri).encode()

    def test_a_name_that_is_no_text_comes_back(self, fs: FileSystem, base: str, tmp_path: Path) -> None:
        name = os.fsdecode(b"caf\xe9")
        (tmp_path / name).write_bytes(b"one")
        fs.mkdirs(uris.join(base, "odd"))
        fs.put(tmp_path / name, uris.join(base, "odd", name))
        (entry,) = fs.walk(uris.join(base, "odd"))
        assert uris.normalize(entry.uri) == uris.normalize(uris.join(base, "odd", name))
        assert fs.read_bytes(entry.uri) == b"one"

    def test_walk_finds_files_at_any_depth_and_children_only_the_next(self, fs: FileSystem, base: str) -> None:
        fs.mkdirs(uris.join(base, "a/b"))
        write_together(fs, {uris.join(base, name): b"1" for name in ("top", "a/x", "a/b/y")})
        assert sorted(uris.below(entry.uri, base) for entry in fs.walk(base)) == ["a/b/y", "a/x", "top"]
        assert [(uris.name(entry.uri), entry.is_dir) for entry in fs.children(base)] == [("a", True), ("top", False)]

    def test_a_tree_has_what_walk_finds_and_directories_that_hold_nothing(self, fs: FileSystem, base: str) -> None:
        for name in ("none", "a/b/c/d"):
            fs.mkdirs(uris.join(base, name))
        write_together(fs, {uris.join(base, name): b"1" for name in ("a/x", "a/b/y", "top")})
        found = {uris.below(entry.uri, base): entry.is_dir for entry in fs.list_tree(base, ignore)}
        files = {"a/x": False, "a/b/y": False, "top": False}
        assert found in (files, {**files, "none": True, "a/b/c/d": True})  # object stores have no directories
        assert found != files or isinstance(fs, FsspecFileSystem)

    def test_a_file_walked_is_itself(self, fs: FileSystem, base: str) -> None:
        fs.write_bytes(uris.join(base, "f"), b"1")
        assert [uris.name(entry.uri) for entry in fs.walk(uris.join(base, "f"))] == ["f"]

    def test_glob(self, fs: FileSystem, base: str) -> None:
        for name in ("a1", "a2", "b1"):
            fs.write_bytes(uris.join(base, name), b"")
        assert [uris.name(entry.uri) for entry in fs.glob(f"{base}/a*")] == ["a1", "a2"]
        assert [uris.name(entry.uri) for entry in fs.glob(f"{base}/[ab]1")] == ["a1", "b1"]
        assert fs.glob(f"{base}/nothing*") == []

    def test_what_is_not_there(self, fs: FileSystem, base: str) -> None:
        missing = uris.join(base, "missing")
        assert fs.stat(missing) is None
        assert not fs.exists(missing)
        assert fs.delete(missing) is False
        with pytest.raises(StagingError, match="missing"):
            fs.read_bytes(missing)
        with pytest.raises(StagingError, match="missing"):
            list(fs.walk(missing))
        with pytest.raises(StagingError, match="missing"):
            fs.children(missing)
        with pytest.raises(StagingError, match="missing"):
            fs.rename(missing, uris.join(base, "new"))

    def test_append(self, fs: FileSystem, base: str) -> None:
        log = uris.join(base, "log")
        for line in (b"1\n", b"2\n", b"3\n"):
            fs.append(log, line)
        assert fs.read_bytes(log) == b"1\n2\n3\n"

    def test_one_of_many_creates_a_file(self, fs: FileSystem, base: str) -> None:
        uri = uris.join(base, "segment")
        started = threading.Barrier(4)

        def work(number: int) -> bool:
            started.wait(10)
            return fs.create_new(uri, b"%d" % number)

        with ThreadPoolExecutor(4) as pool:
            told = list(pool.map(work, range(4)))
        assert sum(told) == 1
        assert fs.read_bytes(uri) == b"%d" % told.index(True)
        assert not fs.create_new(uri, b"later")
        assert fs.read_bytes(uri) == b"%d" % told.index(True)
        assert [entry.uri for entry in fs.children(base)] == [uri]

    def test_several_files_are_deleted(self, fs: FileSystem, base: str) -> None:
        write_together(fs, {uris.join(base, name): b"1" for name in ("a", "b", "c")})
        fs.delete_files([uris.join(base, name) for name in ("a", "none", "b")])
        assert [uris.name(entry.uri) for entry in fs.children(base)] == ["c"]
        fs.delete_files([])

    def test_rename_refuses_what_exists(self, fs: FileSystem, base: str) -> None:
        for name in ("a", "b"):
            fs.mkdirs(uris.join(base, name))
        write_together(fs, {uris.join(base, name, "f"): name.encode() for name in ("a", "b")})
        with pytest.raises(StagingError, match="exists already"):
            fs.rename(uris.join(base, "a"), uris.join(base, "b"))
        fs.rename(uris.join(base, "a"), uris.join(base, "c"))
        assert fs.read_bytes(uris.join(base, "c/f")) == b"a"
        assert not fs.exists(uris.join(base, "a"))

    def test_delete_takes_everything_below(self, fs: FileSystem, base: str) -> None:
        fs.mkdirs(uris.join(base, "d/e"))
        fs.write_bytes(uris.join(base, "d/e/f"), b"1")
        assert fs.delete(uris.join(base, "d")) is True
        assert not fs.exists(uris.join(base, "d"))

    def test_a_name_that_looks_like_a_pattern_is_one_name(self, fs: FileSystem, base: str) -> None:
        names, others = ("epoch[1].pt", "best*", "d[1]/f"), ("epoch1.pt", "best.pt", "d1/f")
        for directory in ("d[1]", "d1"):
            fs.mkdirs(uris.join(base, directory))
        write_together(fs, {uris.join(base, name): name.encode() for name in (*names, *others)})
        fs.rename(uris.join(base, "best*"), uris.join(base, "[b]est"), overwrite=True)
        fs.write_bytes(uris.join(base, "epoch[1].pt"), b"again")
        assert [fs.delete(uris.join(base, name)) for name in ("epoch[1].pt", "[b]est", "d[1]", "e*")] == [
            True,
            True,
            True,
            False,
        ]
        found = {uris.below(entry.uri, base): fs.read_bytes(entry.uri).decode() for entry in fs.walk(base)}
        assert found == {name: name for name in others}

    def test_mkdirs_leaves_a_directory_that_exists_as_it_is(self, fs: FileSystem, base: str) -> None:
        fs.mkdirs(uris.join(base, "x/y"))
        fs.write_bytes(uris.join(base, "x/y/f"), b"1")
        fs.mkdirs(uris.join(base, "x/y"))
        assert fs.read_bytes(uris.join(base, "x/y/f")) == b"1"

    def test_an_exception_publishes_nothing(self, fs: FileSystem, base: str) -> None:
        def interrupted() -> None:
            with fs.writing(uris.join(base, "half")) as sink:
                sink.write(b"x" * 3_000_000)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            interrupted()
        assert fs.children(base) == []

    def test_the_first_of_two_writers_can_win(self, fs: FileSystem, base: str) -> None:
        uri = uris.join(base, "cached")
        with fs.writing(uri, replace=False) as slow:
            slow.write(b"slow")
            fs.write_bytes(uri, b"first")
        assert fs.read_bytes(uri) == b"first"
        assert [entry.uri for entry in fs.children(base)] == [uri]

    def test_seeking(self, fs: FileSystem, base: str) -> None:
        data = os.urandom(3_000_001)
        fs.write_bytes(uris.join(base, "big"), data)
        with fs.open_read(uris.join(base, "big")) as file:
            assert file.read(10) == data[:10]
            file.seek(2_999_999)
            assert file.read(100) == data[2_999_999:]
            file.seek(1_500_000)
            assert file.read(7) == data[1_500_000:1_500_007]
            file.seek(9_000_000)
            assert file.read(1) == b""
            file.seek(-3, os.SEEK_END)
            assert file.read() == data[-3:]

    def test_put_and_get(self, fs: FileSystem, base: str, tmp_path: Path) -> None:
        data = os.urandom(2_500_000)
        (tmp_path / "here").write_bytes(data)
        assert fs.put(tmp_path / "here", uris.join(base, "there")) == len(data)
        assert fs.get(uris.join(base, "there"), tmp_path / "back") == len(data)
        assert (tmp_path / "back").read_bytes() == data
        assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["back", "here"]

    def test_a_failed_get_leaves_nothing(self, fs: FileSystem, base: str, tmp_path: Path) -> None:
        with pytest.raises(StagingError):
            fs.get(uris.join(base, "none"), tmp_path / "back")
        assert not (tmp_path / "back").exists()

    def test_many_threads(self, fs: FileSystem, base: str) -> None:
        started = threading.Barrier(8)

        def work(number: int) -> bytes:
            started.wait(120)
            uri = uris.join(base, f"f{number}")
            fs.write_bytes(uri, str(number).encode())
            return fs.read_bytes(uri)

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(8))) == [str(number).encode() for number in range(8)]


class PermissionContract:
    """Tests file systems that have permission bits and times."""

    def test_modes(self, fs: FileSystem, base: str) -> None:
        fs.mkdirs(uris.join(base, "private"), 0o700)
        fs.write_bytes(uris.join(base, "key"), b"secret", 0o600)
        modes = [entry.mode & 0o777 for entry in fs.children(base)]
        assert modes == [0o600, 0o700]
        fs.chmod(uris.join(base, "key"), 0o640)
        assert fs.children(base)[0].mode & 0o777 == 0o640

    def test_touch_leaves_the_modification_time(self, fs: FileSystem, base: str) -> None:
        uri = uris.join(base, "f")
        fs.write_bytes(uri, b"1")
        before = fs.stat(uri)
        fs.touch(uri)
        after = fs.stat(uri)
        assert before is not None
        assert after is not None
        assert after.modified_ms == before.modified_ms > 0
        assert after.accessed_ms >= before.accessed_ms > 0

    def test_a_file_is_no_directory(self, fs: FileSystem, base: str) -> None:
        fs.write_bytes(uris.join(base, "f"), b"1")
        assert fs.stat(uris.join(base, "f/below")) is None
        with pytest.raises(StagingError):
            fs.mkdirs(uris.join(base, "f/below"))
        with pytest.raises(StagingError, match="is a directory"):
            fs.read_bytes(base)

    def test_errors_name_the_file_not_its_temporary_name(self, fs: FileSystem, base: str) -> None:
        with pytest.raises(StagingError, match=r"none/file: no such file or directory$"):
            fs.write_bytes(uris.join(base, "none/file"), b"1")
