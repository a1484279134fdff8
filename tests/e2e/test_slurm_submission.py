"""Tests submissions that Slurm refuses for a quota, or takes while its accounting is down, and their limits."""

from __future__ import annotations

import contextlib
import getpass
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from submitted_job import until

from howdah.client.engine_registry import engine as engine_for
from howdah.client.engine_registry import settings_for
from howdah.sandbox import SlurmSandbox

HOWDAH = str(Path(sys.executable).with_name("howdah"))


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


def ask(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def run() -> subprocess.CompletedProcess[str]:
    return subprocess.run([HOWDAH, "run", "--on", "slurm", "--", "true"], capture_output=True, text=True, timeout=240)


@contextlib.contextmanager
def submit_limit(count: int) -> Iterator[None]:
    """Let Slurm take no more than so many jobs of this user."""
    command = ("sacctmgr", "--immediate", "modify", "user", getpass.getuser(), "set")

    def has_limit(text: str) -> bool:
        said = ask("scontrol", "show", "assoc_mgr", f"users={getpass.getuser()}", "flags=assoc")
        return f"MaxSubmitJobs={text}(" in said

    try:
        ask(*command, f"MaxSubmitJobs={count}")
        until(lambda: has_limit(str(count)), "the controller's knowledge of the limit")
        yield
    finally:
        ask(*command, "MaxSubmitJobs=-1")
        until(lambda: not has_limit(str(count)), "the end of the limit")


def test_a_quota_is_one_line_and_leaves_nothing(slurm: SlurmSandbox, slurm_home: Path) -> None:
    with submit_limit(0):
        done = run()
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (77, "", 1), done
    assert "Job violates accounting/QOS policy" in done.stderr
    assert not list(slurm_home.glob("slurm/jobs/*"))
    assert not list(slurm_home.glob("slurm/output/*"))
    assert not ask("squeue", "-h").split() or "true" not in ask("squeue", "-ho", "%j")


def test_jobs_run_while_the_accounting_is_down(slurm: SlurmSandbox, slurm_home: Path) -> None:
    slurm.stop("slurmdbd")
    try:
        done = run()
        assert done.returncode == 0, done
        (report,) = engine_for(settings_for({"engine": "slurm"})).describe()
        said = subprocess.run([HOWDAH, "explain", report.id], capture_output=True, text=True, timeout=120)
        assert (said.returncode, said.stderr.count("\n") <= 1) == (0, True), said
    finally:
        slurm.start("slurmdbd")


def test_a_program_may_open_as_many_files_as_its_submitter(slurm: SlurmSandbox, slurm_home: Path) -> None:
    line = f"ulimit -S -n 512; exec {HOWDAH} run --on slurm -- sh -c 'echo it may have $(ulimit -S -n)'"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done
    assert "it may have 512" in done.stdout, done.stdout
