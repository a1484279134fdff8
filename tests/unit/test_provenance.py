"""Tests what the submitter records of itself: where the code comes from, and never a secret."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from howdah.client.provenance import Provenance
from howdah.spec import Environment, JobSpec, Role
from howdah.spec.provenance import MAX_TEXT, Submission
from howdah.staging.virtual_environments import environment_path

JOB = JobSpec({"worker": Role("train")})


def taken(job: JobSpec, base: Path, file: Path | None = None, *secrets: str) -> Submission:
    with Provenance(job, base, file, file.read_text() if file else "") as notes:
        return notes.submission(secrets)


def git(directory: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    command = ["git", *identity, "-C", str(directory), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_of_the_job_files_directory(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    inside = tmp_path / "jobs"
    inside.mkdir()
    (inside / "train.py").write_text("1")
    (tmp_path / "other").write_text("1")
    assert taken(JOB, inside).git_commit == ""
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "other").write_text("2")
    assert (taken(JOB, inside).git_commit, taken(JOB, inside).git_dirty) == (commit, False)
    (inside / "train.py").write_text("2")
    assert taken(JOB, inside).git_dirty


def test_outside_of_a_repository(tmp_path: Path) -> None:
    found = taken(JOB, tmp_path)
    assert (found.git_commit, found.file, found.text) == ("", "", "")
    assert found.client
    assert found.user
    assert found.time > 1e9


def test_the_job_file_without_what_is_secret(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("env:\n  DB_PASSWORD: hunter2\n  max_tokens: 5\nsecrets:\n  TOKEN: env:TOKEN\n# s3cret-value\n")
    text = taken(JOB, tmp_path, file, "s3cret-value").text
    assert "hunter2" not in text
    assert "s3cret-value" not in text
    assert "max_tokens: 5" in text
    assert "TOKEN: env:TOKEN" in text
    file.write_text("x" * (MAX_TEXT + 5))
    assert len(taken(JOB, tmp_path, file).text) < MAX_TEXT + 100


def test_the_command_inside_the_job_file_tells_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("roles:\n  worker:\n    command: python t.py --password hunter2 --passes 3\n    replicas: 2\n")
    assert taken(JOB, tmp_path, file).text.splitlines()[2] == "    command: python t.py --password *** --passes 3"


def test_packages_of_a_lock_file_and_of_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r.lock").write_text(
        "numpy==2.1.0 \\\n    --hash=sha256:ab\nuvicorn[standard]==0.3 ; python_version>'3'\n"
    )
    job = JobSpec(JOB.roles, environment=Environment(requirements="r.lock"))
    assert taken(job, tmp_path).packages == {"numpy": "2.1.0", "uvicorn": "0.3"}
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    resolved = environment_path(tmp_path / "r.lock") / "lib" / "python3.11" / "site-packages"
    (resolved / "click-8.1.dist-info").mkdir(parents=True)
    assert taken(job, tmp_path).packages == {"click": "8.1"}  # what is open in the file, too, as it was installed
    site = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    (site / "torch-2.9.0+cpu.dist-info").mkdir(parents=True)
    (site / "torch").mkdir()
    job = JobSpec(JOB.roles, environment=Environment(python=str(tmp_path / "env/bin/python")))
    assert taken(job, tmp_path).packages == {"torch": "2.9.0+cpu"}
