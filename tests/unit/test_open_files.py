"""Tests that a file is not considered missing because this process has too many open files."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from howdah.checkpoints import directory_snapshot, file_validation
from howdah.engines.local.cgroup import MemoryGroup
from howdah.engines.processes import kill_marked, start_of
from howdah.sandbox.process import Process


@contextlib.contextmanager
def no_more_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = next(number for number in range(1000) if not os.path.lexists(f"/proc/self/fd/{number}"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


LOOKS: dict[str, Callable[[Path], object]] = {
    "a process": lambda _: start_of(os.getpid()),
    "a process of the sandbox": lambda _: Process.from_pid(os.getpid()),
    "processes of a container": lambda _: kill_marked("nosuch."),
    "processes of a control group": lambda directory: MemoryGroup(directory, 2).kill(),
    "files of a directory": lambda directory: directory_snapshot.list_files(str(directory)),
    "who writes": lambda directory: directory_snapshot._open_for_writing(str(directory)),
}


@pytest.mark.parametrize("what", LOOKS)
def test_too_many_open_files_are_an_error(what: str, tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("")
    LOOKS[what](tmp_path)
    with no_more_files(), pytest.raises(OSError, match="Too many open files"):
        LOOKS[what](tmp_path)


def test_a_checkpoint_counts_as_flawed(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    assert not file_validation.describe_defect(str(file))
    with no_more_files():
        assert file_validation.describe_defect(str(file)) == "it cannot be read: Too many open files"
    file.unlink()
    assert file_validation.describe_defect(str(file)) is None
