"""Tests `howdah.Client` with real jobs: by the local engine, by a page's link, by the history server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import howdah
from howdah.client.clusters import engine_of
from howdah.client.job_end import report_of
from howdah.client.page_links import page_link
from howdah.errors import InvalidRequest, JobEnded, JobNotFound, NotFound, NotPermitted, RequestRefused, SpecError
from howdah.outputs.commit import reserve
from howdah.spec import JobSpec, Output, Role, State, TaskId, uris
from howdah.spec.job import Checkpoint

LIMIT_S = 120.0
JOB = """name: two words
env: {API_TOKEN: hidden}
roles:
  worker:
    replicas: 2
    command: 'mkdir -p out; echo hello from $HOWDAH_TASK; echo x > out/x; until [ -e %s/go ]; do sleep 0.1; done'
outputs:
  - { from: out, path: %s/kept }
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    (tmp_path / "job.yaml").write_text(JOB % (tmp_path, tmp_path))
    yield tmp_path
    client = howdah.Client(engine="local")
    for report in client.jobs(state=[State.PENDING, State.RUNNING]):
        client.cancel(report.id)
    deadline = time.monotonic() + LIMIT_S
    while left := processes_of(tmp_path):
        assert time.monotonic() < deadline, f"these processes did not end: {left}"
        time.sleep(0.05)


def processes_of(home: Path) -> list[int]:
    """Masters and executors with this directory in their environment, and the supervisor, which has it in its words."""
    found = []
    for pid in (int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()):
        try:
            said = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if pid != os.getpid() and str(home).encode() in said:
            found.append(pid)
    return found


def running(client: howdah.Client, job_id: str) -> None:
    until = time.monotonic() + LIMIT_S
    while client.job(job_id).state is not State.RUNNING:
        assert time.monotonic() < until, f"{job_id} is not running"
        time.sleep(0.1)


def eventually_says(client: howdah.Client, job_id: str, text: str) -> None:
    until = time.monotonic() + LIMIT_S
    while "".join(client.logs(job_id, "worker:1")) != text:
        assert time.monotonic() < until, f"it does not say {text!r}"
        time.sleep(0.1)


def test_a_job_from_its_submission_to_its_history(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = howdah.Client(engine="local")
    job_id = client.submit(home / "job.yaml", sets={"name": "set"})
    running(client, job_id)
    eventually_says(client, job_id, "hello from worker:1\n")
    refuses_logs_that_are_not_there(client, job_id)
    with pytest.raises(TimeoutError):
        client.wait(job_id, timeout_s=0.1)
    told = client.call(job_id)
    assert (told["name"], told["submitted"]["file"]) == ("set", str(home / "job.yaml"))
    assert "hidden" not in str(told)
    assert [row["task"] for row in client.call(job_id, "tasks")["tasks"]] == ["worker:0", "worker:1"]
    through_the_page(client, job_id)
    (home / "go").touch()
    assert client.wait(job_id, timeout_s=LIMIT_S).state is State.SUCCEEDED
    assert (home / "kept").is_dir()
    assert [report.id for report in client.jobs(state=State.SUCCEEDED)] == [job_id]
    assert client.jobs(name="other") == []
    filters_are_those_of_the_list(client)
    with pytest.raises(SpecError, match="framework: is a filter of history servers"):
        client.jobs(framework="generic")
    assert "".join(client.logs(job_id, TaskId("worker", 1))) == "hello from worker:1\n"
    assert client.call(job_id, "timeline")["first_failure"] is None
    assert client.curves(job_id)["runs"] == []
    assert client.curves(job_id, "loss", ("a,b", "c"))["series"] == []
    refuses_logs_that_are_not_there(client, job_id)
    client.cancel(job_id)  # nothing happens: it has ended
    (events,) = home.rglob("events.jsonl")
    with events.open("a") as log:
        log.write('{"kind":"Noted","te')  # as a killed master leaves it
    of_one_that_has_ended(client, job_id)
    through_history(home, job_id, monkeypatch)


def refuses_logs_that_are_not_there(client: howdah.Client, job_id: str) -> None:
    assert "".join(client.logs(job_id, "worker:1", "stderr")) == ""
    assert "".join(client.logs(job_id, "worker:1", "both")) == "hello from worker:1\n"
    for task in ("worker:9", "wroker:0"):
        with pytest.raises(NotFound, match=f"no task {task}"):
            "".join(client.logs(job_id, task))
    for task, stream, text in (("worker", "stdout", "'worker' is not a task"), ("worker:0", "stdoutt", "'stdoutt'")):
        with pytest.raises(InvalidRequest, match=text):
            client.logs(job_id, task, stream)


def filters_are_those_of_the_list(client: howdah.Client) -> None:
    """They mean the same here and by an address; `client` knows one job, `set`."""
    (job,) = client.jobs(limit=2, text="set", name="se", state="succeeded,FAILED", **{"from": 1.0, "to": time.time()})
    assert job.name == "set"
    assert client.jobs(state=[State.SUCCEEDED, "FAILED"], user=None, since=1.0, until=time.time()) == [job]
    assert client.jobs(until=1.0) == client.jobs(since=time.time() + 3600) == client.jobs(**{"to": 1.0}) == []
    with pytest.raises(SpecError, match="since: is 'x', must be epoch seconds"):
        client.jobs(since="x")  # type: ignore[arg-type]
    assert client.jobs(text="sets") == client.jobs(user="nobody") == client.jobs(queue="none") == []
    with pytest.raises(SpecError) as refused:
        client.jobs(bogus=1, after="x", limit=0, state="GONE")
    assert [mistake.place for mistake in refused.value.mistakes] == ["bogus", "after", "limit", "state"]


def of_one_that_has_ended(client: howdah.Client, job_id: str) -> None:
    events = client.call(job_id, "events", limit=5)
    assert (events["events"][0]["kind"], events["next"]) == ("JobStarted", 5)
    assert events["events"][0]["job"]["env"] == {"API_TOKEN": "***"}
    assert client.call(job_id, "events", since=5)["events"][0]["kind"] != "JobStarted"
    found = client.call(job_id, "search", text="hello", task="worker:1")
    assert [(hit["task"], hit["text"]) for hit in found["hits"]] == [("worker:1", "hello from worker:1")]
    assert len(client.call(job_id, "search", text="hello", limit=5)["hits"]) == 2
    assert {one["name"] for one in client.call(job_id, "series")["names"]} >= {"cpu", "memory_mib"}
    assert client.call(job_id, "series", name="memory_mib")["series"] is not None
    with pytest.raises(SpecError, match="limit: limit is 'NaN'"):
        client.call(job_id, "search", limit="NaN")
    for path, words in (("search", {"text": "x", "stream": "x"}), ("events", {"since": "x"}), ("search", {})):
        with pytest.raises(SpecError):
            client.call(job_id, path, **words)
    with pytest.raises(NotFound, match="no task worker:9"):
        client.call(job_id, "search", text="x", task="worker:9")
    with pytest.raises(NotFound, match="nothing answers"):
        client.call(job_id, "nothing")
    log = client.call(job_id, "logs/worker:1")
    assert (log["text"], log["complete"]) == ("hello from worker:1\n", True)
    for path in ("metrics.prom", "logs/worker:1/download"):
        with pytest.raises(SpecError, match="not JSON"):
            client.call(job_id, path)
    for wish in (client.stacks, client.tensorboard, client.end_tensorboard, client.save):
        with pytest.raises(JobEnded, match="has ended"):
            wish(job_id)


def through_the_page(client: howdah.Client, job_id: str) -> None:
    engine = engine_of(job_id)
    report = report_of(engine, job_id)
    looking = howdah.Client(page_link(engine, report))
    acting = howdah.Client(page_link(engine, report, time.time() + 60))
    assert [one.id for one in looking.jobs(limit=2)] == [job_id]
    assert looking.jobs(state="FAILED") == []
    with pytest.raises(SpecError, match="limit: limit is 'NaN'"):
        looking.call(job_id, "search", limit="NaN")
    view = looking.job(job_id)
    assert (view.state, len(view.tasks)) == (State.RUNNING, 2)
    assert view.job is not None
    assert view.job.env == {"API_TOKEN": "***"}
    assert "".join(looking.logs(job_id, "worker:1")) == "hello from worker:1\n"
    with pytest.raises(NotPermitted, match="only looks"):
        looking.save(job_id)
    with pytest.raises(NotPermitted, match="only looks"):
        looking.stacks(job_id)
    for one in (acting, client):
        taken = one.stacks(job_id, "worker:1")
        assert (list(taken["stacks"]), taken["problem"]) == (["worker:1"], "")
        assert Path(taken["uri"].removeprefix("file://")).is_file()
        with pytest.raises(RequestRefused, match="event files"):
            one.tensorboard(job_id)
        one.end_tensorboard(job_id)
    assert acting.trace(f"{view.tasks[TaskId('worker', 1)].container}")["task"] == "worker:1"
    with pytest.raises(NotFound, match="page of"):
        acting.users()
    ((output, first),) = acting.save(job_id)
    assert output == 0
    until = time.monotonic() + LIMIT_S
    while acting.job(job_id).snapshots[-1].state is State.RUNNING:
        assert time.monotonic() < until, "the snapshot is not done"
        time.sleep(0.1)
    (begun,) = client.save(job_id, output=-1)  # as programs asked before None meant all
    assert begun == (begun.output, begun.number) == (0, first + 1)
    with pytest.raises(JobNotFound, match="no job"):
        looking.job("local-0")
    with pytest.raises(SpecError):
        looking.call(job_id, "logs/worker:1", offset="x")
    with pytest.raises(NotPermitted, match="access link"):
        howdah.Client(report.master, token="wrong").job(job_id)


def through_history(home: Path, job_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-m", "howdah.history", "--engine", "local", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            link = server.stdout.readline().split()[-1]
            client = howdah.Client(link)
            until = time.monotonic() + LIMIT_S
            while not client.jobs(name="set"):  # its first look comes after its link
                assert time.monotonic() < until, "the history server did not find the job"
                time.sleep(0.1)
            assert [report.id for report in client.jobs(name="set")] == [job_id]
            assert client.jobs(name="other") == []
            filters_are_those_of_the_list(client)
            assert [one.id for one in client.jobs(framework="generic", sort="-name", limit=1)] == [job_id]
            assert client.jobs(framework="jax") == []
            assert client.wait(job_id).state is State.SUCCEEDED
            assert "".join(client.logs(job_id, "worker:0")) == "hello from worker:0\n"
            assert client.curves(job_id)["runs"] == []
            assert client.curves(job_id, "loss", ("a,b", "c"))["series"] == []
            with pytest.raises(RequestRefused):
                client.submit(home / "job.yaml")
            assert [row["jobs"] for row in howdah.Client(engine="local").users()] == [1]  # the server runs here
            monkeypatch.setenv("HOWDAH_HISTORY_URL", link)
            for one in (client, howdah.Client(engine="local")):
                assert [row["jobs"] for row in one.users()] == [1]
                assert one.users(end=1.0) == []
                assert one.compare(job_id, job_id)["spec"] == []
                container = one.job(job_id).tasks[TaskId("worker", 1)].attempts[0].container
                assert one.trace(container)["task"] == "worker:1"
                with pytest.raises(NotFound, match="had nobodys"):
                    one.trace("nobodys")
        finally:
            server.terminate()


def test_the_earlier_name_of_the_base_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client, given = howdah.Client(engine="local"), []
    monkeypatch.setattr(client._jobs, "submit", lambda job, directory, *rest: given.append(directory) or "local-1")
    job = JobSpec({"worker": Role("true")})
    for options in ({}, {"base": tmp_path}, {"base_directory": tmp_path}):
        client.submit(job, **options)
    assert given == [Path(), tmp_path, tmp_path]


def test_a_job_that_is_built_and_cancelled(home: Path) -> None:
    client = howdah.Client(engine="local")
    spec = JobSpec({"worker": Role("sleep 600")}, name="built", outputs=(Output(str(home / "kept"), "out"),))
    job_id = client.submit(spec, base_directory=home)
    running(client, job_id)
    client.cancel(job_id)
    last = list(client.follow(job_id))[-1]
    assert last.state is State.CANCELLED
    assert client.wait(job_id).state is State.CANCELLED


def test_what_is_wrong_is_said_as_the_command_line_says_it(home: Path) -> None:
    client = howdah.Client(engine="local")
    with pytest.raises(JobNotFound, match="no job local-1"):
        client.job("local-1")
    with pytest.raises(SpecError):
        client.submit(JobSpec({}))
    with pytest.raises(SpecError, match="none is tracked"):  # once the framework has filled in what was left open
        client.submit(JobSpec({"scheduler": Role("true")}, framework="mxnet"))
    with pytest.raises(SpecError, match="http"):
        howdah.Client("history:18488")
    with pytest.raises(AttributeError):
        howdah.Nothing  # type: ignore[attr-defined]  # noqa: B018


def test_a_program_submits_as_a_command_does(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The lock of a checkpoint that an ended job has left behind is released, and what a user should know is logged."""
    client, checkpoint = howdah.Client(engine="local"), Checkpoint(uris.of_local(home / "kept"))
    first = client.submit(JobSpec({"worker": Role("true")}, checkpoint=checkpoint))
    assert client.wait(first, LIMIT_S).state is State.SUCCEEDED
    reserve(JobSpec({"worker": Role("true")}, checkpoint=checkpoint), first)  # as a master that was killed leaves it
    again = client.submit(JobSpec({"worker": Role("true")}, env={"API_TOKEN": "***"}, checkpoint=checkpoint))
    assert client.wait(again, LIMIT_S).state is State.SUCCEEDED
    assert "env.API_TOKEN: *** stands for a value that was hidden where this was copied" in caplog.text
