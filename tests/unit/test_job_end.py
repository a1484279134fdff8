"""Tests that a job is cancelled while the file system with its key does not answer: the engine is asked, or the master
by a key that was read before."""

from __future__ import annotations

import getpass
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from stuck_files import stuck_directory

from howdah.client.follow import Follower
from howdah.client.job_end import cancel_job
from howdah.engines import Engine, Progress, no_progress
from howdah.errors import EngineUnavailable, StagingError
from howdah.spec import JobReport, JobSpec, Plan, Role, StagedJob, State, TaskId, uris
from howdah.spec.event_lines import to_line
from howdah.spec.events import JobStarted
from howdah.spec.job import Checkpoint, Timeouts
from howdah.wire import auth

KEY = bytes(32)
NO_MASTER = "http://127.0.0.1:1"


class Running(Engine):
    """An engine with one job, which ends when this engine or its master is asked to end it."""

    name = "yarn"

    def __init__(self, directory: str, master: str, conf_dir: str = "") -> None:
        self.report = JobReport(
            "job_1", "j", State.RUNNING, self.name, directory=directory, master=master, conf_dir=conf_dir
        )
        self.asked = False
        self.now, self.step_s, self.ends_at = 0.0, 0.0, float("inf")
        """Seconds; each look at the job takes `step_s`, and finds its end from `ends_at` on."""

    @property
    def home(self) -> str:
        raise NotImplementedError

    def plan(self, job: StagedJob) -> Plan:
        raise NotImplementedError

    def submit(self, plan: Plan, secrets: Mapping[str, str], progress: Progress = no_progress) -> str:
        raise NotImplementedError

    def describe(self, job_id: str | None = None) -> list[JobReport]:
        self.now += self.step_s
        if self.now >= self.ends_at:
            self.end()
        return [self.report]

    def cancel(self, job_id: str) -> None:
        self.asked = True
        self.end()

    def end(self) -> None:
        self.report = replace(self.report, state=State.CANCELLED)

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        raise NotImplementedError


@pytest.fixture
def unreachable() -> str:
    """The directory of a job on an HDFS whose NameNode is down."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return f"hdfs://127.0.0.1:{closed.getsockname()[1]}/jobs/job_1"


@pytest.fixture
def hanging() -> Iterator[str]:
    """The directory of a job on a file system that does not answer when the key is read."""
    with stuck_directory() as directory:
        yield directory


@pytest.fixture
def nowhere(tmp_path: Path) -> Running:
    """An engine whose job is on an HDFS that cannot be reached: its configuration names no NameNode."""
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    return Running("hdfs:///jobs/job_1", NO_MASTER, str(tmp_path))


def test_the_engine_is_asked_while_the_namenode_is_down(unreachable: str) -> None:
    engine, notices = Running(unreachable, NO_MASTER), list[str]()
    assert cancel_job(engine, engine.report, notices.append).state is State.CANCELLED
    assert engine.asked
    (notice,) = notices
    assert uris.root(unreachable) in notice
    assert notice.endswith(": the job's master can't be asked, yarn is")


def test_the_engine_is_asked_while_the_file_system_does_not_answer(hanging: str) -> None:
    engine, notices = Running(hanging, NO_MASTER), list[str]()
    assert cancel_job(engine, engine.report, notices.append, key_limit_s=0.5).state is State.CANCELLED
    assert engine.asked
    assert notices == [f"{hanging} was not read within 0.5 s: the job's master can't be asked, yarn is"]


class Master(BaseHTTPRequestHandler):
    """A master whose job ends when it is asked to cancel it."""

    engine: Running

    def do_POST(self) -> None:
        assert self.path == "/v1/actions/cancel"
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert asked == {"by": getpass.getuser()}
        self.engine.end()
        signature = auth.sign_answer(
            auth.derive(KEY, auth.CLIENT), self.headers[auth.HEADER], self.path, 200, auth.digest_of(b"{}")
        )
        self.send_response(200)
        self.send_header(auth.HEADER, signature)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *_: object) -> None:
        """Nothing is said."""


class Stopping(Master):
    """A master that goes on answering while the programs of its job stop: a fifth of its answers are lost."""

    calls = 0

    def do_POST(self) -> None:
        self.answer({})

    def do_GET(self) -> None:
        type(self).calls += 1
        if self.calls % 5:
            job = JobSpec(
                {"worker": Role("train")}, timeouts=Timeouts(stop_s=120.0), checkpoint=Checkpoint("/c", local="c")
            )
            events = (
                [json.loads(to_line(JobStarted(0.0, id="job_1", engine="yarn", user="ann", job=job)))]
                if "since=0" in self.path
                else []
            )
            self.answer({"events": events, "next": 1, "usage": []})
        else:
            self.send_error(503)

    def answer(self, content: object) -> None:
        data = json.dumps(content).encode()
        key = auth.derive(KEY, auth.CLIENT)
        self.send_response(200)
        self.send_header(
            auth.HEADER, auth.sign_answer(key, self.headers[auth.HEADER], self.path, 200, auth.digest_of(data))
        )
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Silent(Stopping):
    """A master that takes the cancel, and answers nothing afterwards."""

    def do_GET(self) -> None:
        self.send_error(503)


STOPS = (
    "job_1 is stopping: its programs save, and what they leave is stored. This takes 220 s at most; after that, yarn is"
    " asked to end the job"
)


@pytest.mark.parametrize(
    ("master", "ends_at", "is_asked", "until", "notices"),
    [
        (Stopping, 200.0, False, 200.0, [STOPS]),
        (Stopping, 2.0, False, 2.0, []),
        (Stopping, float("inf"), True, 220.0, [STOPS]),
        (Silent, float("inf"), True, 30.0, []),
    ],
    ids=["as long as it stops", "at once", "it never ends", "silent"],
)
def test_a_master_that_answers_has_the_time_of_its_programs(
    unreachable: str, master: type[Master], ends_at: float, is_asked: bool, until: float, notices: list[str]
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (master,), {})) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        engine, said = Running(unreachable, f"http://127.0.0.1:{server.server_port}"), list[str]()
        engine.step_s, engine.ends_at = 2.0, ends_at
        report = cancel_job(engine, engine.report, said.append, KEY, clock=lambda: engine.now)
        server.shutdown()
    assert report.state is State.CANCELLED
    assert (engine.asked, said) == (is_asked, notices)
    assert until <= engine.now <= until + 2 * engine.step_s


def test_the_master_is_asked_by_a_key_that_was_read_before(unreachable: str) -> None:
    handler = type("Handler", (Master,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        engine, notices = Running(unreachable, f"http://127.0.0.1:{server.server_port}"), list[str]()
        handler.engine = engine  # type: ignore[attr-defined]
        assert cancel_job(engine, engine.report, notices.append, KEY).state is State.CANCELLED
        server.shutdown()
    assert not engine.asked
    assert notices == []


def test_a_follower_keeps_the_key_that_it_has_read(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY.hex())
    follower = Follower(Running(str(tmp_path), NO_MASTER), "job_1")
    next(follower.updates())
    assert follower.job_key == KEY


@pytest.mark.parametrize("kept", ["", "ab" * 31, "zz" * 32, "é"])
def test_a_damaged_key_is_none(tmp_path: Path, kept: str) -> None:
    (tmp_path / "key").write_text(kept, encoding="latin-1")
    engine = Running(str(tmp_path), NO_MASTER)
    with pytest.raises(StagingError, match="is not a key"):
        engine.job_key(engine.report)
    follower = Follower(engine, "job_1")
    assert next(follower.updates()).report == engine.report


def test_a_follower_waits_for_a_file_system_that_fails(nowhere: Running) -> None:
    updates = Follower(nowhere, "job_1", retry_s=300.0).updates()
    assert "asking again for 300 s" in str(next(updates).events)
    assert next(updates).events == []
    nowhere.end()
    *_, last = updates
    assert last.view.outcome is not None
    assert last.view.outcome.state is State.CANCELLED


def test_who_does_not_wait_is_told_of_the_file_system(nowhere: Running) -> None:
    with pytest.raises(EngineUnavailable, match="names no NameNode"):
        next(Follower(nowhere, "job_1").updates())
