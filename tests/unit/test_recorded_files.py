"""Tests reading what a job's directory and event log name, where another user may have written them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_job_end import Running

from howdah.api.recorded_log import RecordedLog
from howdah.cli.i18n import translate_stored
from howdah.cli.jobs import status
from howdah.cli.stacks import stacks
from howdah.client.recorded_files import (
    MAX_BYTES,
    find_submitted_job,
    read_kept_stacks,
    read_submitted_job,
    shown_owner,
)
from howdah.errors import HowdahError, NotFound
from howdah.spec import JobReport, JobSpec, Outcome, Role, State, uris
from howdah.spec.event_lines import to_line
from howdah.spec.events import JobFinished, JobStarted, StacksTaken
from howdah.storage.factory import filesystem
from howdah.storage.files_of_owner import NOBODY

OTHER = 65534


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A job's directory, beside a key of whoever reads it."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id_rsa").write_text("key")
    found = tmp_path / "jobs/job"
    (found / "stacks").mkdir(parents=True)
    (found / "stacks/1.txt").write_text("MainThread")
    (found / "events.jsonl").touch()
    (found / "job.json").write_text("{}")
    return found


def report_of(directory: Path) -> JobReport:
    return JobReport("job", "train", State.FAILED, "slurm", directory=uris.of_local(directory))


def test_kept_stacks_are_read(directory: Path) -> None:
    report = report_of(directory)
    assert read_kept_stacks(report, uris.of_local(directory / "stacks/1.txt")) == b"MainThread"
    elsewhere = "hdfs://nn1:8020/mounted/jobs/job/stacks/1.txt"  # as the master named the same directory
    assert read_kept_stacks(report, elsewhere) == b"MainThread"
    assert read_submitted_job(report) == b"{}"


@pytest.mark.parametrize("name", [".ssh/id_rsa", "jobs/job/stacks/../../../.ssh/id_rsa", "jobs/job/stacks", "jobs/.."])
def test_nothing_else_is_that_a_log_names(directory: Path, name: str) -> None:
    with pytest.raises(HowdahError, match=r"no such file|leads out of it"):
        read_kept_stacks(report_of(directory), f"file://{directory.parents[1]}/{name}")


def test_nor_what_has_no_end(directory: Path) -> None:
    os.mkfifo(directory / "stacks/pipe")
    with (directory / "stacks/large").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    report = report_of(directory)
    assert read_kept_stacks(report, uris.of_local(directory / "stacks/pipe")) == b""
    assert len(read_kept_stacks(report, uris.of_local(directory / "stacks/large"))) == MAX_BYTES


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_nor_what_a_link_leads_to_that_its_maker_may_not_read(directory: Path) -> None:
    for name in ("stacks/1.txt", "job.json"):
        (directory / name).unlink()
        (directory / name).symlink_to(directory.parents[1] / ".ssh/id_rsa")
    for path in (directory, *directory.rglob("*")):
        os.chown(path, OTHER, OTHER, follow_symlinks=False)
    report = report_of(directory)
    with pytest.raises(HowdahError, match="is not shown: only files of 65534"):
        read_kept_stacks(report, uris.of_local(directory / "stacks/1.txt"))
    with pytest.raises(HowdahError, match="is not shown: only files of 65534"):
        read_submitted_job(report)


@pytest.mark.parametrize(("owner", "shown"), [(str(os.getuid()), ""), (str(os.getuid() + 1), None), ("", NOBODY)])
def test_of_others_jobs_their_own_files_are_shown(directory: Path, owner: str, shown: str | None) -> None:
    uri = uris.of_local(directory)
    log = RecordedLog("job", uri, filesystem(uri))
    log.owner = owner
    assert shown_owner(log, "") == (owner if shown is None else shown)


def test_what_is_not_there_is_named(directory: Path) -> None:
    (directory / "job.json").unlink()
    with pytest.raises(NotFound, match=r"jobs/job/job\.json: no such file"):
        read_submitted_job(report_of(directory))


@pytest.mark.parametrize("text", ["", "[]", "null", '{"job": {"roles": []}}', "[" * 100_000])
def test_a_damaged_job_is_none(directory: Path, text: str) -> None:
    (directory / "job.json").write_text(text)
    assert find_submitted_job(report_of(directory)) is None


@pytest.mark.parametrize("said", ["数据\u3000集\xa0失败", "👩\u200d💻 loss\u00ad", "half\rwhole", "one\r\ntwo\rthree"])
def test_what_is_no_control_stays(said: str) -> None:
    assert translate_stored(said) == said.replace("\r\n", "\n").replace("\r", "\n")


def test_what_turns_the_direction_of_writing_is_escaped() -> None:
    assert translate_stored("a\u202eb\u2028c\ufeffd") == r"a\u202eb\u2028c\ufeffd"


def test_what_another_user_has_written_controls_no_terminal(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "\x1b]52;c;eA==\x07\x1b[2J"
    (directory / "stacks/1.txt").write_text(f"Main{evil}Thread\n\n  at\tx\x9b2J\n")
    taken = StacksTaken(2.0, uri=uris.of_local(directory / "stacks/1.txt"))
    ending = JobFinished(3.0, Outcome(State.FAILED, f"lost{evil} node\nsecond"))
    log = (JobStarted(1.0, "job", "slurm", "eve", JobSpec({"worker": Role("train")})), taken, ending)
    (directory / "events.jsonl").write_text("".join(map(to_line, log)))
    engine = Running(str(directory), "")
    engine.end()
    for name in ("stacks", "jobs"):
        monkeypatch.setattr(f"howdah.cli.{name}.choose_job", lambda *_: (engine, "job_1"))
    shown = CliRunner().invoke(stacks, ["--last"], color=True)
    assert shown.stdout == f"{taken.uri}\nMainThread\n\n  at\tx\\x9b2J\n"
    told = CliRunner().invoke(status, [], color=True)
    assert "lost node\nsecond" in told.stdout
    assert "\x1b]" not in told.stdout
