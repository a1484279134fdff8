"""Tests the FileSystem of this machine's files, and the one that uses fsspec."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from commit_contract import CommitContract
from filesystem_contract import FileSystemContract, PermissionContract
from pyarrow.fs import LocalFileSystem

from howdah.errors import SpecError, StagingError
from howdah.spec import uris
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import FileSystem, copy
from howdah.storage.fsspec_adapter import FsspecFileSystem
from howdah.storage.hdfs.arrow_binding import ArrowHdfsFileSystem, wrap_for_fsspec


class TestLocal(FileSystemContract, PermissionContract, CommitContract):
    @pytest.fixture
    def base(self, tmp_path: Path) -> str:
        (tmp_path / "dir #1").mkdir()
        return uris.of_local(tmp_path / "dir #1")

    @pytest.fixture
    def fs(self, base: str) -> FileSystem:
        return filesystem(base)

    def test_a_full_disk(self, fs: FileSystem) -> None:
        full_disk = pytest.raises(StagingError, match="/dev/full: no space left on device")
        with Path("/dev/full").open("wb", buffering=0) as full, full_disk:
            copy(io.BytesIO(b"x"), full)

    def test_plain_paths_are_local(self, fs: FileSystem, tmp_path: Path) -> None:
        fs.write_bytes(str(tmp_path / "a%20b"), b"1")
        assert (tmp_path / "a%20b").read_bytes() == b"1"

    @pytest.mark.parametrize("kind", ["a pipe", "a device"])
    def test_what_may_never_end_is_not_read(self, fs: FileSystem, tmp_path: Path, kind: str) -> None:
        path = tmp_path / "events.jsonl"
        if kind == "a pipe":
            os.mkfifo(path)  # to which nobody writes: who opens it waits for good
        else:
            path.symlink_to("/dev/zero")
        for read in (fs.open_read, fs.read_bytes, lambda uri: fs.head(uri, 9), lambda uri: list(fs.iter_chunks(uri))):
            with pytest.raises(StagingError, match=f"{path} is {kind}, must be a file or directory"):
                read(uris.of_local(path))

    def test_a_secret_is_never_open_to_others(self, fs: FileSystem, base: str) -> None:
        before = os.umask(0)
        try:
            with fs.writing(uris.join(base, "key"), 0o600):
                (entry,) = fs.children(base)
                assert entry.mode & 0o777 == 0o600
        finally:
            os.umask(before)


class TestFsspec(FileSystemContract):
    @pytest.fixture
    def base(self, fs: FileSystem) -> Iterator[str]:
        fs.mkdirs("memory:///test/dir")
        yield "memory:///test/dir"
        fs.delete("memory:///test")

    @pytest.fixture
    def fs(self) -> FileSystem:
        return filesystem("memory:///test")


class TestArrow(FileSystemContract):
    """What libhdfs is reached through, on this machine's files: libhdfs itself comes with Hadoop's binaries only."""

    @pytest.fixture
    def base(self, tmp_path: Path) -> str:
        (tmp_path / "cluster").mkdir()
        return f"hdfs://nn{tmp_path}/cluster"

    @pytest.fixture
    def fs(self) -> FileSystem:
        return ArrowHdfsFileSystem("hdfs://nn", wrap_for_fsspec(LocalFileSystem()))


@pytest.mark.usefixtures("s3")
class TestS3(FileSystemContract):
    """A server of the protocol, found by AWS's own variables."""

    @pytest.fixture
    def base(self, fs: FileSystem) -> Iterator[str]:
        directory = f"s3://howdah/{os.urandom(4).hex()}"
        fs.mkdirs(directory)
        yield directory
        fs.delete(directory)

    @pytest.fixture
    def fs(self) -> FileSystem:
        return filesystem("s3://howdah")

    def test_an_exception_publishes_nothing(self, fs: FileSystem, base: str) -> None:
        with contextlib.suppress(ZeroDivisionError), fs.writing(uris.join(base, "half")) as sink:
            sink.write(b"x" * 3_000_000)
            raise ZeroDivisionError
        assert not fs.exists(base)  # a directory is there as long as something is in it

    def test_a_file_that_is_replaced_is_there_all_the_time(
        self, fs: FsspecFileSystem, base: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        uri, store, there = uris.join(base, "file"), fs._fs, list[bool]()
        copy_object = store.cp_file

        def look_and_copy(old: str, new: str) -> None:
            there.append(fs.exists(uri))
            copy_object(old, new)

        fs.write_bytes(uri, b"one")
        monkeypatch.setattr(store, "cp_file", look_and_copy)
        with fs.writing(uri) as sink:
            sink.write(b"two")
        assert there == [True]
        assert fs.read_bytes(uri) == b"two"


def test_libhdfs_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_HDFS_CLIENT", "pyarrow")
    with pytest.raises(StagingError, match=r"hdfs://nn: pyarrow can't start libhdfs: .* It needs Hadoop's libhdfs.so"):
        filesystem("hdfs://nn/a")
    monkeypatch.setenv("HOWDAH_HDFS_CLIENT", "java")
    with pytest.raises(SpecError, match="'java' is neither hdfs-native nor pyarrow"):
        filesystem("hdfs://nn/a")


def test_an_unknown_scheme() -> None:
    with pytest.raises(StagingError, match="gopher"):
        filesystem("gopher://host/x")
