"""Tests that hostile file names never lead out of the directory they are put into."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]
import pytest
from click.testing import CliRunner

from howdah.checkpoints.directory_sync import DirectorySync
from howdah.checkpoints.discovery import find
from howdah.cli.data import data
from howdah.errors import StagingError
from howdah.outputs import snapshot
from howdah.spec import uris
from howdah.staging.path_listing import listing
from howdah.storage.factory import filesystem

COPY = "2026_11_21_15_00_02"
EARLIER = "../../2026_11_21_15_00_01/worker-0/"


@pytest.fixture
def bucket() -> Iterator[fsspec.AbstractFileSystem]:
    """An object store, in which `..` is a name like any other."""
    store = fsspec.filesystem("memory")
    yield store
    store.store.clear()


def get(uri: str, to: Path) -> str:
    """`howdah data get`; what it says."""
    done = CliRunner().invoke(data, ["get", uri, str(to)])
    return str(done.exception or done.output)


def a_copy(directory: Path, files: dict[str, dict[str, Any]]) -> str:
    (directory / "saved" / COPY / "worker-0").mkdir(parents=True)
    (directory / "saved" / COPY / "worker-0/_SAVED").write_text(json.dumps({"files": files}))
    (directory / "saved/payload").write_text("owned")
    return uris.of_local(directory / "saved" / COPY)


@pytest.mark.parametrize("name", ["../../escaped", "/escaped", "a/../../../escaped", ".."])
def test_a_copy_that_names_files_outside_is_refused(tmp_path: Path, name: str) -> None:
    uri = a_copy(tmp_path, {name: {"size": 5, "modified_ns": 0, "at": EARLIER + "x"}})
    assert "leads out of it" in get(uri, tmp_path / "here/got")
    assert not list(tmp_path.rglob("escaped"))


@pytest.mark.parametrize(
    "at", ["../../payload", "/etc/passwd", EARLIER + "../../payload", "../../../saved/payload", "x"]
)
def test_a_copy_that_refers_to_what_is_no_copy_is_refused(tmp_path: Path, at: str) -> None:
    uri = a_copy(tmp_path, {"payload": {"size": 5, "modified_ns": 0, "at": at}})
    assert "is in no earlier snapshot" in get(uri, tmp_path / "got")
    assert not (tmp_path / "got/worker-0/payload").exists()


def test_unusual_file_names_are_accepted(tmp_path: Path) -> None:
    names = ["..a", "a..b/c", "...", "new\nline"]
    uri = a_copy(tmp_path, {name: {"size": 1, "modified_ns": 0, "at": EARLIER + name} for name in names})
    part = uris.join(uri, "worker-0")
    assert set(snapshot.part_files(filesystem(uri), part)) == set(names)


@pytest.mark.parametrize("key", ["/bucket/dir/../../escaped", "/bucket/dir//etc/escaped"])
def test_keys_of_an_object_store_that_lead_out_are_refused(
    tmp_path: Path, bucket: fsspec.AbstractFileSystem, key: str
) -> None:
    bucket.pipe(key, b"x")
    assert "leads out of it" in get("memory:///bucket/dir", tmp_path / "a/b/c")
    fs = filesystem("memory:///bucket/dir")
    for reads in (
        lambda: listing(fs, "memory:///bucket/dir"),
        lambda: find(fs, "memory:///bucket/dir"),
        lambda: DirectorySync(str(tmp_path / "ck"), "memory:///bucket/dir").down(""),
    ):
        with pytest.raises(StagingError, match="leads out of it"):
            reads()
    assert not list(tmp_path.rglob("escaped"))
