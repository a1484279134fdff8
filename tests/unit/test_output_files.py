"""Tests links in a program's output: those within it are followed, others are named and left out."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest

from howdah import spec
from howdah.checkpoints import (
    directory_lock,
    directory_snapshot,
    directory_sync,
    empty_directories,
    known_files,
    replacement_note,
)
from howdah.inputs import transfer
from howdah.outputs import snapshot as save
from howdah.spec import uris
from howdah.spec.prepared_directories import PreparedDirectories
from howdah.spec.staged import HOWDAHS_FILES
from howdah.storage.output_files import LEADS_BACK, LEADS_NOWHERE, LEADS_OUT, NO_FILE, OutputFiles
from howdah.wire.helper_messages import CopyPartRequest, StoreCheckpointsRequest, UploadItem, UploadRequest

OLD = 1_600_000_000


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working directory in which a program has saved a model, and something that is nobody's output beside it."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("secret")
    work = tmp_path / "work"
    (work / "model/step-2").mkdir(parents=True)
    (work / "model/step-2/weights").write_text("two")
    (work / "shared").mkdir()
    (work / "shared/vocabulary").write_text("words")
    links = {
        "last": "step-2",  # as Lightning's last.ckpt of a sharded checkpoint
        "best": str(work / "model/step-2/weights"),
        "vocabulary": "../shared/vocabulary",
        "step-2/up": "..",
        "self": ".",
        "loop": "loop",
        "gone": "nowhere",
        "key": "../../secret/key",
        "keys": str(tmp_path / "secret"),
        "environment": "/proc/self/environ",
        "chain": "keys/key",
    }
    for name, to in links.items():
        (work / "model" / name).symlink_to(to)
    os.mkfifo(work / "model/pipe")
    for path in (work, *work.rglob("*")):
        if path.is_file() and not path.is_symlink():
            os.utime(path, (OLD, OLD))
    return work


FOUND = ["best", "last/weights", "step-2/weights", "vocabulary"]
OUT = ["chain", "environment", "key", "keys"]
LEFT_OUT = {
    "chain": LEADS_OUT,
    "environment": LEADS_OUT,
    "gone": LEADS_NOWHERE,
    "key": LEADS_OUT,
    "keys": LEADS_OUT,
    "last/up": LEADS_BACK,
    "loop": LEADS_NOWHERE,
    "pipe": NO_FILE,
    "self": LEADS_BACK,
    "step-2/up": LEADS_BACK,
}
TOLD = [f"{name}: {reason}" for name, reason in LEFT_OUT.items()]


def test_links_are_followed_within_the_working_directory(work: Path) -> None:
    files = OutputFiles(str(work / "model"), str(work))
    for _ in range(2):
        assert list(files) == FOUND
        assert files.problems() == TOLD


def test_without_one_within_the_directory_itself(work: Path) -> None:
    files = OutputFiles(str(work / "model"))
    assert list(files) == ["best", "last/weights", "step-2/weights"]
    assert [name for name, reason in files.left_out.items() if reason == LEADS_OUT] == [*OUT, "vocabulary"]


def test_the_directory_itself_may_be_a_link(work: Path) -> None:
    """As an archive is that was unpacked into a cache."""
    (work / "output").symlink_to(work.parent / "secret")
    assert list(OutputFiles(str(work / "output"), str(work))) == ["key"]


def test_an_upload_leaves_out_and_tells(work: Path, tmp_path: Path) -> None:
    item = UploadItem(str(work / "model"), uris.of_local(tmp_path / "out"), root=str(work))
    reply = transfer.upload_directories(UploadRequest((item,)))
    assert reply.left_out == [f"model/{line}" for line in TOLD]
    assert list(OutputFiles(str(tmp_path / "out"))) == FOUND


def test_a_copy_while_it_runs_does_too(work: Path, tmp_path: Path) -> None:
    uri = uris.of_local(tmp_path / "copy")
    reply = save.copy_part(CopyPartRequest(str(work / "model"), uri, uri, root=str(work), settle_s=0.0))
    assert reply.skipped == TOLD
    listed = json.loads((tmp_path / "copy" / save.SAVED).read_text())["files"]
    assert sorted(listed) == FOUND


def test_a_mirror_of_checkpoints_does_too(work: Path, tmp_path: Path) -> None:
    uri = uris.of_local(tmp_path / "mirror")
    reply = directory_sync.store_checkpoints(
        StoreCheckpointsRequest(str(work / "model"), uri, root=str(work), settle_s=0.0, last=True)
    )
    assert reply.skipped == TOLD
    assert list(OutputFiles(str(tmp_path / "mirror"))) == FOUND


def test_what_goes_meanwhile_is_gone(work: Path) -> None:
    files = iter(OutputFiles(str(work / "model"), str(work)))
    assert next(files) == "best"
    (work / "model/step-2/weights").unlink()
    for name in ("step-2/up", "last"):
        (work / "model" / name).unlink()
    (work / "model/step-2").rmdir()
    assert list(files) == ["vocabulary"]
    assert directory_snapshot.list_files(str(work / "none")) == {}


def test_a_file_is_an_output_of_its_own(tmp_path: Path) -> None:
    for name in ("model.pt", "other.pt"):
        (tmp_path / name).touch()
    (tmp_path / "last.pt").symlink_to("model.pt")
    (tmp_path / "model.pt.d").mkdir()
    assert list(OutputFiles(str(tmp_path / "model.pt"), str(tmp_path))) == ["model.pt"]
    assert list(OutputFiles(str(tmp_path / "last.pt"), str(tmp_path))) == ["last.pt"]


def test_of_the_working_directory_what_has_changed_since_the_start(tmp_path: Path) -> None:
    for name in ("code/same.py", "code/changed.py", "data", "howdah-environment/a"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "code/empty").mkdir()
    (tmp_path / "pretrained/sub").mkdir(parents=True)
    (tmp_path / "pretrained/sub/config").touch()
    time.sleep(0.02)  # the file system's clock has moved on
    (tmp_path / "mark").touch()
    since_ns = (tmp_path / "mark").stat().st_ctime_ns
    others = ("runs/.howdah-mirror.json", "howdah-environment/b")
    for name in (".howdah-notes", ".howdahignore", "code/changed.py", "runs/1/.howdah", "runs/1/e", *others):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("new")
    (tmp_path / "link").symlink_to("data")
    (tmp_path / "runs/2").mkdir()
    (tmp_path / "pretrained").rename(tmp_path / "model")
    (tmp_path / "code/new").touch()
    others, prepared = ["howdah-environment", "mark"], PreparedDirectories(("code", "pretrained", "pretrained/sub"))
    files = OutputFiles(str(tmp_path), str(tmp_path), since_ns=since_ns, others=others, prepared=prepared)
    assert list(files) == [
        *(".howdah-notes", ".howdahignore", "code/changed.py", "code/new"),
        *("link", "model/sub/config", "runs/1/.howdah", "runs/1/e"),
    ]
    assert files.empty == ["runs/2"]


def test_what_howdah_makes_among_a_programs_files_is_known_by_its_name() -> None:
    """A text of the source that begins so is such a name, or one of something that is made elsewhere."""
    made = {
        f".howdah-{name}" for name in ("started", "layers", "preflight", "mpi", "part", "copy-", "master-", "before-")
    }
    kept = {directory_lock.NAME, known_files.MEMORY, empty_directories.EMPTY, directory_sync.UNFINISHED}
    kept |= {replacement_note.NAME}
    elsewhere = {".howdah", ".howdahignore", ".howdah-"}  # homes, the job file's directory, and beside outputs
    source = Path(spec.__file__).parents[1]
    texts = [path.read_text("utf-8") for path in source.rglob("*.py") if not path.name.endswith("_pb2.py")]
    found = {name for text in texts for name in re.findall(r"""["'](\.howdah[\w.-]*)""", text)}
    assert found == made | kept | elsewhere
    endings = {".howdah-preflight": "-17", ".howdah-part": "-0a1b", ".howdah-copy-": "0a1b", ".howdah-master-": "a_8"}
    endings[".howdah-before-"] = "local-1"
    for name in made | kept:
        assert HOWDAHS_FILES.fullmatch(name + endings.get(name, "")), name
    assert not any(map(HOWDAHS_FILES.fullmatch, (*elsewhere, ".howdah-notes", "howdah-lease")))
