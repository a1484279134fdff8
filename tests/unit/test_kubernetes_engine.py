"""Tests which jobs the engine of Kubernetes cleans up after, and what it says of jobs whose pods are gone, against a
server that keeps its objects and runs nothing."""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kubernetes_server import KubernetesServer, kubernetes_server, lead_to

from howdah.client import history_service
from howdah.client.engine_registry import engine as engine_for
from howdah.client.engine_registry import settings_for
from howdah.client.submit import prepare
from howdah.engines import Engine
from howdah.engines.kubernetes import manifests
from howdah.engines.kubernetes.engine import ORIGIN
from howdah.engines.kubernetes.pod_status import CONTAINER
from howdah.errors import EngineUnavailable, SpecError
from howdah.spec import JobReport, JobSpec, Outcome, Output, Role, State
from howdah.spec.event_lines import read_log, to_line
from howdah.spec.events import Event, JobFinished, JobStarted
from howdah.spec.job import Board, Checkpoint, Environment, Save

JOB = JobSpec({"worker": Role("true")})
LONG_AGO = "2026-01-01T00:00:00Z"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesServer]:
    with kubernetes_server() as found:
        lead_to(found, tmp_path, monkeypatch)
        yield found


def opened() -> Engine:
    return engine_for(settings_for({"engine": "kubernetes"}))


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"outputs": (Output("file:///elsewhere/model"),)}, "outputs.0.path"),
        ({"outputs": (Output("model", save=Save(to="file:///elsewhere/saved")),)}, "outputs.0.save.to"),
        ({"checkpoint": Checkpoint("file:///elsewhere/ck")}, "checkpoint.path"),
        ({"board": Board(path="file:///elsewhere/runs")}, "board.path"),
        # The master's pod has no mounts of the job's own: it would find nothing to move, and no checkpoint.
        ({"outputs": (Output("file:///own/model"),)}, "outputs.0.path"),
        ({"checkpoint": Checkpoint("file:///own/ck")}, "checkpoint.path"),
    ],
)
def test_what_a_job_makes_is_where_all_pods_see_it(
    server: KubernetesServer, tmp_path: Path, more: dict[str, Any], place: str
) -> None:
    job = replace(JOB, environment=Environment(mounts=("/own",)), **more)
    with pytest.raises(SpecError, match=rf"{place}: is /(elsewhere|own)/\w+, which pods do not mount"):
        prepare(job, tmp_path, {"engine": "kubernetes"}, lambda _: None)


def test_what_a_job_makes_is_where_pods_may_write(
    server: KubernetesServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("HOWDAH_KUBERNETES_VOLUMES", f"{tmp_path},{tmp_path}/data:ro")
    job = replace(JOB, outputs=(Output("data/model"),), board=Board(path="data/runs"))
    with pytest.raises(SpecError, match=r"outputs\.0\.path: is \S+/data/model, which pods may only read"):
        prepare(job, tmp_path, {"engine": "kubernetes"}, lambda _: None)
    prepare(replace(job, outputs=(Output("model"),)), tmp_path, {"engine": "kubernetes"}, lambda _: None)


def submit(base: Path) -> str:
    prepared = prepare(JOB, base, {"engine": "kubernetes"}, lambda _: None)
    return prepared.engine.submit(prepared.plan, prepared.secrets)


def files_of(base: Path, job_id: str) -> Path:
    return base / "home" / "jobs" / job_id


def write_log(directory: Path, *events: Event) -> None:
    (directory / "events.jsonl").write_text("".join(map(to_line, events)))


def ends_of(directory: Path) -> list[JobFinished]:
    log = directory / "events.jsonl"
    events = read_log(log.read_text().splitlines()) if log.exists() else []
    return [event for event in events if isinstance(event, JobFinished)]


def end(server: KubernetesServer, job_id: str, kind: str = "Complete") -> None:
    """Let a Job be over, and its pods be gone with their node."""
    condition = {"type": kind, "status": "True", "lastTransitionTime": LONG_AGO, "message": "over"}
    server.objects["jobs"][job_id]["status"]["conditions"] = [condition]
    server.objects.pop("pods", None)


def state_of(job_id: str) -> tuple[State, str]:
    (report,) = opened().describe(job_id)
    return report.state, report.diagnostics


def test_what_an_unfinished_job_may_need_stays_in_the_cache(server: KubernetesServer, tmp_path: Path) -> None:
    (entry := tmp_path / "home" / "cache" / "01" / f"{'ab' * 32}-train.py").parent.mkdir(parents=True)
    entry.touch()
    job_id = submit(tmp_path)
    os.utime(entry, (time.time() - 45 * 86400,) * 2)
    annotations = server.objects["jobs"][job_id]["metadata"]["annotations"]
    annotations[manifests.SUBMITTED] = str(time.time() - 20 * 86400)
    submit(tmp_path)
    assert entry.exists()
    end(server, job_id)
    submit(tmp_path)
    assert not entry.exists()


# Whose jobs are cleaned up


def test_a_job_of_this_namespace_whose_job_is_gone_is_finished(server: KubernetesServer, tmp_path: Path) -> None:
    lost = submit(tmp_path)
    del server.objects["jobs"][lost]
    submit(tmp_path)
    assert not (files_of(tmp_path, lost) / "key").exists()
    assert [each.outcome.state for each in ends_of(files_of(tmp_path, lost))] == [State.FAILED]


def test_secrets_go_with_what_a_killed_master_has_left(server: KubernetesServer, tmp_path: Path) -> None:
    killed, running = submit(tmp_path), submit(tmp_path)
    server.add("secrets", {"metadata": {"name": f"{killed}-worker-1", "labels": {manifests.JOB: killed}}})
    end(server, killed, "Failed")
    last = submit(tmp_path)
    assert server.objects["secrets"].keys() == {running, last}


def change_origin(directory: Path, **values: str) -> None:
    origin = json.loads((directory / ORIGIN).read_text())
    (directory / ORIGIN).write_text(json.dumps({**origin, **values}))


def test_jobs_of_others_in_the_same_home_are_left_alone(server: KubernetesServer, tmp_path: Path) -> None:
    cluster, user, unknown, silent = jobs = [submit(tmp_path) for _ in range(4)]
    change_origin(files_of(tmp_path, cluster), cluster="of another cluster")
    change_origin(files_of(tmp_path, user), user="somebody else")
    (files_of(tmp_path, unknown) / ORIGIN).unlink()  # as of an earlier version
    change_origin(files_of(tmp_path, silent), cluster="")
    server.objects["jobs"].clear()  # this namespace has none of them
    submit(tmp_path)
    del server.objects["configmaps"]["kube-root-ca.crt"]  # the cluster does not say any more which one it is
    submit(tmp_path)
    for each in jobs:
        directory = files_of(tmp_path, each)
        assert (directory / "key").exists()
        assert ends_of(directory) == []
        assert opened().describe(each) == [], "whether it runs is not known here"
    finished = JobFinished(2.0, Outcome(State.SUCCEEDED))
    write_log(files_of(tmp_path, cluster), JobStarted(1.0, cluster, "kubernetes", "u", JOB), finished)
    assert state_of(cluster) == (State.SUCCEEDED, ""), "what its log says is true wherever it ran"


def test_a_job_whose_job_was_deleted_runs_until_its_master_has_ended(server: KubernetesServer, tmp_path: Path) -> None:
    job_id = submit(tmp_path)
    labels = {manifests.JOB: job_id, manifests.ROLE: manifests.MASTER, manifests.USER: getpass.getuser()}
    server.add("pods", {"metadata": {"name": f"{job_id}-x", "labels": labels}, "status": {"phase": "Running"}})
    del server.objects["jobs"][job_id]
    submit(tmp_path)
    assert state_of(job_id)[0] is State.RUNNING
    assert (files_of(tmp_path, job_id) / "key").exists()
    server.objects["pods"].clear()
    submit(tmp_path)
    assert state_of(job_id)[0] is State.FAILED
    assert not (files_of(tmp_path, job_id) / "key").exists()


def test_a_submission_that_was_killed_leaves_nothing(server: KubernetesServer, tmp_path: Path) -> None:
    late, early, other = (submit(tmp_path) for _ in range(3))
    for each in (late, early, other):
        job = server.objects["jobs"][each]
        job["spec"]["suspend"] = True
        job["metadata"]["creationTimestamp"] = LONG_AGO
        if each != other:  # which is complete, and was suspended by somebody else
            del job["metadata"]["annotations"][manifests.SUBMITTED]
    (files_of(tmp_path, early) / "key").unlink()
    (files_of(tmp_path, early) / "job.json").unlink()
    submit(tmp_path)
    for each in (late, early):
        assert each not in server.objects["jobs"]
        assert not files_of(tmp_path, each).exists()
    assert other in server.objects["jobs"]
    assert (files_of(tmp_path, other) / "key").exists()


# How a job has ended


def test_a_job_whose_pods_are_gone_ended_as_its_log_says(server: KubernetesServer, tmp_path: Path) -> None:
    job_id = submit(tmp_path)
    directory = files_of(tmp_path, job_id)
    for kind in ("Complete", "Failed"):
        end(server, job_id, kind)
        write_log(directory, JobStarted(1.0, job_id, "kubernetes", "u", JOB))
        assert state_of(job_id)[0] is State.FAILED
    assert state_of(job_id)[1] == "the master failed: it said nothing (over)"
    end(server, job_id)
    assert "neither the master's pod nor the event log says how the job ended" in state_of(job_id)[1]
    for outcome in (Outcome(State.SUCCEEDED), Outcome(State.CANCELLED, "by bob")):
        write_log(directory, JobStarted(1.0, job_id, "kubernetes", "u", JOB), JobFinished(2.0, outcome))
        for kind in ("Complete", "Failed"):
            end(server, job_id, kind)
            assert state_of(job_id) == (outcome.state, outcome.diagnostics)
            (listed,) = opened().describe()
            assert listed.state is outcome.state


def test_a_cancelled_job_whose_pods_go_before_it_has_ended_stays_cancelled(
    server: KubernetesServer, tmp_path: Path
) -> None:
    job_id = submit(tmp_path)
    server.objects["jobs"][job_id]["metadata"]["annotations"][manifests.CANCELLED] = "ann"
    assert state_of(job_id) == (State.RUNNING, "cancelled by ann")
    finished = JobFinished(2.0, Outcome(State.CANCELLED, "cancelled by ann"))
    write_log(files_of(tmp_path, job_id), JobStarted(1.0, job_id, "kubernetes", "u", JOB), finished)
    assert state_of(job_id) == (State.CANCELLED, "cancelled by ann")


def test_the_history_server_in_the_cluster_gets_the_settings_that_lead_to_its_home(
    server: KubernetesServer, tmp_path: Path
) -> None:
    del server
    prepared = history_service.prepare_service({"engine": "kubernetes"}, ["--engine", "kubernetes"], lambda _: None)
    words = prepared.plan.job.job.roles[history_service.ROLE].command
    assert f"kubernetes.home={tmp_path / 'home'}" in words[words.index("--set") :]


# What is reached through the API server

UNREACHED = "127.0.0.77"  # nobody listens there


def add_pod(server: KubernetesServer, job_id: str, role: str) -> None:
    labels = {manifests.JOB: job_id, manifests.ROLE: role}
    running = [{"name": CONTAINER, "state": {"running": {"startedAt": LONG_AGO}}}]
    status = {"phase": "Running", "podIP": UNREACHED, "containerStatuses": running}
    server.add("pods", {"metadata": {"name": f"{job_id}-x", "labels": labels}, "status": status})


def is_open(url: str) -> bool:
    try:
        socket.create_connection(("127.0.0.1", urllib.parse.urlsplit(url).port or 0), 5.0).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_pod_of_a_cancelled_job_has_its_own_time_to_stop(server: KubernetesServer, tmp_path: Path) -> None:
    job_id, engine = submit(tmp_path), opened()
    add_pod(server, job_id, "worker")
    engine.cancel(job_id)
    assert server.deletions == [{"propagationPolicy": "Background"}]


def test_a_pod_that_is_not_reached_gets_a_port_here(server: KubernetesServer, tmp_path: Path) -> None:
    job_id, engine = submit(tmp_path), opened()
    add_pod(server, job_id, "worker")
    url = engine.reach_url(job_id, f"http://{UNREACHED}:7001/page?a=b#token=c")
    assert re.fullmatch(r"http://127\.0\.0\.1:[0-9]+/page\?a=b#token=c", url)
    assert engine.has_tunnel
    assert is_open(url)
    assert engine.reach_url(job_id, f"http://{UNREACHED}:7001/") == url.partition("page")[0]
    next_url = engine.reach_url(job_id, f"http://{UNREACHED}:7002/")  # its program was started again
    assert is_open(next_url)
    assert not is_open(url)
    assert engine.reach_url(job_id, "http://127.0.0.78:7001/") == "http://127.0.0.78:7001/", "no pod of the job"
    with pytest.raises(EngineUnavailable, match="without a port"):
        engine.reach_url(job_id, f"http://{UNREACHED}/")
    assert engine.reach(JobReport(job_id, "", State.RUNNING, "kubernetes")).master == ""


def test_a_link_that_would_end_with_the_command_is_not_printed(server: KubernetesServer, tmp_path: Path) -> None:
    job_id = submit(tmp_path)
    add_pod(server, job_id, manifests.MASTER)
    (files_of(tmp_path, job_id) / "master.json").write_text(json.dumps({"url": f"http://{UNREACHED}:7001"}))
    command = [sys.executable, "-c", "from howdah.cli import main; main()", "status", job_id]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert f"page: `howdah page {job_id}`" in done.stdout, done.stderr
    assert "127.0.0.1" not in done.stdout
