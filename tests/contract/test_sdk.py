"""`howdah.Client` with real jobs: by this machine's engine, by the link of a page, by the history server."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import howdah
from howdah.client.ending import report_of
from howdah.client.engines import engine_of
from howdah.client.link import page_link
from howdah.errors import SpecError, StagingError
from howdah.spec import JobSpec, Output, Role, State, TaskId

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
    (tmp_path / "go").touch()


def running(client: howdah.Client, job_id: str) -> None:
    until = time.monotonic() + 30
    while client.job(job_id).state is not State.RUNNING:
        assert time.monotonic() < until
        time.sleep(0.1)


def eventually_says(client: howdah.Client, job_id: str, text: str) -> None:
    until = time.monotonic() + 20
    while "".join(client.logs(job_id, "worker:1")) != text:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_job_from_its_submission_to_its_history(home: Path) -> None:
    client = howdah.Client(engine="local")
    job_id = client.submit(home / "job.yaml", sets={"name": "set"})
    running(client, job_id)
    eventually_says(client, job_id, "hello from worker:1\n")
    with pytest.raises(TimeoutError):
        client.wait(job_id, timeout_s=0.1)
    told = client.call(job_id)
    assert (told["name"], told["submitted"]["file"]) == ("set", str(home / "job.yaml"))
    assert "hidden" not in str(told)
    assert [row["task"] for row in client.call(job_id, "tasks")["tasks"]] == ["worker:0", "worker:1"]
    through_the_page(client, job_id)
    (home / "go").touch()
    assert client.wait(job_id, timeout_s=30).state is State.SUCCEEDED
    assert (home / "kept").is_dir()
    assert [report.id for report in client.jobs(state=State.SUCCEEDED)] == [job_id]
    assert client.jobs(name="other") == []
    assert "".join(client.logs(job_id, TaskId("worker", 1))) == "hello from worker:1\n"
    assert client.call(job_id, "timeline")["first_failure"] is None
    assert client.curves(job_id)["runs"] == []
    assert client.curves(job_id, "loss", ("a,b", "c"))["series"] == []
    client.cancel(job_id)  # nothing happens: it has ended
    through_history(home, job_id)


def through_the_page(client: howdah.Client, job_id: str) -> None:
    report = report_of(engine_of(job_id), job_id)
    looking, acting = howdah.Client(page_link(report)), howdah.Client(page_link(report, time.time() + 60))
    assert [one.id for one in looking.jobs()] == [job_id]
    view = looking.job(job_id)
    assert (view.state, len(view.tasks)) == (State.RUNNING, 2)
    assert view.job is not None
    assert view.job.env == {"API_TOKEN": "***"}
    assert "".join(looking.logs(job_id, "worker:1")) == "hello from worker:1\n"
    with pytest.raises(StagingError, match="only looks"):
        looking.save(job_id)
    ((output, first),) = acting.save(job_id)
    assert output == 0
    until = time.monotonic() + 20
    while acting.job(job_id).saves[-1].state is State.RUNNING:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert client.save(job_id) == [(0, first + 1)]
    with pytest.raises(StagingError, match="no job"):
        looking.job("local-0")
    with pytest.raises(SpecError):
        looking.call(job_id, "logs/worker:1", offset="x")
    with pytest.raises(StagingError, match="token"):
        howdah.Client(report.master, token="wrong").job(job_id)


def through_history(home: Path, job_id: str) -> None:
    command = [sys.executable, "-m", "howdah.history", "--engine", "local", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            link = server.stdout.readline().split()[-1]
            client = howdah.Client(link)
            assert [report.id for report in client.jobs(name="set")] == [job_id]
            assert client.jobs(name="other") == []
            assert client.wait(job_id).state is State.SUCCEEDED
            assert "".join(client.logs(job_id, "worker:0")) == "hello from worker:0\n"
            assert client.curves(job_id)["runs"] == []
            assert client.curves(job_id, "loss", ("a,b", "c"))["series"] == []
            with pytest.raises(StagingError):
                client.submit(home / "job.yaml")
        finally:
            server.terminate()


def test_a_job_that_is_built_and_cancelled(home: Path) -> None:
    client = howdah.Client(engine="local")
    spec = JobSpec({"worker": Role("sleep 60")}, name="built", outputs=(Output(str(home / "kept"), "out"),))
    job_id = client.submit(spec, base=home)
    running(client, job_id)
    client.cancel(job_id)
    last = list(client.follow(job_id))[-1]
    assert last.state is State.CANCELLED
    assert client.wait(job_id).state is State.CANCELLED


def test_what_is_wrong_is_said_as_the_command_line_says_it(home: Path) -> None:
    client = howdah.Client(engine="local")
    with pytest.raises(StagingError, match="no job local-1"):
        client.job("local-1")
    with pytest.raises(SpecError):
        client.submit(JobSpec({}))
    with pytest.raises(SpecError, match="http"):
        howdah.Client("history:18488")
    with pytest.raises(AttributeError):
        howdah.Nothing  # type: ignore[attr-defined]  # noqa: B018
