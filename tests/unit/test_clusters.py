"""Tests that profiles lead to several clusters of one engine, which are listed together and each asked once."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import depot_engine
import pytest
from click.testing import CliRunner, Result

from howdah import Client
from howdah.cli.history import shown_clusters
from howdah.cli.jobs import cancel, list_jobs, status
from howdah.client.clusters import ClusterAnswer, describe_clusters, engine_of, find_clusters, find_configured_engines
from howdah.client.engine_registry import engine, settings_for
from howdah.client.job_list import jobs_of_answers
from howdah.client.local_jobs import IncompleteJobList
from howdah.config.user_file import user_file
from howdah.engines.spark.engine import SparkEngine
from howdah.errors import EngineUnavailable, HowdahError, JobNotFound, SpecError
from howdah.spec import JobReport, JobSpec, Role, StagedJob, State, uris
from howdah.spec.codec import encode

HOWDAH = Path(sys.executable).with_name("howdah")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a configuration, and the engine `depot` of another package."""
    depot_engine.use_home(tmp_path, monkeypatch)
    return tmp_path


def user(text: str) -> None:
    path = user_file(os.environ)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def places(name: str = "", profile: str = "") -> list[tuple[str, str]]:
    return [(each.engine.name, each.profile) for each in find_clusters(name, profile)]


def test_without_profiles_there_is_this_machine() -> None:
    assert places() == places("local") == [("local", "")]


def test_jobs_are_found_whose_application_alone_knew_the_master(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may make its SparkContext with a master of this machine that no setting names."""
    for variable in ("SPARK_HOME", "SPARK_CONF_DIR", "HOWDAH_SPARK_HOME"):
        monkeypatch.delenv(variable, raising=False)
    submitted = engine(settings_for({"engine": "spark", "spark.master": "spark://127.0.0.1:7077"})).home
    jobs = Path(uris.path(submitted), "jobs")
    assert places() == [("local", "")]
    jobs.mkdir(parents=True)
    assert places() == [("local", ""), ("spark", "")]
    assert engine_of("spark-1").home == submitted
    assert [each.name for each in find_configured_engines()] == ["local"]  # `howdah doctor` checks no such cluster
    elsewhere = SparkEngine({"spark.master": "spark://head:7077"})
    assert any(problem.startswith("spark.home is not set") for problem in elsewhere.wrong_settings())


def test_a_job_is_meant_that_profiles_lead_to_by_the_same_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masters of Spark that differ keep their jobs in one directory of this machine."""
    for variable in ("SPARK_HOME", "SPARK_CONF_DIR", "HOWDAH_SPARK_HOME"):
        monkeypatch.delenv(variable, raising=False)
    shared = uris.path(engine(settings_for({"engine": "spark"})).home)
    elsewhere = tmp_path / "elsewhere"
    user(
        "profile: none\nprofiles:\n  none: {engine: local, spark.home: " + str(tmp_path / "empty") + "}\n"
        "  a: {spark.master: 'spark://127.0.0.1:7077'}\n  b: {queue: q}\n"
        f"  c: {{spark.home: {elsewhere}}}\n"
    )
    job = encode(StagedJob(JobSpec({"worker": Role("true")}), "file:///h"))
    for directory in (Path(shared, "jobs", "spark-1"), elsewhere / "jobs" / "spark-2"):
        directory.mkdir(parents=True)
        (directory / "job.json").write_text(json.dumps(job))
    assert [each.profile for each in find_clusters("spark")] == ["none", "a", "b", "c"]
    assert uris.path(engine_of("spark-1").home) == shared
    assert uris.path(engine_of("spark-2").home) == str(elsewhere)
    shutil.copytree(Path(shared, "jobs", "spark-1"), elsewhere / "jobs" / "spark-1")
    with pytest.raises(SpecError, match="must say which spark-1 is meant: the profiles a, c have one each"):
        engine_of("spark-1")


def test_a_cluster_is_found_once_by_the_first_profile_that_leads_there() -> None:
    user(
        "depot: {conf_dir: /one}\n"
        "profiles:\n"
        "  b: {engine: depot, depot: {conf_dir: /two}}\n"
        "  c: {depot.conf_dir: /one, queue: other}\n"
        "  d: {engine: depot, depot: {conf_dir: /two, account: x}}\n"
    )
    assert places() == [("local", ""), ("depot", ""), ("depot", "b")]
    assert places("depot") == [("depot", ""), ("depot", "b")]
    assert places("local") == [("local", "")]
    assert places("depot", "d") == [("depot", "d")]
    user("profile: d\nprofiles: {b: {depot.conf_dir: /two}, d: {depot.conf_dir: /two}}\n")
    assert places() == [("local", "d"), ("depot", "d")]
    user("profiles: {b: {depot.conf_dir: /two}, c: {queue: q}}\n")
    assert places("depot") == [("depot", "b")]  # the settings without a profile lead to none
    with pytest.raises(SpecError, match=r"engine: is 'depott'.*did you mean 'depot'"):
        places("depott")


def test_another_profile_that_is_wrong_is_reported_and_left_out() -> None:
    user("profiles: {a: {engine: nowhere}, b: {cache_days: soon}, c: {depot.conf_dir: /c}}\n")
    wrong: list[tuple[str, str]] = []
    found = find_clusters("", "", lambda _engine, profile, error: wrong.append((profile, str(error))))
    assert [(each.engine.name, each.profile) for each in found] == [("local", ""), ("depot", "c")]
    assert [profile for profile, _ in wrong] == ["a", "b"]
    assert "engine: is 'nowhere', known are" in wrong[0][1]
    assert "cache_days: is 'soon'" in wrong[1][1]
    with pytest.raises(SpecError, match="cache_days: is 'soon'"):
        find_clusters("", "b")


@pytest.fixture
def silent_resourcemanagers(tmp_path: Path) -> Iterator[list[Path]]:
    """The Hadoop configurations of two ResourceManagers that accept connections and say nothing."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    found = []
    for number, each in enumerate(sockets):
        directory = tmp_path / f"conf-{number}"
        directory.mkdir()
        values = {"yarn.resourcemanager.address": f"127.0.0.1:{each.getsockname()[1]}", "fs.defaultFS": "file:///"}
        lines = "".join(
            f"<property><name>{name}</name><value>{text}</value></property>" for name, text in values.items()
        )
        (directory / "core-site.xml").write_text(f"<configuration>{lines}</configuration>")
        found.append(directory)
    yield found
    for each in sockets:
        each.close()


def test_each_cluster_has_a_limit(silent_resourcemanagers: list[Path]) -> None:
    one, two = silent_resourcemanagers
    user(
        f"hadoop_conf_dir: {one}\nprofiles:\n  b: {{hadoop_conf_dir: {two}}}\n"
        f"  c: {{hadoop_conf_dir: {one}, queue: q, staging_dir: 'file:///elsewhere'}}\n"
    )
    (alone,) = describe_clusters(find_clusters("yarn", "b"), limit_s=0.2)
    assert str(alone.error) == "no answer within 0.2 s"
    answers = list(describe_clusters(find_clusters(), limit_s=0.2))
    assert [(each.engine, each.profile) for each in answers] == [("local", ""), ("yarn", ""), ("yarn", "b")]
    assert answers[0].error is None
    for answer in answers[1:]:
        assert isinstance(answer.error, EngineUnavailable)
        assert str(answer.error) == "no answer within 0.2 s"


def test_an_unforeseen_error_is_raised() -> None:
    user("profiles: {a: {depot.conf_dir: /a}}\n")
    clusters = find_clusters()
    clusters[0].engine.describe = lambda _: 1 // 0  # type: ignore[method-assign, assignment, return-value]
    with pytest.raises(ZeroDivisionError):
        list(describe_clusters(clusters))


def run_job(home: Path, *arguments: str) -> str:
    """Run a job that does nothing; return its id on the engine `depot`."""
    environment = {**os.environ, "PYTHONPATH": str(home / "site")}
    command = [HOWDAH, "run", "--on", "depot", *arguments, "--", "true"]
    done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[1].replace("local-", "depot-")


def listed(*arguments: str) -> Result:
    done = CliRunner().invoke(list_jobs, arguments)
    if isinstance(done.exception, HowdahError):
        raise done.exception
    assert done.exit_code == 0, done.exception
    return done


def rows(*arguments: str) -> set[tuple[str, str]]:
    return {(row["id"], row["profile"]) for row in map(json.loads, listed("--json", *arguments).stdout.splitlines())}


def test_the_list_has_the_jobs_of_all_profiles(home: Path) -> None:
    user(
        f"depot: {{conf_dir: {home}/one}}\nprofiles:\n"
        f"  b: {{depot: {{conf_dir: {home}/two}}}}\n  c: {{depot.conf_dir: {home}/one}}\n"
    )
    first, second = run_job(home), run_job(home, "--profile", "b")
    assert rows() == {(first, ""), (second, "b")}
    assert rows("--profile", "b") == {(second, "b")}
    assert rows("--on", "depot", "--profile", "c") == {(first, "c")}
    heading, *lines = listed().stdout.splitlines()
    assert heading.endswith("Profile")
    assert [line.endswith("  b") for line in lines] == [second in line for line in lines]
    assert "Profile" not in listed("--profile", "b").stdout

    for job in (first, second):  # found by its id, whichever profile leads to it
        assert CliRunner().invoke(status, [job]).stdout.startswith(job)
    assert "had ended already" in CliRunner().invoke(cancel, [second]).stdout
    assert isinstance(CliRunner().invoke(status, [second, "--profile", "c"]).exception, JobNotFound)
    assert isinstance(CliRunner().invoke(status, ["depot-none"]).exception, JobNotFound)

    being_removed = shutil.ignore_patterns("tasks")  # when a job ends, its master removes what the tasks have left
    shutil.copytree(home / "two" / "jobs", home / "three" / "jobs", ignore=being_removed)  # the same id elsewhere
    text = user_file(os.environ).read_text()
    user(f"{text}  d: {{depot.conf_dir: {home}/three}}\n")
    with pytest.raises(
        SpecError, match=f"--profile: must say which {second} is meant: the profiles b, d have one each"
    ):
        engine_of(second)
    assert engine_of(second, "d").home.endswith("/three")
    user(f"profile: d\n{text}  d: {{depot.conf_dir: {home}/three}}\n")
    assert engine_of(second).home.endswith("/three")  # the profile in use comes first


def test_a_cluster_that_does_not_answer_has_a_line(home: Path) -> None:
    user(
        f"profiles:\n  b: {{depot: {{conf_dir: {home}/two}}}}\n"
        f"  c: {{hadoop_conf_dir: {home}/none}}\n  d: {{engine: nowhere}}\n"
    )
    job = run_job(home, "--profile", "b")
    assert engine_of(job).home.endswith("/two")  # the only cluster of this engine, though not of the profile in use
    done = listed()
    assert job in done.stdout
    said = done.stderr.splitlines()
    assert len(said) == 2
    assert said[0].startswith("howdah: yarn, profile c: hadoop_conf_dir: ")
    assert ", profile c)" in said[0]
    assert said[1].startswith("howdah: profile d: engine: is 'nowhere', known are ")


def test_an_engine_that_cannot_be_reached_hides_no_other(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(home / "none"))
    user(f"kubernetes.home: {home}/shared\ndepot: {{conf_dir: {home}/one}}\n")
    job = run_job(home)
    done = listed()
    assert job in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("howdah: kubernetes: ")
    assert str(home / "none") in line
    with pytest.raises(HowdahError, match=f"{home}/none"):
        listed("--on", "kubernetes")
    with pytest.warns(IncompleteJobList, match=f"jobs are missing, kubernetes: .*{home}/none"):
        assert job in [report.id for report in Client().jobs()]
    assert [cluster.engine.name for cluster in shown_clusters("", "")] == ["local", "depot"]


def test_silence_of_all_clusters_of_the_named_engine_is_an_error(home: Path) -> None:
    closed = socket.create_server(("127.0.0.1", 0))
    port = closed.getsockname()[1]
    closed.close()
    (home / "conf").mkdir()
    value = f"<property><name>yarn.resourcemanager.address</name><value>127.0.0.1:{port}</value></property>"
    (home / "conf" / "core-site.xml").write_text(f"<configuration>{value}</configuration>")
    user(f"profiles: {{b: {{hadoop_conf_dir: {home}/conf}}}}\n")
    assert listed().stderr.startswith(f"howdah: yarn, profile b: ResourceManager 127.0.0.1:{port}")
    with pytest.raises(EngineUnavailable):
        listed("--on", "yarn")


def test_a_job_that_two_addresses_lead_to_is_listed_once() -> None:
    def report(submitted: float) -> JobReport:
        return JobReport("slurm-5", "one", State.RUNNING, "slurm", "me", submitted=submitted)

    answers = [ClusterAnswer("slurm", "a", [report(1.0)]), ClusterAnswer("slurm", "b", [report(1.0), report(2.0)])]
    found = [(job.report.submitted, job.profile) for job in jobs_of_answers(answers)]
    assert found == [(1.0, "a"), (2.0, "b")]
