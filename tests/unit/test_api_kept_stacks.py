"""Tests the answer with the stacks that were kept last, of jobs whose logs may name what is not theirs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from howdah.api import kept_stacks
from howdah.api.kept_stacks import read_last_stacks
from howdah.errors import NotFound
from howdah.spec import uris
from howdah.spec.view import JobView
from howdah.storage.files_of_owner import NOBODY

TEXT = "==> worker:0 <==\nThread 1\n    <module> (a.py:1)\n\n==> worker:1 <==\nThread 2\n"
STACKS = {"worker:0": "Thread 1\n    <module> (a.py:1)\n", "worker:1": "Thread 2\n"}


@dataclass
class Job:
    directory: str
    view: JobView
    shown_owner: str = ""
    conf_dir: str = ""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A job's directory, beside a key of whoever reads it."""
    (tmp_path / "key").write_text("==> worker:0 <==\nsecret")
    (tmp_path / "job/stacks").mkdir(parents=True)
    (tmp_path / "job/stacks/1.txt").write_text(TEXT)
    return tmp_path / "job"


def job_of(directory: Path, *uris_kept: str, owner: str = "") -> Any:
    return Job(uris.of_local(directory), JobView(stacks=list(uris_kept)), owner)


def test_the_last_are_read_task_by_task(directory: Path) -> None:
    kept = uris.of_local(directory / "stacks/1.txt")
    found = read_last_stacks(job_of(directory, f"{directory}/stacks/0.txt", kept))
    assert found == {"stacks": STACKS, "uri": kept, "complete": True}
    elsewhere = "hdfs://nn1/mounted/job/stacks/1.txt"  # as the master named the same directory
    assert read_last_stacks(job_of(directory, elsewhere))["stacks"] == STACKS


def test_an_answer_has_a_limit(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_stacks, "MAX_BYTES", len(TEXT) - 1)
    found = read_last_stacks(job_of(directory, uris.of_local(directory / "stacks/1.txt")))
    assert (list(found["stacks"]), found["complete"]) == (list(STACKS), False)


@pytest.mark.parametrize("name", ["key", "job/stacks/../../key", "job/stacks", "job/stacks/2.txt"])
def test_nothing_else_is_read_that_a_log_names(directory: Path, name: str) -> None:
    with pytest.raises(NotFound):
        read_last_stacks(job_of(directory, f"file://{directory.parent}/{name}"))


def test_a_link_to_what_another_owns_is_not_followed(directory: Path) -> None:
    (directory / "stacks/1.txt").unlink()
    (directory / "stacks/1.txt").symlink_to(directory.parent / "key")
    kept = uris.of_local(directory / "stacks/1.txt")
    for owner in (NOBODY, str(os.getuid() + 1)):
        with pytest.raises(NotFound):
            read_last_stacks(job_of(directory, kept, owner=owner))


def test_a_job_without_stacks_has_none(directory: Path) -> None:
    with pytest.raises(NotFound, match="no stacks were kept"):
        read_last_stacks(job_of(directory))
