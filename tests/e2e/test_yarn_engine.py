"""Tests jobs by the YARN engine: refused, run, failed, cancelled; their logs, and that nothing is left behind."""

from __future__ import annotations

import dataclasses
import itertools
import sys
import time
import zlib
from collections import defaultdict
from pathlib import Path

import pytest

from howdah.engines.yarn import conf
from howdah.engines.yarn.engine import MAX_PACKED_BYTES, YarnEngine
from howdah.engines.yarn.logs import tfile
from howdah.engines.yarn.logs.aggregated import directories
from howdah.engines.yarn.upload import job_text
from howdah.errors import EngineRejected, EngineUnavailable, JobNotFound, StagingError
from howdah.sandbox import Sandbox
from howdah.spec import JobReport, JobSpec, Resources, Role, StagedFile, StagedJob, State, TaskId
from howdah.staging.runtime_archive import stage_runtime
from howdah.storage.begun_files import BEGUN_LOG
from howdah.storage.factory import filesystem


@pytest.fixture
def engine(sandbox: Sandbox) -> YarnEngine:
    return YarnEngine({"hadoop_conf_dir": str(sandbox.conf_dir)})


def job(
    engine: YarnEngine, command: str = "true", replicas: int = 2, resources: Resources | None = None, **more
) -> StagedJob:
    roles = {"worker": Role(command, replicas, resources or Resources(256, 1))}
    return StagedJob(
        JobSpec(roles, name="e2e", **more), engine.home, runtime=(stage_runtime(engine.home),), python=sys.executable
    )


def wait(engine: YarnEngine, id_: str, *states: State) -> JobReport:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        (report,) = engine.describe(id_)
        if report.state in states or (report.state.ended and not states):
            return report
        time.sleep(0.1)
    raise AssertionError(report)


def logs(engine: YarnEngine, id_: str, task: TaskId | None = None) -> dict[str, bytes]:
    found: dict[str, bytes] = defaultdict(bytes)
    for heading, piece in engine.logs(id_, task):
        found[heading] += piece
    return found


def test_a_job_runs_and_its_logs_are_read(engine: YarnEngine) -> None:
    command = 'echo "hello from $HOWDAH_TASK, $(test "$WORD" = hush && echo trusted)"; echo oops >&2'
    id_ = engine.submit(engine.plan(job(engine, command, secrets={"WORD": "env:WORD"})), {"WORD": "hush"})
    report = wait(engine, id_)
    assert (report.state, report.diagnostics) == (State.SUCCEEDED, "")
    assert report.directory == f"{engine.home}/jobs/{id_}"
    found = logs(engine, id_)
    for index in (0, 1):
        assert found[f"worker:{index} attempt 1 stdout"] == f"hello from worker:{index}, trusted\n".encode()
        assert found[f"worker:{index} attempt 1 stderr"] == b"oops\n"
    assert set(logs(engine, id_, TaskId("worker", 1))) == {"worker:1 attempt 1 stdout", "worker:1 attempt 1 stderr"}
    assert id_ in [each.id for each in engine.describe()]


def test_one_tasks_log_is_read_without_the_others(engine: YarnEngine, sandbox: Sandbox) -> None:
    id_ = engine.submit(engine.plan(job(engine, "seq 200000; echo the end of $HOWDAH_TASK", replicas=3)), {})
    report = wait(engine, id_)
    assert engine.logs_complete(id_)
    whole = logs(engine, id_)
    for index in range(3):
        task = TaskId("worker", index)
        (printed,) = (piece for name, piece in logs(engine, id_, task).items() if name.endswith("stdout"))
        assert printed == whole[f"{task} attempt 1 stdout"]
        assert printed.endswith(f"200000\nthe end of {task}\n".encode())
    configuration = conf.load(str(sandbox.conf_dir))
    files = filesystem(configuration.text("fs.defaultFS"), str(sandbox.conf_dir))
    places = [place for place in directories(configuration, id_, report.user) if files.exists(place)]
    for node in files.children(places[0]):
        with files.open_read(node.uri) as file:
            blocks = tfile._blocks(file)
            keys = [key for key, _ in tfile.records(file)]
        ends = itertools.accumulate(block.count for block in blocks)
        assert [keys[end - 1] for end in ends] == [block.last for block in blocks]
        assert sum(block.count for block in blocks) == len(keys)  # so that others can be skipped


def test_a_failure_is_in_yarns_own_diagnostics(engine: YarnEngine) -> None:
    id_ = engine.submit(engine.plan(job(engine, "echo the reason >&2; exit 3")), {})
    report = wait(engine, id_)
    assert report.state is State.FAILED
    assert "worker:" in report.diagnostics
    assert "3" in report.diagnostics


def test_a_job_too_large_for_the_credentials_travels_as_a_file(
    engine: YarnEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Words that zlib cannot shrink below the limit.
    tags = tuple(f"{number * 2654435761 % (1 << 61):x}" for number in range(20000))
    staged = job(engine)
    staged = dataclasses.replace(staged, sources=dict.fromkeys(tags, "x"))
    assert len(zlib.compress(job_text(staged))) > MAX_PACKED_BYTES
    id_ = engine.submit(engine.plan(staged), {})
    assert wait(engine, id_).state is State.SUCCEEDED


def test_files_arrive(engine: YarnEngine, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("some data")
    uri = f"{engine.home}/cache/test-{time.time_ns()}"
    staged = job(engine, 'test "$(cat data)" = "some data"')
    files = (StagedFile("data", uri, source=str(tmp_path / "data")),)
    id_ = engine.submit(engine.plan(dataclasses.replace(staged, files=files)), {})
    assert wait(engine, id_).state is State.SUCCEEDED


def test_an_event_log_begins_with_the_file_that_the_submission_before_has_left(
    engine: YarnEngine, sandbox: Sandbox
) -> None:
    """HDFS closes a new file half a second late, and the programs' start waits for its event."""
    fs = filesystem(engine.home, str(sandbox.conf_dir))
    for number in range(2):
        id_ = engine.submit(engine.plan(job(engine)), {})
        assert fs.exists(f"{engine.home}/{BEGUN_LOG}"), "nothing is left for the next job"
        assert wait(engine, id_).state is State.SUCCEEDED
        lines = fs.read_bytes(f"{engine.home}/jobs/{id_}/events.jsonl").splitlines()
        assert b"JobStarted" in lines[1 if number else lines[0] == b""]
    assert lines[0] == b""
    assert not fs.exists(f"{engine.home}/jobs/{id_}/{BEGUN_LOG}")


def test_cancelled(engine: YarnEngine) -> None:
    id_ = engine.submit(engine.plan(job(engine, "sleep 600")), {})
    wait(engine, id_, State.RUNNING)
    engine.cancel(id_)
    report = wait(engine, id_)
    assert report.state is State.CANCELLED
    assert "cancelled by" in report.diagnostics
    engine.cancel(id_)


def test_what_can_never_run_is_refused_before_anything_is_written(engine: YarnEngine) -> None:
    refused = {
        "there is no queue 'defualt'; yours are: default, prod. Did you mean 'default'?": {"queue": "defualt"},
        "queue 'root' takes no jobs, only those below it do: default, prod": {"queue": "root"},
        "role 'worker': 64 GiB memory asked, the largest node has 8 GiB memory": {"resources": Resources(65536)},
        "role 'worker': 5 gpus asked, the largest node has 4 gpus": {"resources": Resources(256, 1, 5)},
        "the job needs 16 gpus in all, the whole cluster has 12 gpus": {
            "resources": Resources(256, 1, 4),
            "replicas": 4,
        },
        "role 'worker': the cluster has no node label 'big' (it has: none)": {"node_label": "big"},
    }
    for message, changes in refused.items():
        with pytest.raises(EngineRejected) as caught:
            engine.plan(job(engine, **changes))
        assert str(caught.value) == message


def test_a_missing_file_leaves_nothing(engine: YarnEngine, sandbox: Sandbox) -> None:
    files = (StagedFile("data", f"{engine.home}/cache/nosuch", source="/nonexistent/file"),)
    plan = engine.plan(dataclasses.replace(job(engine), files=files))
    fs = filesystem(engine.home, str(sandbox.conf_dir))
    before = [entry.uri for entry in fs.children(f"{engine.home}/jobs")] if fs.exists(f"{engine.home}/jobs") else []
    with pytest.raises(StagingError, match="/nonexistent/file"):
        engine.submit(plan, {})
    assert [entry.uri for entry in fs.children(f"{engine.home}/jobs")] == before


def test_unknown_jobs(engine: YarnEngine) -> None:
    assert engine.describe("application_17_0001") == []
    engine.cancel("application_17_0001")
    assert engine.describe("job_17") == []
    with pytest.raises(JobNotFound, match="is not an application id"):
        engine.cancel("job_17")


def test_an_engine_that_does_not_answer_is_unavailable(engine: YarnEngine, tmp_path: Path) -> None:
    (tmp_path / "yarn-site.xml").write_text(
        "<configuration><property><name>yarn.resourcemanager.address</name><value>127.0.0.1:1</value></property></configuration>"
    )
    with pytest.raises(EngineUnavailable, match=r"127.0.0.1:1 \(yarn.resourcemanager.address\): connection refused"):
        YarnEngine({"hadoop_conf_dir": str(tmp_path)}).describe()


def test_no_python_on_the_nodes_is_said(engine: YarnEngine) -> None:
    id_ = engine.submit(engine.plan(dataclasses.replace(job(engine), python="/nonexistent/python3")), {})
    report = wait(engine, id_)
    assert report.state is State.FAILED
    assert "/nonexistent/python3" in report.diagnostics
