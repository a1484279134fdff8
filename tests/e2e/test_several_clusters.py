"""Tests profiles that lead to two Hadoop clusters: jobs run on either, and are listed and found on both."""

from __future__ import annotations

import contextlib
import json
import sys
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import CommandLine, Done, eventually
from test_history import Page

from howdah import Client
from howdah.checkpoints import directory_lock
from howdah.client.local_jobs import IncompleteJobList
from howdah.sandbox import Sandbox
from howdah.storage.content_cache import local_directory

JARS = local_directory()
"""The user's cache, found before a test has a home of its own."""


@pytest.fixture
def other(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """A second cluster. Three profiles lead to the two, and `main` is in use."""
    with Sandbox(tmp_path / "run", nodes=1, cache=JARS) as second:
        monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("HOWDAH_LANGUAGE", "en")
        monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
        profiles = {
            "backup": {"hadoop_conf_dir": str(second.conf_dir)},
            "main": {"hadoop_conf_dir": str(sandbox.conf_dir)},
            "urgent": {"hadoop_conf_dir": str(sandbox.conf_dir), "queue": "prod"},
        }
        settings = {"engine": "yarn", "profile": "main", "python": sys.executable, "shared_paths": "/"}
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "config.yaml").write_text(json.dumps({**settings, "profiles": profiles}))
        yield second


@pytest.fixture
def howdah(sandbox: Sandbox, other: Sandbox, tmp_path: Path) -> Iterator[CommandLine]:
    made = CommandLine(sandbox, tmp_path)
    yield made
    made.end_all()


def ended_well(done: Done) -> Done:
    assert done.code == 0, done.text
    return done


def test_two_clusters_of_one_engine(howdah: CommandLine, other: Sandbox, tmp_path: Path) -> None:
    hello = howdah.job_file("echo hello from $HOWDAH_JOB_ID")
    here, there = ended_well(howdah("run", hello)), ended_well(howdah("run", "--profile", "backup", hello))
    first, second = here.job, there.job

    def listed(*arguments: str) -> tuple[dict[str, str], str]:
        done = ended_well(howdah("list", "--json", *arguments))
        rows = [json.loads(line) for line in done.out.splitlines()]
        assert len({row["id"] for row in rows}) == len(rows), "a job is listed once"
        return {row["id"]: row["profile"] for row in rows}, done.err.decode()

    found, _ = listed()
    assert (found[first], found[second]) == ("main", "backup")
    assert set(listed("--profile", "backup")[0]) == {second}
    assert f"hello from {second}" in ended_well(howdah("logs", second)).text, "found without --profile"
    assert howdah("status", "--profile", "main", second).code == 66

    # A checkpoint's directory is one job's, whichever cluster runs it.
    checkpoint = f"file://{tmp_path}/checkpoint"
    sleeper = ended_well(
        howdah("submit", "--profile", "backup", howdah.job_file("sleep 600", checkpoint=checkpoint))
    ).job
    eventually((tmp_path / "checkpoint" / directory_lock.NAME).exists, "the job has the directory's lock")
    refused = howdah("submit", howdah.job_file("true", checkpoint=checkpoint))
    assert refused.code != 0
    assert f"is used by {sleeper}" in refused.text
    assert "CANCELLED" in ended_well(howdah("cancel", sleeper)).text

    # The page, the client and the doctor go over both.
    serving = howdah.start("history", "--port", "0")
    page = Page(serving.says("#token="))
    assert page.until(first, "SUCCEEDED")["cluster"] == "main"
    assert page.until(second, "SUCCEEDED")["cluster"] == "backup"
    for job in (first, second):

        def printed(job: str = job) -> bool:
            with contextlib.suppress(urllib.error.HTTPError):  # YARN has not gathered the logs yet
                return f"hello from {job}" in page.get(f"jobs/{job}/logs/worker:0", stream="stdout")["text"]
            return False

        eventually(printed, f"the page has what {job} printed")
    serving.process.terminate()
    assert serving.process.wait(30) == 0
    ids = [report.id for report in Client().jobs()]
    assert (ids.count(first), ids.count(second)) == (1, 1)
    names = [json.loads(line)["name"] for line in howdah("doctor", "--on", "yarn", "--json").out.splitlines()]
    assert {"ResourceManager", "ResourceManager, profile backup"} <= set(names)
    container = json.loads(ended_well(howdah("status", "--json", second)).out)["tasks"][0]["container"]
    assert json.loads(ended_well(howdah("trace", "--json", container)).out)["job"] == second

    other.stop("rm")
    with pytest.warns(IncompleteJobList, match="jobs are missing, yarn, profile backup: ResourceManager 127"):
        assert first in [report.id for report in Client().jobs()]
    found, said = listed()
    assert (first in found, second in found) == (True, False)
    assert said.startswith("howdah: yarn, profile backup: ResourceManager 127."), said
    assert len(said.splitlines()) == 1
