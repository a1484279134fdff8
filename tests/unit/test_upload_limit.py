"""Tests that an upload is given up when nothing moves any more, however long it takes."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from howdah.checkpoints.directory_sync import DirectorySync
from howdah.executor.event_loop import EventLoop
from howdah.executor.io.directory_sync import CheckpointSyncRunner
from howdah.executor.io.transfer import TransferProgress, start_transfer
from howdah.inputs.transfer import upload
from howdah.spec import uris
from howdah.storage.filesystem import CHUNK
from howdah.wire.helper_messages import DownloadRequest, FileCopy, UploadItem, UploadRequest
from howdah.wire.messages import CheckpointSyncOrder

LIMIT_S = 60.0


class Helper:
    """Stands for the loop's reaper: the helper that it starts says what the test lets it say."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(["sleep", "600"], start_new_session=True)

    def spawn(self, command: Sequence[str], environment: object, streams: Sequence[int], *_: Any, **__: Any) -> int:
        self.output = os.dup(streams[1])
        return self.process.pid

    def says(self, files: int, size: int) -> None:
        os.write(self.output, json.dumps({"done_files": files, "done_bytes": size}).encode() + b"\n")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.output)


@pytest.fixture
def helper() -> Iterator[Helper]:
    made = Helper()
    yield made
    made.close()


def run(helper: Helper, request: DownloadRequest | UploadRequest, said: Sequence[tuple[int, int]]) -> str:
    """Return why the transfer was ended which says something every 59 seconds, and then nothing for a minute."""
    now = [0.0]
    loop = EventLoop(lambda: now[0])
    loop.reaper = helper  # type: ignore[assignment]
    transfer = start_transfer(loop, request, LIMIT_S, lambda _: None, TransferProgress())
    for files, size in said:
        now[0] += LIMIT_S - 1
        helper.says(files, size)
        loop.run_once()
        assert transfer.stop_reason == "" or isinstance(request, DownloadRequest)
    now[0] += LIMIT_S
    loop.run_once()
    return transfer.stop_reason


def test_an_upload_ends_only_when_nothing_moves(helper: Helper) -> None:
    why = run(
        helper, UploadRequest((UploadItem("/w/out", "hdfs://h/out", "/w", ()),)), [(0, 5), (0, 6), (1, 6), (1, 7)]
    )
    assert why == (
        "the upload was given up: nothing was moved for 60 s (`timeouts.localise`), after 1 files and 7 bytes"
    )
    assert helper.process.wait() != 0


def test_an_upload_that_only_says_that_it_is_there_ends(helper: Helper) -> None:
    request = UploadRequest((UploadItem("/w/out", "hdfs://h/out", "/w", ()),))
    now = [0.0]
    loop = EventLoop(lambda: now[0])
    loop.reaper = helper  # type: ignore[assignment]
    transfer = start_transfer(loop, request, LIMIT_S, lambda _: None, TransferProgress())
    for _ in range(3):
        now[0] += LIMIT_S / 3
        helper.says(0, 0)
        loop.run_once()
    assert "nothing was moved for 60 s" in transfer.stop_reason


def test_a_copy_of_checkpoints_ends_only_when_nothing_moves(helper: Helper) -> None:
    now = [0.0]
    loop = EventLoop(lambda: now[0])
    loop.reaper = helper  # type: ignore[assignment]
    runner = CheckpointSyncRunner(loop, CheckpointSyncOrder("c", "hdfs://h/c"), "/w", LIMIT_S)
    runner.store(False, lambda _: None)
    copy = runner._helper
    assert copy is not None
    for size in range(1, 4):
        now[0] += LIMIT_S - 1
        helper.says(0, size)
        loop.run_once()
        assert copy.stop_reason == ""
    now[0] += LIMIT_S
    loop.run_once()
    assert copy.stop_reason == "nothing was moved for 60 s (`timeouts.localise`)"


def test_a_copy_of_checkpoints_says_what_it_moves(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here/model").write_bytes(bytes(2 * CHUNK + 5))
    sync, said = DirectorySync(str(tmp_path / "here"), uris.of_local(tmp_path / "there")), list[tuple[int, int]]()
    sync.report = lambda files, size: said.append((files, size))
    sync.up(0.0)
    assert said == [(0, CHUNK), (0, 2 * CHUNK), (0, 2 * CHUNK + 5)]


def test_a_download_has_its_time(helper: Helper) -> None:
    why = run(helper, DownloadRequest((FileCopy("/w/in", "hdfs://h/in"),)), [(0, 5), (0, 6)])
    assert why == "the download took longer than 60 s (0 of 1 files done)"


def test_the_bytes_of_a_file_count_while_it_is_uploaded(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model")
    moved = threading.Event()

    def report(files: int, size: int) -> None:
        if files == 0 and size > 0:
            moved.set()

    def write() -> None:
        with (tmp_path / "model").open("wb", buffering=0) as model:
            for _ in range(300):
                model.write(b"1")
                if moved.wait(0.1):
                    return

    writer = threading.Thread(target=write)
    writer.start()
    files, size = upload([FileCopy(str(tmp_path / "model"), uris.of_local(tmp_path / "out" / "model"))], report)
    writer.join()
    assert moved.is_set()
    assert (files, size) == (1, (tmp_path / "out" / "model").stat().st_size)
