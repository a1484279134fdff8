"""Tests files that a program has made and nobody may read: they are left out and named, and all others are kept."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.checkpoints import directory_sync, event_file_sync
from howdah.errors import StagingError
from howdah.inputs import transfer
from howdah.localfiles.tree_stream import CopyProblem, receive_tree, send_tree
from howdah.outputs import snapshot
from howdah.spec import uris
from howdah.storage.output_files import NOT_READABLE, OutputFiles
from howdah.wire.helper_messages import (
    CopyPartRequest,
    EventFileSyncRequest,
    StoreCheckpointsRequest,
    UploadItem,
    UploadRequest,
)

NOBODY = 65534


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of a user without rights, who this process is for a while: root may read everything."""
    found = Path(tempfile.mkdtemp())
    if os.geteuid():
        yield found
    else:
        os.chown(found, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            yield found
        finally:
            os.seteuid(0)
    for directory, _, _ in os.walk(found):
        Path(directory).chmod(0o700)
    shutil.rmtree(found)


@pytest.fixture
def out(place: Path) -> Path:
    """What a program has made, with a file and a directory that can't be read, and one that can't be looked into."""
    made = place / "work/out"
    for name in ("a", "b", "closed/c", "dark/d", "open/e"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name)
    (made / "b").chmod(0)
    (made / "link").symlink_to("b")
    (made / "closed").chmod(0)
    (made / "dark").chmod(0o600)
    return made


KEPT = ["a", "open/e"]
TOLD = [f"{name}: {NOT_READABLE}" for name in ("b", "closed", "dark", "link")]


def test_an_output_is_kept_without_them(out: Path, place: Path) -> None:
    item = UploadItem(str(out), uris.of_local(place / "kept"), root=str(out.parent))
    reply = transfer.upload_directories(UploadRequest((item,)))
    assert reply.left_out == [f"out/{line}" for line in TOLD]
    assert (reply.files, list(OutputFiles(str(place / "kept")))) == (2, KEPT)


def test_an_output_that_is_one_such_file_is_empty(out: Path, place: Path) -> None:
    item = UploadItem(str(out / "b"), uris.of_local(place / "kept"), root=str(out.parent))
    reply = transfer.upload_directories(UploadRequest((item,)))
    assert (reply.files, reply.empty) == (0, [str(out / "b")])
    assert reply.left_out == [f"out/b: {NOT_READABLE}"]


def test_a_directory_that_is_closed_itself_is_an_error(out: Path, place: Path) -> None:
    out.chmod(0)
    item = UploadItem(str(out), uris.of_local(place / "kept"), root=str(out.parent))
    with pytest.raises(StagingError, match=r"work/out: Permission denied"):
        transfer.upload_directories(UploadRequest((item,)))


def test_of_the_working_directory_those_are_told_that_are_new(out: Path) -> None:
    later = (out / "a").stat().st_ctime_ns + 10**12
    files = OutputFiles(str(out), since_ns=later)
    assert (list(files), files.problems()) == ([], [])


def test_a_snapshot_is_kept_without_them(out: Path, place: Path) -> None:
    uri = uris.of_local(place / "snapshot")
    reply = snapshot.copy_part(CopyPartRequest(str(out), uri, uri, root=str(out.parent), settle_s=0.0))
    assert (reply.files, reply.skipped) == (2, TOLD)


@pytest.mark.parametrize("rule", ["", "all"])
def test_checkpoints_are_stored_without_them(out: Path, place: Path, rule: str) -> None:
    request = StoreCheckpointsRequest(
        str(out), uris.of_local(place / "stored"), root=str(out.parent), valid=rule, settle_s=0.0, last=True
    )
    reply = directory_sync.store_checkpoints(request)
    assert (reply.files, reply.skipped) == (2, TOLD)
    (out / "closed").chmod(0o700)
    (out / "b").chmod(0o600)
    assert directory_sync.store_checkpoints(request).files == 3  # with what the link leads to
    (out / "closed").chmod(0)
    (out / "b").chmod(0)
    (out / "a").unlink()
    directory_sync.store_checkpoints(request)
    there = [name for name in OutputFiles(str(place / "stored")) if not name.startswith(".")]
    assert there == ["b", "closed/c", "link", "open/e"], "what was stored stays, what was removed goes"


def test_event_files_are_sent_without_them(out: Path, place: Path) -> None:
    reply = event_file_sync.send_event_files(EventFileSyncRequest(str(out), uris.of_local(place / "sent"), last=True))
    assert sorted(reply.sent) == KEPT
    assert reply.error == f"{out}/b: permission denied"


def test_a_copy_of_a_task_is_made_without_them(out: Path, place: Path) -> None:
    near, far = socket.socketpair()
    named: list[str] = []
    with near, far:
        sending = threading.Thread(target=lambda: named.extend(send_tree(out, near)))
        sending.start()
        receive_tree(far, b"", place / "copied", "out")
        sending.join()
    assert named == ["b", "closed", "dark/d"]
    assert sorted(path.name for path in (place / "copied").rglob("*") if path.is_file()) == ["a", "e"]
    near, far = socket.socketpair()
    with near, far:
        send_tree(out / "b", near)
        with pytest.raises(CopyProblem, match="b: Permission denied"):
            receive_tree(far, b"", place / "alone", "b")
