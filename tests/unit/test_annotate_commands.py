"""Tests `howdah note`, `archive` and what `list` shows of them, with a home of jobs that have ended."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from history_jobs import begun, ended, write

from howdah.api.job_annotations import Annotation
from howdah.cli import annotate
from howdah.cli.annotate import archive, note
from howdah.cli.jobs import list_jobs
from howdah.client.annotated_jobs import is_left_out
from howdah.errors import HowdahError, JobNotFound
from howdah.spec import JobReport, State
from howdah.spec.events import JobStarted

ONE, TWO = "local-20261121-131248-0001", "local-20261121-131249-0002"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two jobs of this machine."""
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path))
    monkeypatch.setenv("HOWDAH_LANGUAGE", "en")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    for number, id_ in enumerate((ONE, TWO)):
        first, *more = begun(number, name=f"job{number}", tags=("sweep",))
        assert isinstance(first, JobStarted)
        write(tmp_path / "state", id_, (first, *more, *ended(number)))
    return tmp_path / "state"


def run(command: Any, *arguments: str) -> str:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_note_and_tags_are_written_and_printed(home: Path) -> None:
    assert run(note, ONE) == "tags: sweep\n"
    run(note, ONE, "too high", "--tag", "bad", "--tag", "sweep", "--untag", "nothing")
    shown = run(note, "job0").splitlines()
    assert shown[:2] == ["too high", "tags: sweep, bad"]
    assert shown[2].startswith("changed by ")
    run(note, ONE, "", "--untag", "sweep")
    found = json.loads(run(note, ONE, "--json"))
    assert (found["id"], found["note"], found["tags"]) == (ONE, "", ["bad"])
    assert run(note, TWO, "--json").startswith(f'{{"id":"{TWO}","note":"","tags":["sweep"]')
    for wrong in ((ONE, "x" * 2001), (ONE, "--tag", "a,b"), ("nothing-like-it", "x")):
        assert isinstance(CliRunner().invoke(note, wrong).exception, HowdahError)


def test_tags_that_somebody_gives_meanwhile_stay(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = annotate.read_annotation

    def read_before_another(report: JobReport) -> Annotation:
        found = read(report)
        annotate.change_annotation(report, {"tags": ["sweep", "other"]})
        return found

    with monkeypatch.context() as at_once:
        at_once.setattr(annotate, "read_annotation", read_before_another)
        run(note, ONE, "--tag", "best")
    assert run(note, ONE).splitlines()[0] == "tags: sweep, other, best"


def test_an_archived_job_is_listed_only_where_asked_for(home: Path) -> None:
    assert run(list_jobs, "-q").split() == [TWO, ONE]
    assert run(archive, ONE, TWO) == f"{ONE} is archived\n{TWO} is archived\n"
    assert run(list_jobs) == "no jobs\n"
    assert run(list_jobs, "-q", "--archived", "--limit", "1").split() == [TWO]
    run(archive, "--undo", TWO)
    run(note, TWO, "best\nof all", "--tag", "kept")
    [row] = run(list_jobs, "--json").splitlines()
    assert {"tags": ["sweep", "kept"], "note": "best\nof all", "archived": False}.items() <= json.loads(row).items()
    assert "sweep kept  best of all" in run(list_jobs, "-o", "wide")
    assert (home / "jobs" / ONE / "events.jsonl").exists()
    assert isinstance(CliRunner().invoke(archive, ["local-20261121-131248-0009"]).exception, JobNotFound)


def test_an_archived_job_that_still_runs_is_listed() -> None:
    report = JobReport(ONE, "one", State.RUNNING, "local", "me", archived=True)
    assert not is_left_out(report)
    assert is_left_out(replace(report, state=State.FAILED))
    assert not is_left_out(replace(report, state=State.FAILED, archived=False))


def test_a_job_with_more_tags_than_people_may_give_keeps_as_many(home: Path) -> None:
    first, *more = begun(3, name="many", tags=tuple(f"t{number:02}" for number in range(25)))
    many = "local-20261121-131250-0003"
    write(home, many, (first, *more, *ended(3)))
    assert isinstance(CliRunner().invoke(note, (many, "--tag", "new")).exception, HowdahError)
    run(note, many, "--untag", "t00", "--tag", "new")
    run(note, many, "--untag", "t01")
    found = json.loads(run(note, many, "--json"))["tags"]
    assert found == [*(f"t{number:02}" for number in range(2, 25)), "new"]


def test_an_odd_file_takes_nothing_from_other_jobs(home: Path) -> None:
    run(note, TWO, "fine")
    (home / "annotations" / f"{ONE}.json").write_text(json.dumps({"changed": 10**400}))
    (home / "annotations" / f"{TWO}.json").chmod(0o600)
    assert "fine" in run(list_jobs, "-o", "wide")
    assert run(note, ONE) == "tags: sweep\n"


def test_what_cannot_be_read_takes_nothing_from_the_list(home: Path) -> None:
    (home / "annotations").write_text("no directory")
    assert run(list_jobs, "-q").split() == [TWO, ONE]
