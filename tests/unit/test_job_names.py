"""Tests which job a name, a part of an id, or a place in the list means."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.client.job_names import NamedJob, choose, find_job
from howdah.engines.local.engine import LocalEngine
from howdah.errors import InvalidRequest, JobNotFound
from howdah.spec import JobReport, State


@pytest.fixture
def jobs(tmp_path: Path) -> list[NamedJob]:
    """Five jobs, the newest first."""
    engine = LocalEngine({"local_home": str(tmp_path)})

    def job(number: int, id_: str, name: str, state: State) -> NamedJob:
        return NamedJob(id_, engine, JobReport(id_, name, state, "local", submitted=float(number)))

    return [
        job(5, "slurm-7212", "train", State.SUCCEEDED),
        job(4, "application_1795266768_0007", "train", State.RUNNING),
        job(3, "local-20261121-131248-82ce", "train", State.FAILED),
        job(2, "local-20261121-131017-503d", "prepare", State.SUCCEEDED),
        job(1, "local-20261120-090000-0001", "503d", State.FAILED),
    ]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("@last", "slurm-7212"),
        ("@-1", "slurm-7212"),
        ("@-2", "application_1795266768_0007"),
        ("train", "application_1795266768_0007"),  # the only one that runs
        ("prepare", "local-20261121-131017-503d"),
        ("82ce", "local-20261121-131248-82ce"),
        ("_0007", "application_1795266768_0007"),
        ("20261121-131248", "local-20261121-131248-82ce"),
        ("1795266768_", "application_1795266768_0007"),
        ("7212", "slurm-7212"),
        ("local-20261120", "local-20261120-090000-0001"),
        ("slurm-7212", "slurm-7212"),
        ("503d", "local-20261120-090000-0001"),  # a name comes before the end of an id
    ],
)
def test_a_job_is_found(jobs: list[NamedJob], wanted: str, expected: str) -> None:
    found = choose(wanted, jobs)
    assert found is not None
    assert found.id == expected


@pytest.mark.parametrize(
    "wanted",
    [
        *("@-6", "@last2", "12", "ce", "nothing", "0261121-131248-82", "@", "slurm-", "application_"),
        *("721", "slurm-721", "212", "008", "20261121-1312", "application_1795266768_000"),  # they cut a number
    ],
)
def test_no_job_is_found(jobs: list[NamedJob], wanted: str) -> None:
    assert choose(wanted, jobs) is None


def test_of_ended_jobs_of_one_name_the_last_is_meant(jobs: list[NamedJob]) -> None:
    found = choose("train", [job for job in jobs if job.report and job.report.state.ended])
    assert found is not None
    assert found.id == "slurm-7212"


def test_what_several_jobs_may_be_is_refused_with_their_ids(jobs: list[NamedJob]) -> None:
    with pytest.raises(
        InvalidRequest, match=r"'local-20261121' may be 2 jobs: local-20261121-131248-82ce \(train, FAILED"
    ):
        choose("local-20261121", jobs)
    again = NamedJob("slurm-7213", jobs[0].engine, JobReport("slurm-7213", "train", State.PENDING, "slurm"))
    with pytest.raises(InvalidRequest, match=r"'train' may be 2 jobs: slurm-7213 .*, application_1795266768_0007"):
        choose("train", [again, *jobs])


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("nothing", "no job has the name 'nothing', nor an id that begins or ends so; `howdah list` shows yours"),
        ("@-3", "no job @-3: you have 0; `howdah list` shows them"),
        ("local-20261121", "no job local-20261121 on engine local; `howdah list` shows yours"),
        (" ", "no job ' '; `howdah list` shows yours"),
        ("", "no job ''; `howdah list` shows yours"),
        ("worker:0", "no job has the name 'worker:0': write the job before the task, such as @last"),
    ],
)
def test_who_has_no_such_job_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, words: str) -> None:
    for name in ("HOWDAH_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    with pytest.raises(JobNotFound) as refused:
        find_job(wanted)
    assert str(refused.value) == words
