"""Tests `howdah list --history` with a history server that knows other jobs than the engines here."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import pytest
from click.testing import CliRunner, Result
from history_jobs import BEGAN, job_id, whole
from test_history_server import Caller, ask, options

from howdah.api.history_servers import announce_link
from howdah.cli.config import config
from howdah.cli.jobs import list_jobs, table
from howdah.client import job_list
from howdah.client.clusters import ConfiguredCluster
from howdah.client.engine_registry import settings_for
from howdah.client.job_filter import JobFilter
from howdah.client.job_list import ListedJob, find_history_servers, jobs_of_history, merge_jobs
from howdah.client.submit import prepare
from howdah.config.job_file import load
from howdah.config.settings import HISTORY_URL
from howdah.config.user_file import user_file
from howdah.errors import EngineUnavailable, NotFound, SpecError
from howdah.spec import JobReport, State


@pytest.fixture(autouse=True)
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Jobs that a server remembers, and a home without any."""
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "ours"))
    monkeypatch.setenv("HOWDAH_LANGUAGE", "en")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HOWDAH_HISTORY_URL", raising=False)
    whole(tmp_path / "home", 1)
    whole(tmp_path / "home", 2, State.FAILED, "why it failed", queue="prod")
    whole(tmp_path / "home", 3, tags=("sweep",))
    return tmp_path


def listed(*arguments: str) -> Result:
    return CliRunner().invoke(list_jobs, arguments)


def ids(*arguments: str) -> list[str]:
    done = listed("--history", "--json", *arguments)
    assert done.exit_code == 0, done.exception
    return [json.loads(line)["id"] for line in done.stdout.splitlines()]


def beside(directory: Path, monkeypatch: pytest.MonkeyPatch, questions: Callable[[], Any]) -> None:
    """Ask while the server serves."""

    def play(_: object, caller: Caller) -> None:
        monkeypatch.setenv("HOWDAH_HISTORY_URL", f"{caller.base}/#token={caller.token}")
        questions()

    ask(options(directory), play)


def test_what_only_a_history_server_knows(ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def questions() -> None:
        assert listed().stdout == "no jobs\n"
        assert set(ids()) == {job_id(1), job_id(2), job_id(3)}
        assert ids("--state", "failed") == [job_id(2)]
        assert ids("--tag", "sweep") == [job_id(3)]
        assert ids("--tag", "swee") == []
        assert ids("--text", "WHY failed") == [job_id(2)]
        assert ids("--user", "nobody") == ids("--name", "no such name") == []
        assert ids("--on", "local") == []  # they were of YARN
        assert ids("--since", "1s") == []
        assert len(ids("--since", f"{time.time() - BEGAN + 86400:.0f}")) == 3
        few = listed("--history", "--limit", "2")
        assert len(few.stdout.splitlines()) == 3
        assert few.stderr == "the newest 2 jobs; --limit shows more\n"
        assert job_id(2) in listed("--history", "--state", "FAILED").stdout

    beside(ours, monkeypatch, questions)


def test_a_history_server_of_this_machine_is_found(ours: Path) -> None:
    def play(_: object, caller: Caller) -> None:
        with announce_link(ours / "ours" / "state" / "history", f"{caller.base}/#token={caller.token}"):
            assert set(ids()) == {job_id(1), job_id(2), job_id(3)}
        assert isinstance(listed("--history").exception, NotFound)

    ask(options(ours), play)


def test_the_token_of_the_link_goes_nowhere(ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_HISTORY_URL", "http://history:1/#token=s3cret")
    for arguments in ((), ("--json",)):
        shown = CliRunner().invoke(config, arguments)
        assert "http://history:1/#…" in shown.stdout
        assert "s3cret" not in shown.stdout
    assert settings_for({})[HISTORY_URL].endswith("s3cret")
    (ours / "job.yaml").write_text("roles: {worker: {command: 'true'}}")
    prepared = prepare(load(ours / "job.yaml", {}).spec, ours, {"engine": "local"}, lambda _: None)
    assert "s3cret" not in repr(prepared.plan)


def test_what_is_wrong_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, kind, words in (
        (("--history",), NotFound, "no history server is known: set history_url"),
        (("--state", "FAILD"), SpecError, "'FAILD' is none of "),
        (("--since", "soon"), SpecError, "must be a duration"),
    ):
        error = listed(*arguments).exception
        assert isinstance(error, kind)
        assert words in str(error)
    monkeypatch.setenv("HOWDAH_HISTORY_URL", "http://127.0.0.1:9/#token=x")
    assert isinstance(listed("--history").exception, EngineUnavailable)
    monkeypatch.setenv("HOWDAH_HISTORY_URL", "history:18488")
    assert "must begin with http" in str(listed("--history").exception)


def test_a_long_name_leaves_room_for_the_state() -> None:
    heading, line = table([JobReport("a", "x" * 200, State.RUNNING, "yarn")])
    assert click.unstyle(line).startswith(f"a   {'x' * 39}…  RUNNING")
    assert heading.index("State") == click.unstyle(line).index("RUNNING")


def test_the_only_history_server_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HOWDAH_HISTORY_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/#token=x")
        with pytest.raises(EngineUnavailable, match=r"no answer within 0\.2 s"):
            jobs_of_history(JobFilter(), "", "", 10, limit_s=0.2)


def test_an_engine_knows_better() -> None:
    now = JobReport("a", "one", State.RUNNING, "yarn", "me", submitted=5.0)
    then = [JobReport("a", "one", State.PENDING, "yarn"), JobReport("b", "two", State.FAILED, "yarn", started=7.0)]
    merged = [(job.report.id, job.report.state, job.profile) for job in merge_jobs([ListedJob(now, "prod")], then)]
    assert merged == [("b", State.FAILED, ""), ("a", State.RUNNING, "prod")]
    at = 1000.0

    def reported(user: str = "me", name: str = "one", **moments: float) -> JobReport:
        return JobReport("slurm-5", name, State.SUCCEEDED, "slurm", user, **moments)  # type: ignore[arg-type]

    known = [ListedJob(reported(submitted=at, started=at + 5, finished=at + 9))]
    for same in (reported(started=at + 7), reported("", "slurm-5", started=at + 9999), reported("", "")):
        assert len(merge_jobs(known, [same])) == 1, same
    others = [reported(started=9 * at), reported("you", started=at + 7), reported(name="two", started=at + 7)]
    assert len(merge_jobs(known, [*others, *others])) == 4  # jobs of the same id on other clusters
    assert JobFilter(user="you,me", state="RUNNING", name="ON", text="one a", since=5.0).fits(now)
    for wrong in (
        JobFilter(user="m"),
        JobFilter(state="FAILED"),
        JobFilter(name="two"),
        JobFilter(text="one b"),
        JobFilter(since=6.0),
    ):
        assert not wrong.fits(now)


def test_the_history_knows_tags_that_the_engine_does_not() -> None:
    at = 1000.0
    known = ListedJob(JobReport("a", "one", State.RUNNING, "yarn", "me", submitted=at), "prod")
    then = JobReport("a", "one", State.SUCCEEDED, "yarn", "me", started=at + 1, tags=("sweep",))
    (merged,) = merge_jobs([known], [then])
    assert merged == replace(known, report=replace(known.report, tags=("sweep",)))
    own = replace(known, report=replace(known.report, tags=("own",)))
    assert merge_jobs([own], [then]) == [own]


def test_the_history_server_of_this_machine_is_not_that_of_a_cluster(
    ours: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = user_file(os.environ)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("profiles: {prod: {engine: yarn}, here: {engine: local}}\n")
    problem = [False]

    def describe(job_id: str | None = None) -> list[JobReport]:
        if problem[0]:
            raise EngineUnavailable("no route")
        return []

    def clusters(_name: str, profile: str) -> list[ConfiguredCluster]:
        cluster = SimpleNamespace(name="yarn", one_machine=False, describe=describe)
        machine = SimpleNamespace(name="local", one_machine=True, describe=lambda *_: [])
        return [ConfiguredCluster(cast(Any, each), profile) for each in (machine, cluster)]

    monkeypatch.setattr(job_list, "find_clusters", clusters)
    link = "http://127.0.0.1:9/#token=x"
    with announce_link(ours / "ours" / "state" / "history", link):
        for profile, found in (("", [link]), ("here", [link]), ("prod", [])):
            assert [each.find_link() for each in find_history_servers(profile)] == found
        problem[0] = True
        with pytest.raises(EngineUnavailable, match="no route"):
            list(find_history_servers())
        monkeypatch.setenv("HOWDAH_HISTORY_URL", "http://known:1/")
        assert [each.find_link() for each in find_history_servers()] == ["http://known:1/"]


def test_options_of_config_hold_for_its_commands() -> None:
    path = user_file(os.environ)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("queue: all\nprofiles:\n  prod:\n    queue: fast\n  test:\n    queue: slow\n")

    def shown(*words: str) -> str:
        done = CliRunner().invoke(config, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    assert shown("--profile", "prod", "list") == shown("list", "--profile", "prod") != shown("list")
    assert json.loads(shown("--json", "list")) == json.loads(shown("list", "--json"))
    assert shown("--profile", "prod", "list", "--profile", "test") == shown("list", "--profile", "test")
    assert shown("--profile", "prod", "get", "queue") == "fast\n"
    shown("--profile", "prod", "set", "queue", "night")
    assert (shown("get", "queue"), shown("get", "queue", "--profile", "prod")) == ("all\n", "night\n")
    assert json.loads(shown("--json", "path")) == {"path": str(path)}
