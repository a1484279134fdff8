"""Tests following a job whose master and engine report different states."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

from howdah.api import recorded_log
from howdah.cli import jobs
from howdah.cli.explain import lines
from howdah.cli.terminal import Plain
from howdah.client import follow, recorded_events
from howdah.client.clusters import ClusterAnswer, ConfiguredCluster
from howdah.client.explain import explain
from howdah.client.follow import Follower, Update, settled_report
from howdah.client.waiting_jobs import with_waits
from howdah.engines import Engine, PendingReason, Progress, no_progress
from howdah.errors import EngineUnavailable
from howdah.logs.stream_index import STREAMS
from howdah.spec import Container, Exit, JobReport, JobSpec, Outcome, Plan, Role, StagedJob, State, TaskId
from howdah.spec.event_lines import to_line
from howdah.spec.events import (
    Asked,
    Ended,
    Event,
    JobFinished,
    JobStarted,
    Launched,
    Measured,
    Noted,
    Started,
    Stopping,
    Waiting,
    WorldFormed,
)
from howdah.spec.fold import fold
from howdah.spec.view import JobView
from howdah.wire import auth

KEY = bytes(32)
WORKERS = TaskId("worker", 0), TaskId("worker", 1)


class Late(Engine):
    """An engine that calls a job running whose master has gone: when it is asked, and `late` times more."""

    name = "late"

    def __init__(self, directory: Path, master: str) -> None:
        self.report = JobReport("job_1", "j", State.RUNNING, self.name, directory=str(directory), master=master)
        self.late = 1 << 30
        self.kept: list[tuple[str, bytes]] = []

    @property
    def home(self) -> str:
        raise NotImplementedError

    def plan(self, job: StagedJob) -> Plan:
        raise NotImplementedError

    def submit(self, plan: Plan, secrets: Mapping[str, str], progress: Progress = no_progress) -> str:
        raise NotImplementedError

    def describe(self, job_id: str | None = None) -> list[JobReport]:
        if self.late == 0:
            self.report = replace(self.report, state=State.SUCCEEDED)
        self.late -= 1
        return [self.report]

    def cancel(self, job_id: str) -> None:
        raise NotImplementedError

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        """As on a cluster: those of a job that runs can't be had."""
        assert self.report.state.ended
        for heading, data in self.kept:
            if heading.startswith(f"{task} ") and heading.endswith(stream):
                yield heading, data


class Master(BaseHTTPRequestHandler):
    """A master at its end: worker:0's executor does not answer any more, worker:1's does."""

    events: tuple[Event, ...] = ()
    chunks = 1

    def do_GET(self) -> None:
        if self.path.startswith("/v1/events"):
            records = [json.loads(to_line(event)) for event in self.events]
            self._answer({"events": records, "next": len(records), "usage": []})
        elif self.path.startswith("/v1/logs/worker:0"):
            self.send_error(504)
        else:
            offset = int(re.findall(r"offset=(\d+)", self.path)[0])
            said = "alive\n" if "stream=stdout" in self.path and offset < 6 * self.chunks else ""
            self._answer({"request": 0, "offset": offset, "size": 6 * self.chunks, "text": said})

    def _answer(self, message: Mapping[str, object]) -> None:
        asked, body = self.headers[auth.HEADER], json.dumps(message).encode()
        self.send_response(200)
        signature = auth.sign_answer(auth.derive(KEY, auth.CLIENT), asked, self.path, 200, auth.digest_of(body))
        self.send_header(auth.HEADER, signature)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: object) -> None:
        """Nothing is said."""


@contextlib.contextmanager
def served(*events: Event, chunks: int = 1) -> Iterator[str]:
    """The address of a Master, whose worker:1 has printed so many chunks."""
    handler = type("Handler", (Master,), {"events": events, "chunks": chunks})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def life(*attempts: int) -> list[Event]:
    """Of a job that ended; worker:0 had so many attempts, worker:1 one."""
    job = JobSpec({"worker": Role("true", replicas=2)})
    events: list[Event] = [JobStarted(1.0, "job_1", "late", "ann", job, "3.11", "here")]
    for task, number in [(WORKERS[0], number) for number in attempts] + [(WORKERS[1], 1)]:
        events.append(Launched(2.0, task, number, Container(f"c{number}{task.index}", "node", "worker")))
        events.append(Started(3.0, task, number, number, 1))
    events.append(WorldFormed(3.0, 1))
    return [*events, JobFinished(4.0, Outcome(State.FAILED, "killed"))]


@pytest.fixture
def engine(tmp_path: Path) -> Late:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    (tmp_path / "key").write_text(KEY.hex())
    return Late(tmp_path, f"http://127.0.0.1:{port}")


def test_the_log_of_a_master_that_has_gone_is_believed_before_the_engine(engine: Late, tmp_path: Path) -> None:
    end = to_line(JobFinished(time.time(), Outcome(State.CANCELLED, "cancelled by ann")))
    (tmp_path / "events.jsonl").write_text(end)
    (only,) = Follower(engine, "job_1").updates()
    assert only.view.outcome == Outcome(State.CANCELLED, "cancelled by ann")


def test_a_master_that_does_not_answer_has_not_ended(engine: Late, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("")
    assert next(Follower(engine, "job_1").updates()).view.outcome is None


def test_the_engine_is_waited_for_once_the_master_has_ended_the_job(engine: Late, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("".join(map(to_line, life(1))))
    engine.late = 4
    assert settled_report(engine, "job_1").state is State.SUCCEEDED


def explained(engine: Late) -> list[str]:
    return [click.unstyle(line) for line in lines(explain(engine, "job_1"))]


@pytest.mark.parametrize("facts", [0, 3_000])
def test_the_last_events_are_told_though_the_log_is_large(
    engine: Late, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: int
) -> None:
    """With so many events that the middle is left out, too, and with samples before the master is silent."""
    monkeypatch.setattr(recorded_events, "MAX_BYTES", 1 << 15)
    monkeypatch.setattr(recorded_events, "LAST_BYTES", 1 << 15)
    monkeypatch.setattr(recorded_log, "LAST_BYTES", 1 << 15)
    *told, end = [*life(1)[:-1], *(Noted(3.2, f"note {number}") for number in range(facts)), life(1)[-1]]
    samples = [Measured(3.1, WORKERS[0], "loss", 0.5, number) for number in range(3_000)]
    last = [*(Ended(4.0, task, 1, 1, Exit("exit", 0)) for task in WORKERS), end]
    following = Follower(engine, "job_1").updates()
    with served(*told) as url:
        engine.report = replace(engine.report, master=url)
        assert next(following).events == told
    (tmp_path / "events.jsonl").write_text("".join(map(to_line, [*samples, *told, *last])))
    engine.late = 0
    new = [event for update in following for event in update.events]
    assert [event for event in new if not isinstance(event, Noted)] == last


def test_the_end_is_told_though_the_log_cannot_be_read_or_lacks_events(engine: Late, tmp_path: Path) -> None:
    logs: list[list[Event]] = [[], life(1)[:2], [*life(1)[:2], life(1)[-1]]]
    for log in logs:
        (tmp_path / "key").write_text(KEY.hex())
        following = Follower(engine, "job_1").updates()
        with served(*life(1)[:-1]) as url:
            engine.report, engine.late = replace(engine.report, state=State.RUNNING, master=url), 1 << 30
            next(following)
        (tmp_path / "events.jsonl").unlink(missing_ok=True)
        if log:
            (tmp_path / "events.jsonl").write_text("".join(map(to_line, log)))
        engine.late = 0
        assert [type(event) for update in following for event in update.events][-1:] == [JobFinished]


def test_an_explanation_believes_the_log_before_the_engine(engine: Late, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("".join(map(to_line, life(1))))
    assert explained(engine)[:2] == ["job_1  j  FAILED", "why: killed"]


def test_an_explanation_says_that_a_job_is_ending(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY.hex())
    with served(*life(1)[:-1], Stopping(4.0, "worker:1 on node: exit code 3")) as master:
        told = explained(Late(tmp_path, master))
    assert (told[0], told[-1]) == ("job_1  j  RUNNING", "the job is ending")


def test_a_job_that_goes_on_is_not_waited_for(engine: Late, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("".join(map(to_line, life(1)[:-1])))
    assert settled_report(engine, "job_1").state is State.RUNNING


def test_what_an_earlier_attempt_printed_is_not_taken_for_that_of_the_last(engine: Late, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("".join(map(to_line, life(1, 2))))
    engine.late, engine.kept = (
        3,
        [("worker:0 attempt 1 stdout", b"first\n"), ("worker:0 attempt 2 stdout", b"second\n")],
    )
    told = [piece for update in Follower(engine, "job_1", "worker:0").updates() for piece in update.logs]
    assert told == [(WORKERS[0], "stdout", b"second\n")]


def test_all_that_was_printed_is_shown_before_the_end_though_the_reader_is_far_behind(
    engine: Late, tmp_path: Path
) -> None:
    """Of a running task a bounded part is read each time, and a program may print faster."""
    engine.kept = [(f"worker:0 attempt 1 {name}", b"%d\n" % number) for name in STREAMS for number in range(100)]
    *before, end = life(1)
    with served(*before, Ended(4.0, WORKERS[1], 1, 1, Exit("exit", 0)), end, chunks=100) as url:
        engine.report, engine.late = replace(engine.report, master=url), 3
        updates = list(Follower(engine, "job_1", "all").updates())
    for task, stream in itertools.product(WORKERS, ("stdout",)):
        told = b"".join(data for update in updates for name, of, data in update.logs if (name, of) == (task, stream))
        assert len(told.splitlines()) == 100
    ends = next(n for n, update in enumerate(updates) if any(isinstance(event, Ended) for event in update.events))
    told_before = [data for update in updates[: ends + 1] for name, _, data in update.logs if name == WORKERS[1]]
    assert len(told_before) == 100


def test_what_one_executor_did_not_tell_is_fetched_though_others_answer(engine: Late) -> None:
    with served(*life(1)) as url:
        engine.report = replace(engine.report, master=url)
        engine.late, engine.kept = (
            3,
            [("worker:0 attempt 1 stdout", b"last words\n"), ("worker:1 attempt 1 stdout", b"alive\n")],
        )
        told = [piece for update in Follower(engine, "job_1", "all").updates() for piece in update.logs]
    assert told == [(WORKERS[1], "stdout", b"alive\n"), (WORKERS[0], "stdout", b"last words\n")]


def test_events_are_told_though_a_task_that_was_started_again_prints_on(engine: Late) -> None:
    ended, container = Ended(3.5, WORKERS[1], 1, 1, Exit("exit", 1)), Container("c2", "node", "worker")
    again = [ended, Launched(3.6, WORKERS[1], 2, container), Started(3.7, WORKERS[1], 2, 9, 2)]
    with served(*life(1)[:-1], *again, chunks=1 << 30) as url:
        engine.report = replace(engine.report, master=url)
        first = next(Follower(engine, "job_1", "all").updates())
    assert ended in first.events


def test_half_a_line_is_printed_once_though_its_reader_comes_back() -> None:
    out, worker = io.StringIO(), TaskId("worker", 0)
    screen = Plain(out)
    for text in (b"whole\nhalf", b" and the rest\n", b""):
        with screen:
            screen.show(
                Update(JobView(), JobReport("job_1", "j", State.RUNNING, "late"), [], [(worker, "stdout", text)])
            )
    assert out.getvalue().splitlines() == ["worker:0 | whole", "worker:0 | half", "worker:0 |  and the rest"]


def test_the_end_is_that_in_the_log_whatever_a_restarted_engine_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = [JobFinished(2.0, Outcome(State.SUCCEEDED)), JobFinished(3.0, Outcome(State.FAILED, "the master failed"))]
    view = fold([JobStarted(1.0, "job_1", "late", "me", JobSpec({"w": Role("x")})), *ended], JobView(id="job_1"))
    assert (view.outcome, view.finished) == (ended[0].outcome, 2.0)
    engine = Late(tmp_path, "")
    engine.report = replace(engine.report, state=State.FAILED, diagnostics="AM exited")
    monkeypatch.setattr(jobs, "choose_job", lambda *_: (engine, "job_1"))
    monkeypatch.setattr(jobs, "fetch_update", lambda *_: Update(view, engine.report))
    said = CliRunner().invoke(jobs.status, ["job_1"]).output
    assert "SUCCEEDED" in said
    assert "FAILED" not in said


def test_who_follows_a_job_without_a_master_hears_why_it_has_none(
    engine: Late, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Mapping[str, int]] = []

    def reasons(job_id: str, job: JobSpec | None, missing: Mapping[str, int]) -> list[PendingReason]:
        asked.append(missing)
        if len(asked) == 1:
            raise EngineUnavailable("it restarts")
        return [PendingReason("queue-pending", {"count": 2, "queue": "q"})]

    monkeypatch.setattr(engine, "pending_reasons", reasons)
    monkeypatch.setattr(follow, "FIRST_REASONS_S", 0.0)
    monkeypatch.setattr(follow, "REASONS_EVERY_S", 0.0)
    engine.report, out = replace(engine.report, state=State.PENDING, master=""), io.StringIO()
    screen = Plain(out)
    for update in itertools.islice(Follower(engine, "job_1").updates(), 4):
        screen.show(update)
    assert [line.split(" ", 1)[1] for line in out.getvalue().splitlines()] == ["2 jobs wait in queue q"]
    assert asked == [{}] * 4


def test_a_job_waits_until_its_tasks_have_containers_whatever_the_engine_says(engine: Late, tmp_path: Path) -> None:
    begun, *_ = life(1)
    with served(begun, Asked(2.0, "worker", 2), Waiting(6.0, 2.0, {"worker": 2}, ("no room",))) as url:
        engine.report = replace(engine.report, master=url, directory=str(tmp_path))
        (answer,) = with_waits([ConfiguredCluster(engine)], [ClusterAnswer("late", "", [engine.report])])
        assert [(report.state, report.diagnostics) for report in answer.reports] == [
            (State.PENDING, "still waiting for containers: 2 × worker: no room")
        ]
        assert explained(engine) == [
            "job_1  j  PENDING",
            "worker waits for 2 more containers",
            "  no room",
        ]


def test_a_check_of_a_job_that_waits_soon_takes_a_tenth_of_the_time_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Slurm each check is a command that asks the controller, which all users of the cluster ask."""
    now, pauses = [100.0], list[float]()

    class Waiting(Late):
        def describe(self, job_id: str | None = None) -> list[JobReport]:
            now[0] += 0.03
            return [replace(self.report, state=State.PENDING, master="")]

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(follow, "time", SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0], sleep=sleep))
    updates = Follower(Waiting(tmp_path, ""), "job_1").updates()
    for _ in range(100):
        next(updates)
    assert pauses[0] < 0.1  # a job may be short
    assert min(pauses[4:]) >= 0.299
    assert max(pauses) == follow.MAX_PAUSE_S
