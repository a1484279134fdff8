"""Tests when the newest stored checkpoint gives way to what a program writes in its place."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from test_directory_sync import Task

from howdah.checkpoints.directory_sync import store_checkpoints
from howdah.spec import uris
from howdah.wire.helper_messages import StoreCheckpointsRequest


@pytest.fixture
def chief(tmp_path: Path) -> Task:
    return Task(tmp_path, "chief")


def metadata(ranks: int) -> bytes:
    """What torch.distributed.checkpoint writes last: it names the files of all ranks."""
    return pickle.dumps([f"__{rank}_0.distcp" for rank in range(ranks)])


def test_each_of_several_tasks_stores_its_part_although_all_have_fetched_the_whole(chief: Task) -> None:
    for name, data in (("s/__0_0.distcp", b"1"), ("s/__1_0.distcp", b"1"), ("s/.metadata", metadata(2))):
        chief.write(name, data)
    chief.up()
    chief.write("s/__0_0.distcp", b"2")
    chief.write("s/.metadata", metadata(3))  # the third part is written by another task
    request = StoreCheckpointsRequest(str(chief.path), uris.of_local(chief.shared), is_alone=False, settle_s=0.0)
    assert store_checkpoints(request).skipped == []
    assert (chief.shared / "s/__0_0.distcp").read_bytes() == b"2"
    assert (chief.shared / "s/.metadata").read_bytes() == metadata(3)
