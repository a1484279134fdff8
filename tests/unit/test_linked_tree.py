"""Tests that what links lead to arrives as it does for `cp -L`, and that what can't is named."""

from __future__ import annotations

import os
import pwd
import tarfile
from pathlib import Path

import pytest

from howdah.inputs.assignment import plan_fetches
from howdah.inputs.transfer import list_copies
from howdah.spec import Input, JobSpec, Role, TaskId, uris
from howdah.staging import archive
from howdah.staging.stage import stage
from howdah.storage.linked_tree import walk_linked


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set of which a class, a file and a whole part lie elsewhere."""
    for name in ("disk/cats/1", "disk/cats/kittens/2", "disk/far", "data/dogs/3"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "data/cats").symlink_to(tmp_path / "disk/cats")
    (tmp_path / "data/near").symlink_to("../disk/far")
    (tmp_path / "data/again").symlink_to("dogs")
    (tmp_path / "data/birds").mkdir()
    (tmp_path / "disk/cats/none").mkdir()
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "howdah"))
    return tmp_path / "data"


FILES = ["again/3", "cats/1", "cats/kittens/2", "dogs/3", "near"]
EMPTY = ["birds", "cats/none"]


def add_what_can_not_be_followed(data: Path) -> dict[str, str]:
    """Links and a pipe, and what is to be said of them."""
    (data / "dogs/up").symlink_to("..")
    (data / "above").symlink_to("../..")
    (data.parent / "disk/cats/round").symlink_to(data)
    (data / "gone").symlink_to("nowhere")
    (data / "loop").symlink_to("loop")
    os.mkfifo(data / "pipe")
    return {
        "above": f"it leads back to {data.parents[1]}, which holds it",
        "again/up": f"it leads back to {data}, which holds it",
        "cats/round": f"it leads back to {data}, which holds it",
        "dogs/up": f"it leads back to {data}, which holds it",
        "gone": "it leads to nowhere, which is not there",
        "loop": "too many levels of symbolic links",
        "pipe": "it is neither a file nor a directory",
    }


def test_links_are_followed_and_what_can_not_be_is_named(data: Path) -> None:
    expected = add_what_can_not_be_followed(data)
    told: dict[str, str] = {}
    found = [path for path, _ in walk_linked(str(data), lambda path, reason: told.update({path: reason}))]
    assert found == [str(data / name) for name in sorted(FILES + EMPTY)]
    assert told == {str(data / name): reason for name, reason in expected.items()}


@pytest.mark.parametrize(("path", "prefix"), [("data", ""), ("dat*", "data/")])
def test_an_input_has_all_of_it(data: Path, path: str, prefix: str) -> None:
    expected = add_what_can_not_be_followed(data)
    told: list[str] = []
    job = JobSpec({"worker": Role("true", 2)}, inputs=(Input(path, to="in"),))
    staged = stage(job, data.parent, uris.of_local(data.parent / "howdah"), notice=told.append)
    assert [file.name for file in staged.inputs[0].files] == [prefix + name for name in FILES]
    assert sorted(told) == [f"{data}/{name} is left out: {reason}" for name, reason in expected.items()]
    for number in range(2):
        (fetch,) = plan_fetches(staged, TaskId("worker", number))
        assert fetch.empty == tuple(prefix + name for name in EMPTY)


def test_no_more_lines_are_printed_than_are_read(data: Path) -> None:
    for number in range(30):
        (data / f"gone{number}").symlink_to("nowhere")
    told: list[str] = []
    job = JobSpec({"worker": Role("true")}, inputs=(Input("data", to="in"),))
    stage(job, data.parent, uris.of_local(data.parent / "howdah"), notice=told.append)
    assert len(told) == 11
    assert told[-1] == "20 more are left out in the same way"


def test_a_flat_input_has_no_directories(data: Path) -> None:
    job = JobSpec({"worker": Role("true")}, inputs=(Input("data", to="in", flat=True),))
    (staged,) = stage(job, data.parent, uris.of_local(data.parent / "howdah")).inputs
    assert ([file.name for file in staged.files], staged.empty) == (["3", "1", "2", "3", "near"], ())


def test_a_code_directory_has_all_of_it(data: Path) -> None:
    add_what_can_not_be_followed(data)
    (data / "cats/kittens/own").symlink_to("../1")
    told: dict[str, str] = {}
    (packed,) = archive.directory(data, data.parent / "packed", lambda path, reason: told.update({path: reason}))
    with tarfile.open(packed) as tar:
        found = {member.name: member.linkname or ("/" if member.isdir() else "") for member in tar}
    assert found == {
        "again": "dogs",
        "birds": "/",
        "cats/1": "",
        "cats/kittens/2": "",
        "cats/kittens/own": "../1",
        "cats/none": "/",
        "dogs/3": "",
        "dogs/up": "..",
        "gone": "nowhere",
        "loop": "loop",
        "near": "",
    }
    assert sorted(told) == [str(data / name) for name in ("above", "cats/round", "pipe")]


def packed_names(path: str) -> list[str]:
    with tarfile.open(path) as tar:
        return tar.getnames()


def test_howdahs_own_directories_never_travel(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the keys of other jobs nor the cache, which would grow by itself at each submission, go along."""
    monkeypatch.setenv("HOWDAH_HOME", str(data / "own"))
    for name in (
        "own/state/jobs/1/key",
        "own/cache/ab/c",
        "own/slurm/jobs/2/key",
        "own/spark/jobs/2/key",
        "home/jobs/3/key",
        "home/mine",
    ):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text("secret")
    (data / "last").symlink_to(data / "own/state/jobs/1")
    (data / "out").symlink_to(tmp_path / "disk")
    (tmp_path / "disk/state").symlink_to(data / "own/state")
    own = {"own/state", "own/cache", "own/slurm", "own/spark", "last", "out/state", "home/jobs"}
    for job in (
        JobSpec({"w": Role("true")}, files=(".#.",)),
        JobSpec({"w": Role("true")}, inputs=(Input(".", to="i"),)),
    ):
        told: list[str] = []
        staged = stage(job, data, uris.of_local(data / "home"), notice=told.append)
        sent = {name for file in staged.files for name in packed_names(file.source)}
        sent |= {file.name for files in staged.inputs for file in files.files}
        assert {"dogs/3", "home/mine", "out/far"} <= sent
        assert not [name for name in sent if "key" in name or "cache" in name]
        kept_back = {line.partition(" is left out: howdah keeps")[0] for line in told if "howdah keeps" in line}
        assert kept_back == {str(data / name) for name in own}
    copies, _ = list_copies(str(data), "hdfs://c/x")
    assert not [copy.uri for copy in copies if "own/" in copy.uri or "last" in copy.uri or "state" in copy.uri]
    named = stage(JobSpec({"w": Role("true")}, files=("own/state/jobs/1#one",)), data, uris.of_local(tmp_path / "home"))
    assert packed_names(named.files[0].source) == ["key"]
    copies, _ = list_copies(str(data / "own/state"), "hdfs://c/x")
    assert len(copies) == 1, "who names such a directory means it"
    inputs = (Input(str(data / "home/jobs"), to="i"),)
    (entry,) = stage(JobSpec({"w": Role("true")}, inputs=inputs), data, uris.of_local(data / "home")).inputs
    assert [file.name for file in entry.files] == ["3/key"]


def test_a_user_without_a_home_has_none(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an image that runs under a number that its /etc/passwd does not have."""

    def nobody(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for name in ("HOME", "HOWDAH_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    found = [path for path, _ in walk_linked(str(data), lambda path, reason: None)]
    assert found == [str(data / name) for name in sorted(FILES + EMPTY)]


def test_a_large_directory_elsewhere_is_named_instead(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_LINKED_FILES", 1)
    told: list[str] = []
    names = {member.name for member in archive.members(data, left_out=lambda path, reason: told.append(reason))}
    assert names == {"again", "birds", "dogs/3", "near"}
    assert told == [
        f"it leads to {data.parent}/disk/cats, which has more than 256 MiB or 1 files: name that among the inputs"
    ]
