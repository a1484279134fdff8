"""Tests which locks of checkpoints a new job releases: those of jobs that have ended or are forgotten."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from howdah.checkpoints import directory_lock
from howdah.client.checkpoint_lock import release_stale_lock
from howdah.config.user_file import user_file
from howdah.errors import StagingError
from howdah.outputs.commit import reserve
from howdah.spec import JobSpec, Plan, Role, StagedJob, uris
from howdah.spec.job import Checkpoint
from howdah.storage.fsspec_adapter import FsspecFileSystem


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a directory of checkpoints, a home of howdah's own and a list of hosts for `--on ssh`."""
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    for name in ("HADOOP_CONF_DIR", "HOWDAH_ENGINE", "HOWDAH_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    configure(f"ssh: {{hosts: nowhere, home: {tmp_path}/shared}}\n")
    return tmp_path / "checkpoint"


def configure(text: str) -> None:
    path = user_file(os.environ)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def is_released(directory: Path, holder: str, user: str = "") -> bool:
    """Return whether the lock that a job holds is released before another job is submitted."""
    job = JobSpec({"worker": Role("x")}, checkpoint=Checkpoint(uris.of_local(directory)))
    lock = directory / directory_lock.NAME
    lock.unlink(missing_ok=True)
    reserve(job, holder)
    if user:
        lock.write_text(json.dumps({**json.loads(lock.read_text()), "user": user}))
    with contextlib.suppress(StagingError):
        release_stale_lock(Plan("local", StagedJob(job, "")))
        assert not lock.exists()
    return not lock.exists()


def test_a_forgotten_job_of_this_user_holds_no_lock(checkpoint: Path) -> None:
    assert is_released(checkpoint, "ssh-20260101-000000-00000000")
    assert not is_released(checkpoint, "ssh-20260101-000000-00000000", "somebody")


def test_a_job_that_may_run_elsewhere_keeps_its_lock(checkpoint: Path) -> None:
    assert not is_released(checkpoint, "local-20260101-000000-00000000")  # another machine's, perhaps
    assert not is_released(checkpoint, "mystery-1")
    assert not is_released(checkpoint, "kubernetes-1")  # no cluster is configured


def test_a_cluster_that_cannot_be_asked_may_run_the_job(checkpoint: Path, tmp_path: Path) -> None:
    known = f"ssh: {{hosts: nowhere, home: {tmp_path}/shared}}\n"
    configure(f"{known}profiles: {{b: {{cache_days: soon}}}}\n")
    assert not is_released(checkpoint, "ssh-20260101-000000-00000000")


@pytest.mark.parametrize(
    "refusal", [TypeError("unexpected keyword argument 'mode'"), NotImplementedError(), OSError(errno.ENOSYS, "no")]
)
def test_a_store_that_cannot_refuse_to_replace_an_object_is_locked_too(refusal: Exception) -> None:
    class Store(MemoryFileSystem):
        cachable = False
        store: dict[str, Any] = {}  # noqa: RUF012 - as that of the class above

        def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
            if mode == "create":
                raise refusal
            super().pipe_file(path, value, **options)

    fs = FsspecFileSystem("oss://b", Store())
    directory = f"memory:///{type(refusal).__name__}"
    directory_lock.acquire(fs, directory, "local-1")
    with pytest.raises(StagingError, match="is used by local-1"):
        directory_lock.acquire(fs, directory, "local-2")


def test_of_two_jobs_that_lock_a_directory_of_an_object_store_at_once_one_alone_does() -> None:
    both_copy = threading.Barrier(2)

    class Store(MemoryFileSystem):
        cachable = False
        store: dict[str, Any] = {}  # noqa: RUF012 - as that of the class above

        def cp_file(self, path1: str, path2: str, **options: Any) -> None:
            both_copy.wait(10)
            super().cp_file(path1, path2, **options)

    fs = FsspecFileSystem("s3://b", Store())

    def lock(job: str) -> bool:
        try:
            directory_lock.acquire(fs, "memory:///b/checkpoints", job)
        except StagingError as error:
            return "memory:///b/checkpoints is used by local-" not in str(error)
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(lock, ("local-1", "local-2"))) == [False, True]
