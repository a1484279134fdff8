"""The filesystem seam on this machine, and through fsspec."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from commit_contract import CommitContract
from filesystem_contract import NAMES, FileSystemContract, PermissionContract

from howdah.data import uris
from howdah.data.fs import FileSystem, copy, filesystem
from howdah.errors import StagingError


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

    def test_a_secret_is_never_open_to_others(self, fs: FileSystem, base: str) -> None:
        before = os.umask(0)
        try:
            with fs.writing(uris.join(base, "key"), 0o600):
                (entry,) = fs.children(base)
                assert entry.mode & 0o777 == 0o600
        finally:
            os.umask(before)


class TestFsspec(FileSystemContract):
    names = tuple(name for name in NAMES if "?" not in name)

    @pytest.fixture
    def base(self, fs: FileSystem) -> Iterator[str]:
        fs.mkdirs("memory:///test/dir")
        yield "memory:///test/dir"
        fs.delete("memory:///test")

    @pytest.fixture
    def fs(self) -> FileSystem:
        return filesystem("memory:///test")


def test_an_unknown_scheme() -> None:
    with pytest.raises(StagingError, match="gopher"):
        filesystem("gopher://host/x")
