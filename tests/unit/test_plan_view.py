"""Tests what `howdah plan` shows of the files that a job brings."""

from __future__ import annotations

import pytest

from howdah.cli.plan_view import plan_lines
from howdah.spec import JobSpec, Plan, Role, StagedFile, StagedJob


@pytest.mark.parametrize(
    ("files", "shown"),
    [
        ([StagedFile("train.py", "file:///a", size=5)], "files: train.py  5 B"),
        ([StagedFile("code", "file:///a.tar.gz", "archive", size=2048)], "files: code/  2.0 KiB"),
        (
            [
                StagedFile(f"howdah-part-{number}-code", f"file:///{number}.tar.gz", "spread", into="code", size=512)
                for number in range(4)
            ],
            "files: code/  2.0 KiB",
        ),
        ([StagedFile("howdah-files-0", "file:///a.tar.gz", "spread", size=7)], "files: ./  7 B"),
    ],
)
def test_each_entry_is_shown_once(files: list[StagedFile], shown: str) -> None:
    job = StagedJob(JobSpec({"worker": Role("true")}), "file:///home", files=tuple(files))
    assert shown in list(plan_lines(Plan("ssh", job, {}), ""))


def test_the_engine_says_when_the_job_would_start() -> None:
    job = StagedJob(JobSpec({"worker": Role("true")}), "file:///home")
    assert "start: about noon" in list(plan_lines(Plan("ssh", job, {"expected": "about noon"}), ""))
