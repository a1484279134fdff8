"""Tests transferring files over connections that break, on a file system made for it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from howdah.errors import StagingError
from howdah.inputs.transfer import TRIES, download, list_copies, upload, upload_directories
from howdah.outputs.commit import OutputCommit, commit
from howdah.spec import uris
from howdah.storage.filesystem import ConnectionBroken, Entry, mode_of_download
from howdah.storage.local import LocalFileSystem
from howdah.wire.helper_messages import FileCopy, UploadItem, UploadRequest


class Flaky(MemoryFileSystem):
    """Breaks the connection the first `faults` times a file is opened, or after the first bytes of it."""

    protocol = "flaky"
    faults: ClassVar[dict[str, int]] = {}
    breaks: ClassVar[dict[str, list[int]]] = {}
    reads: ClassVar[list[tuple[str, int]]] = []
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode == "rb" and self.faults.get(path, 0) > 0:
            self.faults[path] -= 1
            raise RuntimeError("connection reset")
        file = super()._open(path, mode, **options)
        return Breaking(file, path) if mode == "rb" and path in self.breaks else file

    def info(self, path: str, **options: Any) -> Any:
        found = super().info(path, **options)
        return {**found, "size": 1 << 60} if path.endswith("huge") else found

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.replace("flaky://", "memory://"))


class Breaking:
    """A file whose connection breaks at the next of the offsets in `Flaky.breaks`."""

    def __init__(self, file: Any, path: str) -> None:
        self.file, self.path, self.begun = file, path, False

    def __enter__(self) -> Breaking:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.seek(0)

    def seek(self, offset: int) -> None:
        self.file.seek(offset)

    def read(self, length: int) -> bytes:
        if not self.begun:
            self.begun = True
            Flaky.reads.append((self.path, self.file.tell()))
        left = Flaky.breaks[self.path]
        if left and self.file.tell() >= left[0]:
            left.pop(0)
            raise RuntimeError("connection reset")
        data: bytes = self.file.read(length)
        return data


fsspec.register_implementation("flaky", Flaky, clobber=True)


@pytest.fixture
def remote() -> Flaky:
    Flaky.faults.clear()
    Flaky.breaks.clear()
    Flaky.reads.clear()
    Flaky.store.clear()
    fs = Flaky()
    fs.pipe("/d/a", b"12345")
    return fs


def quiet(files: int, size: int) -> None:
    pass


def test_a_broken_connection_is_tried_again(remote: Flaky, tmp_path: Path) -> None:
    Flaky.faults["/d/a"] = 2
    assert download([FileCopy(str(tmp_path / "x/y/a"), "flaky:///d/a", 5)], quiet) == (1, 5)
    assert (tmp_path / "x/y/a").read_bytes() == b"12345"


def test_not_for_ever(remote: Flaky, tmp_path: Path) -> None:
    Flaky.faults["/d/a"] = 9
    with pytest.raises(ConnectionBroken, match="flaky:///d/a: connection reset"):
        download([FileCopy(str(tmp_path / "a"), "flaky:///d/a", 5)], quiet, back_off_s=0.001)
    assert list(tmp_path.iterdir()) == []
    assert Flaky.faults["/d/a"] == 9 - TRIES


def test_another_file_of_the_same_size_is_replaced(remote: Flaky, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"54321")
    assert download([FileCopy(str(tmp_path / "a"), "flaky:///d/a", 5)], quiet) == (1, 5)
    assert (tmp_path / "a").read_bytes() == b"12345"


def test_a_directory_in_the_way_leaves_no_partial_file(remote: Flaky, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(StagingError, match="is a directory"):
        download([FileCopy(str(tmp_path / "a"), "flaky:///d/a", 5)], quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_is_fetched_may_be_used_as_its_source(remote: Flaky, tmp_path: Path) -> None:
    modes = {"private": 0o600, "program": 0o755, "fixed": 0o444, "shared": 0o666}
    for name, mode in modes.items():
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(mode)
    download([FileCopy(str(tmp_path / "new" / name), uris.of_local(tmp_path / name)) for name in modes], quiet)
    assert {each.name: each.stat().st_mode & 0o777 for each in (tmp_path / "new").iterdir()} == modes


@pytest.mark.parametrize(
    ("uri", "mode", "here"),
    [
        ("file:///x", 0o1444, 0o444),
        ("hdfs://h/x", 0o600, 0o600),
        ("hdfs://h/x", 0o755, 0o755),
        ("hdfs://h/x", 0o440, 0o640),
        ("s3://b/x", 0, 0o666),  # an object has no mode: the umask decides
    ],
)
def test_what_others_may_do_with_a_file_that_is_fetched(uri: str, mode: int, here: int) -> None:
    assert mode_of_download(Entry(uri, 1, 0, mode=mode)) == here


def test_many_more_than_threads(remote: Flaky, tmp_path: Path) -> None:
    for number in range(500):
        remote.pipe(f"/many/{number % 7}/{number}", b"1" * number)
    copies = [FileCopy(str(tmp_path / f"{n % 7}/{n}"), f"flaky:///many/{n % 7}/{n}", n) for n in range(500)]
    reports: list[int] = []
    assert download(copies, lambda files, size: reports.append(files)) == (500, sum(range(500)))
    assert reports == sorted(reports)
    assert reports[-1] == 500
    back, empty = list_copies(str(tmp_path), "flaky:///back")
    assert empty == []
    assert upload(back, quiet) == (500, sum(range(500)))
    assert remote.cat("/back/3/3") == b"111"


def test_a_large_file_goes_on_where_it_broke_and_more_often_than_a_file_is_tried(remote: Flaky, tmp_path: Path) -> None:
    content = os.urandom(1 << 20) * 30
    remote.pipe("/d/big", content)
    Flaky.breaks["/d/big"] = [mib << 20 for mib in (10, 15, 16, 20)]
    seen: list[int] = []

    def watch(files: int, size: int) -> None:
        seen.append(size)

    size = download([FileCopy(str(tmp_path / "big"), "flaky:///d/big", 30 << 20)], watch, back_off_s=0.001)
    assert size == (1, 30 << 20)
    assert (tmp_path / "big").read_bytes() == content
    assert [offset >> 20 for _, offset in Flaky.reads] == [0, 10, 15, 16, 20]
    assert [path.name for path in tmp_path.iterdir()] == ["big"]
    assert max(seen) == 30 << 20


def test_what_came_of_a_large_file_is_kept_for_the_next_run(remote: Flaky, tmp_path: Path) -> None:
    remote.pipe("/d/big", bytes(20 << 20))
    Flaky.breaks["/d/big"] = [12 << 20] * TRIES
    big = FileCopy(str(tmp_path / "big"), "flaky:///d/big", 20 << 20)
    with pytest.raises(ConnectionBroken, match="connection reset"):
        download([big], quiet, back_off_s=0.001)
    download([big], quiet)
    assert [offset >> 20 for _, offset in Flaky.reads] == [0, *[12] * TRIES]
    assert [path.name for path in tmp_path.iterdir()] == ["big"]


def test_another_file_than_was_listed_is_refused(remote: Flaky, tmp_path: Path) -> None:
    modified = int(remote.info("/d/a")["created"].timestamp() * 1000)
    here = str(tmp_path / "a")
    assert download([FileCopy(here, "flaky:///d/a", 5, modified)], quiet) == (1, 5)
    for problem, wrong in {
        "flaky:///d/a: has changed since the job was submitted: it had 4 bytes, and has 5": FileCopy(
            "", "flaky:///d/a", 4
        ),
        "flaky:///d/a: has changed since the job was submitted: it was written again": FileCopy(
            "", "flaky:///d/a", 5, 1
        ),
        "flaky:///d: has changed since the job was submitted: it is a directory now": FileCopy("", "flaky:///d", 5),
        "flaky:///d/b: no such file: it was there when the job was submitted": FileCopy("", "flaky:///d/b", 5),
    }.items():
        with pytest.raises(StagingError) as error:
            download([replace(wrong, path=str(tmp_path / "new"))], quiet)
        assert str(error.value) == problem
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_download_without_room_leaves_nothing(remote: Flaky, tmp_path: Path) -> None:
    remote.pipe("/d/huge", b"1")
    with pytest.raises(StagingError, match="no space left"):
        download([FileCopy(str(tmp_path / "a"), "flaky:///d/huge", 1 << 60)], quiet)
    assert list(tmp_path.iterdir()) == []


def test_copies_are_of_all_that_is_there(tmp_path: Path) -> None:
    assert list_copies(str(tmp_path), "file:///x") == ([], ["file:///x"])
    (tmp_path / "d/e").mkdir(parents=True)
    os.mkfifo(tmp_path / "d/pipe")
    (tmp_path / "d/f").write_text("1")
    (tmp_path / "linked").symlink_to("d/f")
    left_out: list[str] = []
    copies, empty = list_copies(str(tmp_path), "file:///x", lambda path, reason: left_out.append(path))
    assert copies == [FileCopy(str(tmp_path / name), f"file:///x/{name}") for name in ("d/f", "linked")]
    assert (empty, left_out) == (["file:///x/d/e"], [str(tmp_path / "d/pipe")])


def test_copies_keep_what_a_file_may_be_used_for(tmp_path: Path) -> None:
    copies = []
    for name, mode in (("private", 0o600), ("program", 0o755), ("plain", 0o644)):
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(mode)
        copies.append(FileCopy(str(tmp_path / name), uris.of_local(tmp_path / "out" / name)))
    upload(copies, lambda *_: None)
    modes = {each.name: each.stat().st_mode & 0o777 for each in (tmp_path / "out").iterdir()}
    assert modes == {"private": 0o600, "program": 0o755, "plain": 0o644}


@pytest.mark.parametrize("name", ["", "worker-0"])
def test_a_private_directory_stays_private_in_an_output(tmp_path: Path, name: str) -> None:
    work = tmp_path / "work"
    expected = {"": 0o750, "open": 0o755, "open/private": 0o700, "private": 0o700, "private/d": 0o755, "empty": 0o500}
    for directory in expected:
        (work / "out" / directory).mkdir(parents=True, exist_ok=True)
        if directory != "empty":
            (work / "out" / directory / "f").touch(0o644)
    for directory, mode in expected.items():
        (work / "out" / directory).chmod(mode)
    part, final = tmp_path / ".howdah-j-0/worker-0.1", tmp_path / "final"
    work.chmod(0o700)
    part.parent.mkdir()
    upload_directories(UploadRequest((UploadItem(str(work / "out"), uris.of_local(part), str(work)),)))
    parts = (("worker-0.1", name),)
    commit(OutputCommit(uris.of_local(part.parent), uris.of_local(final), parts=parts), LocalFileSystem())
    modes = {each: (final / name / each).stat().st_mode & 0o777 for each in expected}
    assert modes == {**expected, "empty": 0o700}  # its owner may write there: what lies there can be removed


@pytest.mark.parametrize("source", [".", "model.pt"])
def test_the_mode_of_the_working_directory_is_not_the_outputs(tmp_path: Path, source: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "model.pt").touch()
    work.chmod(0o700)
    item = UploadItem(str(work / source), uris.of_local(tmp_path / "out"), str(work), since_ns=source == ".")
    upload_directories(UploadRequest((item,)))
    assert (tmp_path / "out/model.pt").exists()
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755
