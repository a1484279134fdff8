"""Tests the notes, tags and archive marks of jobs: the files that keep them, and what the history makes of them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from history_jobs import begun, ended, job_id, whole, write

from howdah.api import job_annotations
from howdah.api.job_annotations import Annotation
from howdah.errors import InvalidRequest, NotFound, NotPermitted
from howdah.history import csv_tables, queries
from howdah.history.directory_scan import Scanner
from howdah.history.index import Index
from howdah.history.retention import sweep
from howdah.history.usage import usage
from howdah.localfiles import change_lock
from howdah.spec import uris
from howdah.storage.factory import filesystem
from howdah.storage.files_of_owner import FilesOfOwner
from howdah.storage.local import LocalFileSystem

FILES = LocalFileSystem()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    whole(tmp_path / "home", 1, tags=("sweep", "old"))
    whole(tmp_path / "home", 2, tags=("sweep",))
    return tmp_path / "home"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index(tmp_path / "index") as made:
        assert made.claim()
        yield made


def change(home: Path, number: int, **changes: Any) -> Annotation:
    return job_annotations.change(FILES, uris.of_local(home), job_id(number), changes, "eve", 5.0)


def file_of(home: Path, number: int) -> Path:
    return home / "annotations" / f"{job_id(number)}.json"


def settle(home: Path) -> None:
    """Make the annotations and their directory older than the precision of their times."""
    for path in (*(home / "annotations").iterdir(), home / "annotations"):
        os.utime(path, (1_700_000_000, 1_700_000_000 + path.stat().st_size))


def listed(index: Index, **query: str) -> list[dict[str, Any]]:
    with index.reading() as connection:
        found: list[dict[str, Any]] = queries.page(connection, query, 0.0)["jobs"]
        return found


def ids(index: Index, **query: str) -> set[str]:
    return {row["id"] for row in listed(index, **query)}


def test_what_is_not_given_stays(home: Path) -> None:
    assert change(home, 1, note=" 好 <b>\nand more ") == Annotation("好 <b>\nand more", None, False, 5.0, "eve")
    assert change(home, 1, tags=["b", " a ", "b"], archived=True).note == "好 <b>\nand more"
    stored = {**json.loads(file_of(home, 1).read_text()), "of_a_later_version": [1]}
    file_of(home, 1).write_text(json.dumps(stored))
    found = change(home, 1, archived=False, note="")
    assert (found.note, found.tags, found.archived) == ("", ("b", "a"), False)
    assert json.loads(file_of(home, 1).read_text())["of_a_later_version"] == [1]
    assert job_annotations.read(FILES, uris.of_local(home), job_id(1)) == found
    assert job_annotations.read(FILES, uris.of_local(home), job_id(2)) == job_annotations.NONE


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"note": "x" * 2001}, "note"),
        ({"note": "\x1b[31mred"}, "note"),
        ({"note": "back\u202ewards"}, "note"),
        ({"note": 3}, "note"),
        ({"tags": ["a,b"]}, "tags"),
        ({"tags": [" "]}, "tags"),
        ({"tags": ["x" * 101]}, "tags"),
        ({"tags": [f"t{n}" for n in range(21)]}, "tags"),
        ({"tags": "a"}, "tags"),
        ({"archived": 1}, "archived"),
        ({"unknown": 1}, "note"),
    ],
)
def test_a_wrong_change_changes_nothing(home: Path, changes: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        change(home, 1, **changes)
    assert refused.value.place == place
    assert not (home / "annotations").exists()


def test_only_jobs_of_the_home_are_annotated(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for id_ in ("application_1700000000000_0009", "..", "../jobs", "a/b", ""):
        with pytest.raises(NotFound):
            job_annotations.change(FILES, uris.of_local(home), id_, {"note": "x"}, "eve", 5.0)
    monkeypatch.setattr(os, "getuid", lambda: home.stat().st_uid + 1)
    with pytest.raises(NotPermitted, match="only the owner"):
        change(home, 1, note="x")
    assert not (home / "annotations").exists()


def test_a_file_may_hold_anything(home: Path) -> None:
    path = file_of(home, 1)
    path.parent.mkdir()
    for text in ("", "[", "[1]", "[" * 60000, '"' + "x" * 70000 + '"', '{"note": 1, "tags": {}, "archived": "yes"}'):
        path.write_text(text)
        assert job_annotations.read(FILES, uris.of_local(home), job_id(1)) == job_annotations.NONE
    bad = {"note": "a\x1b]0;x\x07b" + "y" * 9000, "tags": ["ok", 3, "a,b", "\n"], "changed": 1e999, "by": "e\nve\x1b"}
    path.write_text(json.dumps(bad))
    found = job_annotations.read(FILES, uris.of_local(home), job_id(1))
    assert found == Annotation(f"a]0;xb{'y' * 1994}", ("ok",), False, 0.0, "e ve")
    path.unlink()
    os.mkfifo(path)
    assert job_annotations.read(FILES, uris.of_local(home), job_id(1)) == job_annotations.NONE


def test_a_time_of_hundreds_of_digits_harms_no_job(home: Path, index: Index) -> None:
    change(home, 2, note="fine")
    file_of(home, 1).write_text(json.dumps({"note": "odd", "changed": 10**400}))
    assert job_annotations.read(FILES, uris.of_local(home), job_id(1)) == Annotation("odd")
    assert Scanner(index, [uris.of_local(home)]).scan().problems == []
    assert {row["note"] for row in listed(index)} == {"odd", "fine"}


def test_a_damaged_file_is_kept_beside_the_new_one(home: Path) -> None:
    change(home, 1, note="mine")
    damaged = file_of(home, 1).read_bytes()[:-9]
    file_of(home, 1).write_bytes(damaged)
    assert change(home, 1, tags=["a"]).note == ""
    assert file_of(home, 1).with_name(f"{file_of(home, 1).name}.5").read_bytes() == damaged


def test_what_another_version_stored_stays_whatever_it_is(home: Path) -> None:
    change(home, 1, note="one")
    file_of(home, 1).write_text('{"note": "one", "later": "\\ud800"}')
    assert change(home, 1, archived=True).note == "one"
    assert json.loads(file_of(home, 1).read_text())["later"] == "\ud800"


def test_who_does_not_own_a_home_with_owners_does_not_annotate(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = f"<name>fs.viewfs.mounttable.c.link./home</name><value>{uris.of_local(home)}</value>"
    (tmp_path / "core-site.xml").write_text(f"<configuration><property>{link}</property></configuration>")
    where, conf_dir = "viewfs://c/home", str(tmp_path)
    files = filesystem(where, conf_dir)
    monkeypatch.setenv("HADOOP_USER_NAME", "administrator")
    with pytest.raises(NotPermitted, match="only the owner of /home may annotate"):
        job_annotations.change(files, where, job_id(1), {"note": "x"}, "eve", 5.0, conf_dir)
    assert not (home / "annotations").exists()
    monkeypatch.setenv("HADOOP_USER_NAME", str(os.getuid()))
    assert job_annotations.change(files, where, job_id(1), {"note": "x"}, "eve", 5.0, conf_dir).note == "x"


def test_of_a_shared_home_only_its_owner_is_read(home: Path, tmp_path: Path) -> None:
    change(home, 1, note="secret")
    own = job_annotations.as_home_owner(FILES, uris.of_local(home), str(os.getuid()))
    assert job_annotations.read(own, uris.of_local(home), job_id(1)).note == "secret"
    other = job_annotations.as_home_owner(FILES, uris.of_local(home), str(os.getuid() + 1))
    assert isinstance(other, FilesOfOwner)
    assert other.children(uris.of_local(home / "annotations")) == []
    assert job_annotations.as_home_owner(FILES, "hdfs://ns/user/eve/.howdah", "eve") is FILES


def test_an_archived_job_leaves_the_list(home: Path, index: Index) -> None:
    scanner = Scanner(index, [uris.of_local(home)])
    scanner.scan()
    change(home, 1, archived=True)
    scanner.scan()
    assert ids(index) == {job_id(2)}
    assert ids(index, archived="only") == {job_id(1)}
    assert ids(index, archived="also") == {job_id(1), job_id(2)}
    with pytest.raises(InvalidRequest, match="must be also or only"):
        ids(index, archived="yes")
    with index.reading() as connection:
        assert usage(connection, {})["total"]["jobs"] == 2
    assert (home / "jobs" / job_id(1) / "events.jsonl").exists()
    change(home, 1, archived=False)
    scanner.scan()
    assert ids(index) == {job_id(1), job_id(2)}


def test_notes_and_tags_are_shown_searched_and_filtered(home: Path, index: Index) -> None:
    change(home, 1, note="Überraschend gut", tags=["best", "sweep"])
    Scanner(index, [uris.of_local(home)]).scan()  # the annotation is read before the log
    [row] = listed(index, tag="best")
    assert (row["id"], row["note"], row["tags"]) == (job_id(1), "Überraschend gut", ["best", "sweep"])
    assert ids(index, text="überraschend BEST") == {job_id(1)}
    assert ids(index, tag="old") == ids(index, text="old") == set()
    assert ids(index, tag="sweep") == {job_id(1), job_id(2)}
    table = csv_tables.jobs_table(
        ({**row, "cluster": ""} for row in listed(index, tag="best")), "id,tags,note,archived"
    )
    assert table.splitlines()[1] == f"{job_id(1)},best sweep,Überraschend gut,"
    with index.reading() as connection:
        assert {row["group"] for row in usage(connection, {"by": "tag"})["users"]} == {"best", "sweep"}


def test_tags_of_the_job_file_are_searched_until_others_replace_them(home: Path, index: Index) -> None:
    scanner = Scanner(index, [uris.of_local(home)])
    change(home, 1, note="good")
    scanner.scan()
    assert ids(index, text="old good") == {job_id(1)}
    assert ids(index, text="SWEEP") == {job_id(1), job_id(2)}
    change(home, 1, tags=[])
    scanner.scan()
    assert ids(index, text="sweep") == {job_id(2)}
    file_of(home, 1).unlink()
    Scanner(index, [uris.of_local(home)]).scan()
    Scanner(index, [uris.of_local(home)]).scan()
    assert ids(index, text="old") == {job_id(1)}


def test_annotations_survive_the_index_and_follow_their_files(home: Path, index: Index) -> None:
    scanner = Scanner(index, [uris.of_local(home)])
    change(home, 1, note="one", tags=["best"])
    change(home, 2, note="two")
    settle(home)
    scanner.scan()
    index.renew()
    Scanner(index, [uris.of_local(home)]).scan()
    assert {row["note"] for row in listed(index)} == {"one", "two"}
    scanner = Scanner(index, [uris.of_local(home)])
    scanner.scan()
    before = index.version
    scanner.scan()
    assert index.version == before  # nothing is read again
    file_of(home, 1).unlink()
    scanner = Scanner(index, [uris.of_local(home)])
    scanner.scan()
    scanner.scan()
    assert {(row["id"], row["note"], *row["tags"]) for row in listed(index)} == {
        (job_id(1), "", "old", "sweep"),
        (job_id(2), "two", "sweep"),
    }
    shutil.rmtree(home / "annotations")
    scanner.scan()
    assert {row["note"] for row in listed(index)} == {""}


def test_a_job_that_goes_on_keeps_its_annotation(home: Path, index: Index) -> None:
    write(home, job_id(3), begun(3, tags=("sweep",)))
    change(home, 3, tags=["mine"], archived=True)
    scanner = Scanner(index, [uris.of_local(home)])
    scanner.scan()
    assert job_id(3) in ids(index)  # it still runs
    write(home, job_id(3), ended(3))
    scanner.scan()
    [row] = listed(index, archived="only")
    assert (row["state"], row["tags"]) == ("SUCCEEDED", ["mine"])
    assert job_id(3) not in ids(index)


def test_tags_of_a_job_file_beyond_those_that_people_may_give_are_kept(home: Path, index: Index) -> None:
    tags = [f"t{number:02}" for number in range(25)]
    write(home, job_id(3), (*begun(3, tags=tuple(tags)), *ended(3)))
    Scanner(index, [uris.of_local(home)]).scan()
    row = next(row for row in listed(index) if row["id"] == job_id(3))
    assert row["tags"] == tags
    with index.reading() as connection:
        assert queries.count_tags(connection, uris.of_local(home / "jobs" / job_id(3))) == 25


def test_the_annotation_goes_with_the_files_of_a_job(home: Path, index: Index) -> None:
    change(home, 1, note="one")
    Scanner(index, [uris.of_local(home)]).scan()
    assert sweep(index, 2e9, lambda _: str(os.getuid())) == []
    assert not (home / "jobs" / job_id(1)).exists()
    assert not file_of(home, 1).exists()


def test_the_most_that_may_be_kept_is_read_again(home: Path) -> None:
    tags = [f"{number}" + "😀" * (job_annotations.MAX_TAG - 3) for number in range(100, 300)]
    note = "😀" * job_annotations.MAX_NOTE
    uri, id_ = uris.of_local(home), job_id(1)
    job_annotations.change(FILES, uri, id_, {"note": note, "tags": tags}, "eve", 5.0, present_tags=len(tags))
    kept = job_annotations.read(FILES, uri, id_)
    assert (kept.note, kept.tags) == (note, tuple(tags))


def test_of_two_changes_at_once_none_is_lost(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_lock, "WAIT_S", 0.0)

    def add(tags: tuple[str, ...] | None) -> list[str]:
        with pytest.raises(NotPermitted, match="is being changed by another process"):
            change(home, 1, note="meanwhile")
        return [*(tags or ()), "best"]

    change(home, 1, tags=["sweep"], note="before")
    job_annotations.change(FILES, uris.of_local(home), job_id(1), {}, "eve", 5.0, edit_tags=add)
    found = job_annotations.read(FILES, uris.of_local(home), job_id(1))
    assert (found.tags, found.note) == (("sweep", "best"), "before")
