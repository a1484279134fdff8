"""Files that come over a connection which breaks, on a filesystem made for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from howdah.data.fs import Broken
from howdah.data.transfer import Copy, below, download, upload
from howdah.errors import StagingError


class Flaky(MemoryFileSystem):
    """Breaks the connection the first `faults` times a file is opened."""

    protocol = "flaky"
    faults: ClassVar[dict[str, int]] = {}
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode == "rb" and self.faults.get(path, 0) > 0:
            self.faults[path] -= 1
            raise RuntimeError("connection reset")
        return super()._open(path, mode, **options)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.replace("flaky://", "memory://"))


fsspec.register_implementation("flaky", Flaky, clobber=True)


@pytest.fixture
def remote() -> Flaky:
    Flaky.faults.clear()
    Flaky.store.clear()
    fs = Flaky()
    fs.pipe("/d/a", b"12345")
    return fs


def quiet(files: int, size: int) -> None:
    pass


def test_a_broken_connection_is_tried_again(remote: Flaky, tmp_path: Path) -> None:
    Flaky.faults["/d/a"] = 2
    assert download([Copy(str(tmp_path / "x/y/a"), "flaky:///d/a", 5)], quiet) == (1, 5)
    assert (tmp_path / "x/y/a").read_bytes() == b"12345"


def test_not_for_ever(remote: Flaky, tmp_path: Path) -> None:
    Flaky.faults["/d/a"] = 9
    with pytest.raises(Broken, match="flaky:///d/a: connection reset"):
        download([Copy(str(tmp_path / "a"), "flaky:///d/a", 5)], quiet)
    assert list(tmp_path.iterdir()) == []
    assert Flaky.faults["/d/a"] == 6


def test_what_is_here_is_not_fetched_again(remote: Flaky, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"54321")
    assert download([Copy(str(tmp_path / "a"), "flaky:///d/a", 5)], quiet) == (1, 5)
    assert (tmp_path / "a").read_bytes() == b"54321"


def test_many_more_than_threads(remote: Flaky, tmp_path: Path) -> None:
    for number in range(500):
        remote.pipe(f"/many/{number % 7}/{number}", b"1" * number)
    copies = [Copy(str(tmp_path / f"{n % 7}/{n}"), f"flaky:///many/{n % 7}/{n}", n) for n in range(500)]
    reports: list[int] = []
    assert download(copies, lambda files, size: reports.append(files)) == (500, sum(range(500)))
    assert reports == sorted(reports)
    assert reports[-1] == 500
    back = list(below(str(tmp_path), "flaky:///back"))
    assert upload(back, quiet) == (500, sum(range(500)))
    assert remote.cat("/back/3/3") == b"111"


def test_no_room(remote: Flaky, tmp_path: Path) -> None:
    with pytest.raises(StagingError, match="no space left"):
        download([Copy(str(tmp_path / "a"), "flaky:///d/a", 1 << 60)], quiet)


def test_below_is_empty_where_nothing_is(tmp_path: Path) -> None:
    assert list(below(str(tmp_path / "none"), "file:///x")) == []
    (tmp_path / "d/e").mkdir(parents=True)
    assert list(below(str(tmp_path), "file:///x")) == []
    os.mkfifo(tmp_path / "d/pipe")
    (tmp_path / "d/f").write_text("1")
    assert list(below(str(tmp_path), "file:///x")) == [Copy(str(tmp_path / "d/f"), "file:///x/d/f")]
