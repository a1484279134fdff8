"""Tests that an input never takes the place of one of the job's files, nor is taken for it."""

from __future__ import annotations

import random
import tarfile
import zipfile
from pathlib import Path

import pytest

from howdah.executor.io.transfer import PathUnusable, TransferProgress, bring_local
from howdah.spec import Input, JobSpec, Role, uris
from howdah.spec.staged import DataFile, Fetch, StagedJob
from howdah.staging import name_clashes
from howdah.staging.files_wrong import FilesWrong
from howdah.staging.stage import stage
from howdah.wire.helper_messages import FileCopy


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    for name in ("proj/data/a.csv", "proj/model", "in/a.csv", "in/b.csv", "other/model"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    with tarfile.open(tmp_path / "proj.tar", "w") as tar:
        tar.add(tmp_path / "proj", ".")
    with zipfile.ZipFile(tmp_path / "proj.zip", "w") as packed:
        packed.write(tmp_path / "proj/data/a.csv", "data/a.csv")
        packed.write(tmp_path / "proj/model", "model")
    return uris.of_local(tmp_path / "home/state")


def staged(tmp_path: Path, home: str, files: str, path: str, to: str, role: str = "") -> StagedJob:
    of_all, of_role = ((files,), ()) if not role else ((), (files,))
    roles = {"worker": Role("true"), "other": Role("true", files=of_role)}
    return stage(
        JobSpec(roles, files=of_all, inputs=(Input(path, to, share="all", roles=("worker",)),)), tmp_path, home
    )


@pytest.mark.parametrize("files", ["proj#.", "proj.tar#.", "proj.zip#."])
@pytest.mark.parametrize(
    ("path", "to", "clash"),
    [("in", "data", "data/a.csv"), ("other/model", ".", "model"), ("in", "model", "model/a.csv"), ("in", "new", "")],
)
def test_before_anything_starts(tmp_path: Path, home: str, files: str, path: str, to: str, clash: str) -> None:
    if not clash:
        staged(tmp_path, home, files, path, to)
        return
    with pytest.raises(FilesWrong) as error:
        staged(tmp_path, home, files, path, to)
    assert f"inputs.0.to: puts {clash!r} into the working directory, where files.0 has" in str(error.value)


def test_a_directory_and_a_file_of_one_name(tmp_path: Path, home: str) -> None:
    with pytest.raises(FilesWrong, match=r"puts 'data/a.csv' into"):
        staged(tmp_path, home, "proj/data", "in", "data")
    with pytest.raises(FilesWrong, match="puts 'model' into"):
        staged(tmp_path, home, "proj/model", "other/model", ".")


@pytest.mark.parametrize(
    ("files", "path", "to"), [("proj#.", "proj/data/a.csv", "data"), ("proj/model", "proj/model", ".")]
)
def test_the_very_file_that_is_there_is_in_nobodys_way(
    tmp_path: Path, home: str, files: str, path: str, to: str
) -> None:
    (found,) = staged(tmp_path, home, files, path, to).inputs
    assert [file.is_shipped for file in found.files] == [True]
    name = tmp_path / "work" / to / found.files[0].name
    name.parent.mkdir(parents=True)
    name.write_bytes((tmp_path / path).read_bytes())
    list(bring_local([Fetch(to, found.files)], str(tmp_path / "work"), {}, TransferProgress(), []))


def test_what_stays_here_or_is_for_other_tasks_is_in_nobodys_way(tmp_path: Path, home: str) -> None:
    staged(tmp_path, home, "proj#.", "in", "data", role="other")
    (tmp_path / "proj/.howdahignore").write_text("a.csv")
    staged(tmp_path, home, "proj#.", "in", "data")


@pytest.mark.parametrize("kind", ["xz", "gz", "bz2"])
def test_a_damaged_archive_is_told_by_whoever_sends_it(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"proj.tar.{kind}"
    with tarfile.open(path, f"w:{kind}") as tar:
        (tmp_path / "noise").write_bytes(random.Random(1).randbytes(1 << 20))
        for name in ("noise", "proj.tar"):
            tar.add(tmp_path / name, name)
    data = bytearray(path.read_bytes())
    data[1 << 19 : (1 << 19) + 4000] = bytes(4000)  # it can be opened
    path.write_bytes(data)
    assert name_clashes._names_of(path, "archive", ".", {"data"}, ()) == {}


def test_no_more_than_so_much_of_an_archive_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_clashes, "_MAX_UNPACKED_BYTES", 1 << 20)
    (tmp_path / "zeros").write_bytes(bytes(2 << 20))
    with tarfile.open(tmp_path / "proj.tar.gz", "w:gz") as tar:
        for name in ("first", "zeros", "last"):
            tar.add(tmp_path / ("zeros" if name == "zeros" else "proj/model"), name)
    found = name_clashes._names_of(tmp_path / "proj.tar.gz", "archive", ".", {"first"}, ())
    assert found.keys() == {"first", "zeros"}


@pytest.mark.parametrize("scheme", ["file", "flaky"])
def test_in_the_task(tmp_path: Path, scheme: str) -> None:
    source, work = tmp_path / "in/a.csv", tmp_path / "work"
    (work / "data").mkdir(parents=True)
    (work / "data/a.csv").write_text("another1")
    uri = uris.of_local(source) if scheme == "file" else "flaky:///in/a.csv"
    fetches, remote = [Fetch("data", (DataFile(uri, "a.csv", 8),))], list[FileCopy]()
    with pytest.raises(PathUnusable, match=r"'data/a.csv' is in the way of .*: one of the job's `files`"):
        list(bring_local(fetches, str(work), {}, TransferProgress(), remote))
    assert (work / "data/a.csv").read_text() == "another1"
    list(bring_local(fetches, str(work), {str(work / "data/a.csv"): uri}, TransferProgress(), remote))
    assert remote == []  # a try before has brought it
    twice = [Fetch("new", (DataFile(f"flaky:///{each}/a.csv", "a.csv", 8),)) for each in "xy"]
    with pytest.raises(PathUnusable, match=r"flaky:///x/a.csv gives the same name"):
        list(bring_local(twice, str(work), {}, TransferProgress(), remote))
