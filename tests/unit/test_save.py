"""Tests one snapshot of an output: its parts, the whole, what later ones refer to, and which old ones are kept."""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path

import pytest

from howdah.checkpoints import directory_lock
from howdah.errors import StagingError
from howdah.outputs import snapshot
from howdah.outputs.commit import abandon, reserve
from howdah.outputs.snapshot import PublishSnapshotReply, PublishSnapshotRequest
from howdah.spec import Checkpoint, JobSpec, Output, Role, Save, uris
from howdah.storage import snapshot_places
from howdah.storage.factory import filesystem
from howdah.wire.helper_messages import CopyPartRequest

FS = filesystem("file:///")


class Job:
    """One task that writes `output`, and snapshots of it below `directory`."""

    def __init__(self, directory: Path, keep: int = 0, incremental: bool = False, part: str = "worker-0") -> None:
        self.directory, self.keep, self.incremental, self.part = directory, keep, incremental, part
        self.output = directory / "work"
        self.output.mkdir(parents=True)
        self.to = uris.of_local(directory / "out.saved") + "/"
        self.number, self.last = 0, ""

    def write(self, name: str, text: str, age_s: float = 60.0) -> None:
        path = self.output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        moment = time.time() - age_s
        os.utime(path, (moment, moment))

    def take_snapshot(self) -> PublishSnapshotReply:
        """Make one; what `publish` says."""
        self.number += 1
        name = f"2026_11_21_15_00_{self.number:02d}"
        grown = uris.join(self.to, ".howdah-j-0-saves", name)
        final = self.to + name
        self.taken = snapshot.copy_part(
            CopyPartRequest(
                path=str(self.output),
                uri=uris.join(grown, self.part),
                final=uris.join(final, self.part),
                previous=uris.join(self.last, self.part) if self.incremental and self.last else "",
                settle_s=0.0,
            )
        )
        answer = snapshot.publish(PublishSnapshotRequest(grown, final, self.to, self.keep))
        self.last = final
        return answer

    def read(self, number: int) -> dict[str, str]:
        """What a snapshot holds, wherever it lies."""
        part = uris.join(f"{self.to}2026_11_21_15_00_{number:02d}", self.part)
        return {name: FS.read_bytes(uri).decode() for name, uri in snapshot.part_files(FS, part).items()}

    @property
    def there(self) -> list[str]:
        found = (path for path in (self.directory / "out.saved").rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self.directory / "out.saved")) for path in found)


@pytest.mark.parametrize("part", ["worker-0", ""])
def test_a_private_directory_stays_private_in_a_copy(tmp_path: Path, part: str) -> None:
    job = Job(tmp_path, part=part, incremental=True)
    job.write("private/m.bin", "one")
    (job.output / "private").chmod(0o700)
    job.output.chmod(0o750)
    for number in (1, 2):  # nothing is copied the second time
        job.take_snapshot()
        taken = tmp_path / f"out.saved/2026_11_21_15_00_{number:02d}"
        assert ((taken / part).stat().st_mode & 0o777, taken.parent.stat().st_mode & 0o777) == (0o750, 0o755)
        assert not part or taken.stat().st_mode & 0o777 == 0o755
    assert (taken.with_name("2026_11_21_15_00_01") / part / "private").stat().st_mode & 0o777 == 0o700


def test_a_copy_appears_whole(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.write("m.bin", "one")
    job.write("sub/n.bin", "two")
    assert job.take_snapshot() == PublishSnapshotReply()
    assert job.there == [f"2026_11_21_15_00_01/worker-0/{name}" for name in ("_SAVED", "m.bin", "sub/n.bin")]
    assert job.read(1) == {"m.bin": "one", "sub/n.bin": "two"}
    assert (job.taken.files, job.taken.bytes, job.taken.kept) == (2, 6, 2)


def test_nothing_to_copy_leaves_nothing(tmp_path: Path) -> None:
    job = Job(tmp_path)
    assert job.take_snapshot() == PublishSnapshotReply(empty=True)
    assert job.there == []


def test_a_full_disk_is_that_of_the_snapshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    job = Job(tmp_path)
    job.write("m.bin", "one")
    monkeypatch.setattr("howdah.storage.cpu_throttle.copy_throttled", fail)
    with pytest.raises(StagingError, match=r"out\.saved/.*/m\.bin: no space left on device"):
        job.take_snapshot()


def test_a_name_that_exists_is_refused(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.write("m.bin", "one")
    (tmp_path / "out.saved/2026_11_21_15_00_01").mkdir(parents=True)
    with pytest.raises(StagingError, match="exists already"):
        job.take_snapshot()


@pytest.mark.parametrize("part", ["worker-0", ""])
def test_an_incremental_copy_holds_what_changed_and_refers_to_the_rest(tmp_path: Path, part: str) -> None:
    job = Job(tmp_path, incremental=True, part=part)
    job.write("same.bin", "s")
    job.write("new.bin", "1")
    job.take_snapshot()
    job.write("new.bin", "2", age_s=50)
    job.take_snapshot()
    assert [name for name in job.there if "00_02" in name and "same" in name] == []
    assert job.read(2) == {"same.bin": "s", "new.bin": "2"}
    job.write("newer.bin", "3", age_s=40)
    job.take_snapshot()
    assert job.read(3) == {"same.bin": "s", "new.bin": "2", "newer.bin": "3"}
    assert (job.taken.files, job.taken.kept) == (1, 3)
    first = f"{job.to}2026_11_21_15_00_01"
    there = snapshot.files_in_earlier_snapshots(FS, f"{job.to}2026_11_21_15_00_03")
    assert there[f"{part}/same.bin".lstrip("/")] == uris.join(first, part, "same.bin")
    assert snapshot.files_in_earlier_snapshots(FS, first) == {}
    (tmp_path / "out.saved").rename(tmp_path / "elsewhere")
    moved = snapshot.part_files(FS, uris.join(uris.of_local(tmp_path / "elsewhere"), "2026_11_21_15_00_03", part))
    assert {name: FS.read_bytes(uri).decode() for name, uri in moved.items()}["same.bin"] == "s"


def test_what_somebody_has_removed_is_copied_again(tmp_path: Path) -> None:
    job = Job(tmp_path, incremental=True)
    job.write("m.bin", "one")
    job.take_snapshot()
    job.take_snapshot()
    assert job.taken.files == 0
    shutil.rmtree(tmp_path / "out.saved/2026_11_21_15_00_01")
    job.take_snapshot()
    assert (job.taken.files, job.read(3)) == (1, {"m.bin": "one"})


def test_old_ones_go_but_for_what_newer_ones_refer_to(tmp_path: Path) -> None:
    job = Job(tmp_path, keep=1, incremental=True)
    job.write("same.bin", "s")
    job.write("new.bin", "1")
    job.take_snapshot()
    job.write("new.bin", "2", age_s=50)
    assert job.take_snapshot().removed == (f"{job.to}2026_11_21_15_00_01",)
    assert job.there == [
        "2026_11_21_15_00_01/worker-0/same.bin",
        "2026_11_21_15_00_02/worker-0/_SAVED",
        "2026_11_21_15_00_02/worker-0/new.bin",
    ]
    assert job.read(2) == {"same.bin": "s", "new.bin": "2"}


def test_only_copies_are_pruned(tmp_path: Path) -> None:
    job = Job(tmp_path, keep=1)
    job.write("m.bin", "1")
    (tmp_path / "out.saved/2025_01_01_00_00_00").mkdir(parents=True)
    (tmp_path / "out.saved/2025_01_01_00_00_00/theirs").write_text("x")
    (tmp_path / "out.saved/mine").mkdir()
    for _ in range(3):
        job.take_snapshot()
    assert sorted(path.name for path in (tmp_path / "out.saved").iterdir() if not path.name.startswith(".")) == [
        "2025_01_01_00_00_00",
        "2026_11_21_15_00_03",
        "mine",
    ]


@pytest.mark.parametrize(
    ("to", "name", "grows"),
    [
        ("", "hdfs://n/a/out.saved/T", "hdfs://n/a/out.saved/.howdah-j-1-saves"),
        ("hdfs://n/a/out/interResult_", "hdfs://n/a/out/interResult_T", "hdfs://n/a/.howdah-j-1-saves"),
        ("hdfs://n/a/out/i/interResult_", "hdfs://n/a/out/i/interResult_T", "hdfs://n/a/.howdah-j-1-saves"),
        ("hdfs://n/copies/of-", "hdfs://n/copies/of-T", "hdfs://n/copies/.howdah-j-1-saves"),
    ],
)
def test_snapshots_lie_where_the_output_says(to: str, name: str, grows: str) -> None:
    output = Output("hdfs://n/a/out", save=Save(to=to))
    assert snapshot_places.snapshot_prefix(output) + "T" == name
    assert snapshot.temporary_directory("j", 1, output) == grows


@pytest.mark.parametrize(
    ("to", "left"),
    [
        ("", []),
        ("{}/out.saved/interResult_", []),
        ("{}/out.saved/interResult/interResult_", []),
        ("{}/theirs/copies/of-", ["theirs", "theirs/copies"]),
    ],
)
def test_no_copies_leave_no_directory_of_their_own(to: str, left: list[str], tmp_path: Path) -> None:
    save_to = to.format(uris.of_local(tmp_path))
    job = JobSpec({"worker": Role("x")}, outputs=(Output(uris.of_local(tmp_path / "out"), save=Save(1.0, save_to)),))
    reserve(job, "local-1")
    abandon(job, "local-1")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == left


def job_with_checkpoints(directory: Path) -> JobSpec:
    return JobSpec({"worker": Role("x")}, checkpoint=Checkpoint(uris.of_local(directory)))


def test_a_directory_of_checkpoints_belongs_to_one_job(tmp_path: Path) -> None:
    job = job_with_checkpoints(tmp_path / "deep/ck")
    reserve(job, "local-1")
    reserve(job, "local-1")
    with pytest.raises(StagingError, match=r"checkpoint\.path: .*deep/ck is used by local-1 of .*remove .*lease"):
        reserve(job, "local-2")
    directory_lock.release(FS, job.checkpoint.path, "local-2")
    assert directory_lock.read_lock(FS, job.checkpoint.path) is not None
    abandon(job, "local-1")
    reserve(job, "local-2")
    found = directory_lock.read_lock(FS, job.checkpoint.path)
    assert found is not None
    assert found.job == "local-2"


def test_a_garbled_lock_belongs_to_an_unknown_user(tmp_path: Path) -> None:
    (tmp_path / directory_lock.NAME).write_text("{")
    with pytest.raises(StagingError, match="used by another job of an unknown user"):
        reserve(job_with_checkpoints(tmp_path), "local-1")


def test_places_that_may_not_be_written_are_told_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StagingError, match="not a directory"):
        reserve(job_with_checkpoints(tmp_path / "file/ck"), "local-1")
    outputs = (Output(uris.of_local(tmp_path / "out"), save=Save(to=uris.of_local(tmp_path / "file/copies/") + "/")),)
    with pytest.raises(StagingError, match=r"^outputs\.0\.save: .*not a directory"):
        reserve(JobSpec({"worker": Role("x")}, outputs=outputs), "local-1")
    outputs = (Output(uris.of_local(tmp_path / "file/out")),)
    with pytest.raises(StagingError, match=r"^outputs\.0\.path: .*not a directory"):
        reserve(JobSpec({"worker": Role("x")}, outputs=outputs), "local-1")


def test_no_old_snapshot_is_removed_while_it_is_unknown_what_a_kept_one_needs(tmp_path: Path) -> None:
    job = Job(tmp_path, keep=2, incremental=True)
    job.write("same.bin", "s")
    job.take_snapshot()
    job.take_snapshot()
    listed = tmp_path / "out.saved/2026_11_21_15_00_02/worker-0/_SAVED"
    content = listed.read_bytes()
    listed.write_bytes(b"")
    told = job.take_snapshot()
    assert told.problem.startswith(f"old snapshots were not removed: {uris.of_local(listed)} can't be read: ")
    listed.write_bytes(content)
    assert job.read(2) == {"same.bin": "s"}
    assert job.take_snapshot().removed
    assert job.read(4) == {"same.bin": "s"}
