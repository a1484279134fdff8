"""Tests that files are written whole, or not at all and with a word, where a full disk takes only their beginning.

A limit on the size of files stands for both: the kernel takes what fits, and refuses the next write.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from howdah.errors import StagingError
from howdah.localfiles.own_copy import copy_file
from howdah.outputs.commit import OutputCommit, commit
from howdah.spec import uris
from howdah.storage.local import LocalFileSystem

FILES = LocalFileSystem()
ROOM = 600_000
CONTENT = os.urandom(ROOM + 1000)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file that fits no more once files are limited to ROOM bytes, as they are in this test."""
    (tmp_path / "source").write_bytes(CONTENT)
    with limited():
        yield tmp_path / "source"


@contextlib.contextmanager
def limited() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


WRITES: dict[str, Callable[[Path, Path], object]] = {
    "put": lambda source, target: FILES.put(source, uris.of_local(target)),
    "get": lambda source, target: FILES.get(uris.of_local(source), target),
    "write_bytes": lambda source, target: FILES.write_bytes(uris.of_local(target), source.read_bytes()),
    "create_new": lambda source, target: FILES.create_new(uris.of_local(target), source.read_bytes()),
}


@pytest.mark.parametrize("how", WRITES)
def test_a_file_appears_whole_or_not_at_all(small: Path, how: str) -> None:
    target = small.with_name("target")
    with pytest.raises(StagingError, match=r"file too large$" if how == "create_new" else r"target: file too large$"):
        WRITES[how](small, target)
    assert [path.name for path in small.parent.iterdir()] == ["source"]


@pytest.mark.parametrize("how", ["put", "get", "write_bytes"])
def test_what_was_there_stays(small: Path, how: str) -> None:
    target = small.with_name("target")
    target.write_text("before")
    with pytest.raises(StagingError):
        WRITES[how](small, target)
    assert target.read_text() == "before"


def test_a_log_ends_with_what_was_appended_before(small: Path) -> None:
    log = small.with_name("log")
    FILES.append(uris.of_local(log), b"a line\n")
    with pytest.raises(StagingError, match=r"log: file too large$"):
        FILES.append(uris.of_local(log), CONTENT)
    assert log.read_text() == "a line\n"


def test_a_copy_of_code_names_the_file(small: Path) -> None:
    with pytest.raises(OSError, match="target"):
        list(copy_file(str(small), str(small.with_name("target"))))
    assert [path.name for path in small.parent.iterdir()] == ["source"]


def test_an_output_that_cannot_be_marked_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = OutputCommit(temporary=uris.of_local(tmp_path / ".howdah-job-0"), final=uris.of_local(tmp_path / "model"))
    FILES.mkdirs(output.gathered)
    FILES.write_bytes(uris.join(output.gathered, "weights"), b"w")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with pytest.raises(StagingError, match=r"_SUCCESS: file too large; the output is kept in .*/_commit$"):
            commit(output, FILES)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    commit(output, FILES)
    assert (tmp_path / "model" / "weights").read_bytes() == b"w"
