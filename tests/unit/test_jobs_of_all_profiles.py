"""Tests that the client, the history server, the doctor and `trace` go over the clusters of all profiles, each of which
has a line if it does not answer."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner
from history_jobs import job_id, whole
from test_clusters import home, listed, run_job, user
from test_history_server import Caller, ask, options

import howdah
from howdah.cli.doctor import findings
from howdah.cli.history import options_of
from howdah.cli.trace import trace
from howdah.client.clusters import engine_of
from howdah.client.local_jobs import IncompleteJobList
from howdah.errors import EngineUnavailable, HowdahError
from howdah.history.options import HistoryOptions, ShownCluster, find_cluster
from howdah.history.server import HistoryServer

__all__ = ["home"]  # a fixture


def profiles(home: Path, **more: str) -> None:
    """Write a configuration with the cluster `one` of no profile, `two` of the profile b, and further profiles."""
    others = "".join(f"  {name}: {text}\n" for name, text in more.items())
    user(f"depot: {{conf_dir: {home}/one}}\nprofiles:\n  b: {{depot: {{conf_dir: {home}/two}}}}\n{others}")


def test_the_client_lists_the_jobs_of_all_profiles(home: Path) -> None:
    profiles(home)
    first, second = run_job(home), run_job(home, "--profile", "b")
    assert [report.id for report in howdah.Client().jobs()] == [second, first]
    assert [report.id for report in howdah.Client(profile="b").jobs()] == [second]
    profiles(home, c="{engine: nowhere}")
    with pytest.warns(IncompleteJobList, match="jobs are missing, profile c: engine: is 'nowhere'"):
        assert len(howdah.Client().jobs(limit=5)) == 2


def test_a_job_may_be_on_the_cluster_that_does_not_answer(home: Path) -> None:
    for name in ("one", "two"):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            address = f"127.0.0.1:{closed.getsockname()[1]}"
        (home / name).mkdir()
        value = f"<property><name>yarn.resourcemanager.address</name><value>{address}</value></property>"
        (home / name / "core-site.xml").write_text(f"<configuration>{value}</configuration>")
    user(f"hadoop_conf_dir: {home}/one\nprofiles: {{b: {{hadoop_conf_dir: {home}/two}}}}\n")
    job = "application_1700000000000_0001"
    words = f"{job} is on no cluster that answers, and not all do: yarn: .*; yarn, profile b: "
    with pytest.raises(EngineUnavailable, match=words):
        engine_of(job)


def test_one_history_server_shows_all_clusters(home: Path) -> None:
    profiles(home)
    first, second = run_job(home), run_job(home, "--profile", "b")
    made = options_of("", port=0)
    assert [(each.engine.name, each.name) for each in made.clusters] == [("local", ""), ("depot", ""), ("depot", "b")]
    assert [each.engine.name for each in options_of("b").clusters] == ["local", "depot"]

    def play(server: HistoryServer, caller: Caller) -> None:
        _, answer = caller.get("jobs")
        rows = {row["id"].replace("local-", "depot-"): row for row in answer["jobs"]}
        assert (rows[first]["cluster"], rows[second]["cluster"]) == ("", "b")
        assert caller.get("jobs?engine=nothing")[1]["total"] == 0
        assert caller.get(f"jobs?engine={rows[first]['engine']}")[1]["total"] == 2

    ask(made, play)


def test_a_job_belongs_to_the_cluster_whose_home_has_it(home: Path) -> None:
    profiles(home)
    clusters = options_of("").clusters
    for name, profile in (("one", ""), ("two", "b"), ("elsewhere", "")):
        found = find_cluster(clusters, f"file://{home}/{name}/jobs/depot-1", "depot")
        assert found is not None
        assert found.name == profile
    assert find_cluster(clusters, "file:///x", "nothing") is None
    hdfs = ShownCluster(clusters[0].engine, "hdfs://b/user/*/.howdah", "/conf/b", "b")
    made = HistoryOptions((*clusters, hdfs), home / "state", ("file:///more",), "/conf/usual")
    assert made.conf_dir_of("hdfs://b/user/bob/.howdah/jobs/x") == "/conf/b"
    assert made.conf_dir_of("file:///more/jobs/x") == "/conf/usual"
    assert made.roots[-2:] == ("hdfs://b/user/*/.howdah", "file:///more")


def test_the_list_asks_the_history_servers_of_all_profiles(home: Path) -> None:
    whole(home / "home", 1)

    def play(_: object, caller: Caller) -> None:
        link = f"{caller.base}/#token={caller.token}"
        user(f"profiles:\n  b: {{history_url: '{link}'}}\n  c: {{history_url: 'http://127.0.0.1:9/#token=x'}}\n")
        done = listed("--history", "--json")
        assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [job_id(1)]
        (said,) = done.stderr.splitlines()
        assert said.startswith("howdah: the history server of profile c: ")
        assert howdah.Client().users()[0]["jobs"] == 1
        with pytest.raises(HowdahError):
            listed("--history", "--profile", "c")
        user("")

    ask(options(home), play)


def test_the_doctor_checks_the_clusters_of_all_profiles(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])
    user(
        f"profiles:\n  b: {{hadoop_conf_dir: {home}/none}}\n  c: {{hadoop_conf_dir: {home}/none, queue: q}}\n"
        "  d: {engine: nowhere}\n"
    )
    found = [(each.state, each.name) for each in findings("", False, "")]
    assert ("fail", "profile d") in found
    assert ("fail", "HADOOP_CONF_DIR, profile b") in found
    assert ("ok", "jobs") in found
    assert [each.name for each in findings("yarn", False, "b") if each.state == "fail"] == ["HADOOP_CONF_DIR"]


def test_trace_finds_containers_of_all_profiles(home: Path) -> None:
    profiles(home)
    job = run_job(home, "--profile", "b").replace("depot-", "local-")
    view = json.loads(CliRunner().invoke(trace, [f"{job}.1", "--json"], catch_exceptions=False).stdout)
    assert (view["job"], view["task"]) == (job, "worker:0")
    shutil.rmtree(home / "two")
