"""Tests that what a running attempt has printed is read to the end that it had: of a long log, of one whose middle was
not kept, and while the program goes on printing; and that what can't be read is told."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from test_job_end import NO_MASTER, Running

from howdah.cli import logs
from howdah.cli.logs import LogSelection, _chosen_lines, _new_pieces, output_of
from howdah.client.follow import Update
from howdah.client.master_client import MasterClient
from howdah.errors import EngineUnavailable, StagingError
from howdah.logs import lines as log_lines
from howdah.logs.lines import AttemptLines, LineFilter
from howdah.logs.store import LiveLogs
from howdah.logs.stream_index import STREAMS
from howdah.spec import JobReport, Outcome, State, TaskId
from howdah.spec.attempt import AttemptView
from howdah.spec.events import Noted
from howdah.spec.view import JobView, TaskView
from howdah.wire.connection import WireError
from howdah.wire.messages import LogChunk

TASK = TaskId("worker", 0)
ALL = LogSelection((), STREAMS, None, LineFilter(), merge=False, follow=False, whole=True)


class Printed:
    """What a task has printed: parts, each with the place where it begins, as its executor keeps and sends them."""

    def __init__(self, *parts: tuple[int, bytes], goes_on: bool = False) -> None:
        self.parts, self.goes_on, self.asked = list(parts), goes_on, 0

    def __call__(self, stream: str, offset: int, limit: int) -> LogChunk:
        if stream != "stdout":
            return LogChunk(0, 0, 0)
        self.asked += 1
        assert self.asked < 50
        size = self.parts[-1][0] + len(self.parts[-1][1])
        if self.goes_on:
            self.parts.append((size, b"more\n"))
        for start, data in self.parts:
            if offset < start + len(data):
                begin = max(offset, start)
                return LogChunk(0, begin, size, data[begin - start :][:limit].decode("latin-1"))
        return LogChunk(0, size, size)


def read(printed: Callable[[str, int, int], LogChunk], max_pieces: int = 64) -> list[bytes]:
    attempt = AttemptLines(LiveLogs(printed), "worker:0", STREAMS, 0, max_pieces)
    return [line.text for line in _chosen_lines(attempt, 1, LineFilter(), {}, pytest.fail, to_end=True)]


def test_a_long_log_is_read_to_its_end() -> None:
    wanted = [b"%09d" % number for number in range(500_000)] + [b"cut"]
    found = read(Printed((0, b"\n".join(wanted))), 2)
    assert (len(found), found == wanted) == (len(wanted), True)


def test_both_sides_of_what_was_not_kept_are_read() -> None:
    assert read(Printed((0, b"one\ntwo\nth"), (5000, b"ee\nfour\nfi"), (5010, b"ve\nsix"))) == [
        b"one",
        b"two",
        b"th",
        b"ee",
        b"four",
        b"five",
        b"six",
    ]


def test_what_is_printed_meanwhile_is_not_waited_for() -> None:
    assert read(Printed((0, b"one\n"), goes_on=True)) == [b"one"]
    key = (TaskId("worker", 0), 0, "stdout")
    printed = LiveLogs(Printed((0, b"one\n"), goes_on=True))
    assert list(_new_pieces(printed, key, {key: 0}, pytest.fail)) == [b"one\n"]


def test_a_log_that_cannot_be_read_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    def ask(stream: str, offset: int, limit: int) -> LogChunk:
        raise WireError("HTTP 410", 410, "the container of worker:0 is gone\n")

    report = logs._reporting_once(ALL, logs._tell_unread)
    for stream in STREAMS:
        key = (TaskId("worker", 0), 0, stream)
        assert list(_new_pieces(LiveLogs(ask), key, {key: 0}, report)) == []
    assert capsys.readouterr().err == "howdah: the container of worker:0 is gone\n"


class Stranger(BaseHTTPRequestHandler):
    """Another program at the address of a master that has gone."""

    def do_GET(self) -> None:
        self.send_response(503)
        self.end_headers()
        self.wfile.write(b"<html>\n\x1b[2J<p>Service unavailable</p>\n" + b"x" * 5000)

    def log_message(self, format: str, *_: object) -> None:
        """Nothing is said."""


def test_of_a_foreign_answer_a_line_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with MasterClient(f"http://127.0.0.1:{server.server_port}", bytes(32)) as master:
            ask = LiveLogs(lambda stream, offset, limit: master.log(TASK, stream, offset, limit))
            key = (TASK, 0, "stdout")
            assert list(_new_pieces(ask, key, {key: 0}, logs._tell_unread)) == []
        server.shutdown()
    (line,) = capsys.readouterr().err.splitlines()
    assert re.match(r"howdah: GET /v1/logs/worker:0\S+ at 127.0.0.1:\d+: 503 <html> \[2J<p>Service unavail", line)
    assert len(line) < 400


def test_a_master_that_does_not_answer_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "ANSWER_S", 0.0)
    (tmp_path / "key").write_text("00" * 32)
    engine = Running(str(tmp_path), NO_MASTER)
    with pytest.raises(EngineUnavailable, match="the master of job_1 does not answer"):
        list(output_of(engine, "job_1", ALL))


class Keyless(Running):
    """An engine with a job that was submitted on another machine, until it has ended."""

    def job_key(self, report: JobReport) -> bytes | None:
        raise StagingError("the key of job_1 is on the machine that submitted it")

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        yield "worker:0 attempt 1 stdout", b"kept"


def test_a_key_that_cannot_be_read_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = Keyless(str(tmp_path), NO_MASTER)
    with pytest.raises(StagingError, match="the key of job_1 is on the machine that submitted it"):
        list(output_of(engine, "job_1", ALL))
    engine.step_s, engine.ends_at = 1.0, 8.0
    assert [data for _, data in output_of(engine, "job_1", replace(ALL, follow=True))] == [b"kept"]
    assert capsys.readouterr().err == "howdah: the key of job_1 is on the machine that submitted it\n"


class Silent:
    """Follows a job whose master is silent three times, answers, and is silent once more."""

    job_id, engine = "job_1", None

    def updates(self) -> Iterator[Update]:
        report, tasks = JobReport("job_1", "", State.RUNNING, "yarn"), {TASK: TaskView(TASK)}
        self.master: object = None
        for number in range(5):
            self.master = self if number == 3 else None
            said = [] if self.master else [Noted(1.0, f"the master has not answered for {number + 5} s: refused")]
            yield Update(JobView(tasks=tasks), report, list(said))


def test_a_silence_is_told_once_and_last_in_the_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    silent: Any = Silent()
    assert len(list(logs._answered_updates(silent, follow=True))) == 1
    said = capsys.readouterr().err.splitlines()
    assert said == [f"howdah: the master has not answered for {seconds} s: refused" for seconds in (5, 9)]
    times = itertools.count(0.0, logs.ANSWER_S / 2)
    monkeypatch.setattr(logs, "time", SimpleNamespace(monotonic=lambda: next(times)))
    with pytest.raises(EngineUnavailable, match="has not answered for 6 s"):
        list(logs._answered_updates(silent, follow=False))


class Restarted:
    """Follows a job whose task is started again in another container, where its output begins anew."""

    printed: ClassVar[dict[int, bytes]] = {1: b"a long first try\n", 2: b"second"}

    def __init__(self, engine: object, job_id: str) -> None:
        self.job_id, self.master, self.attempt = job_id, self, 0

    def updates(self) -> Iterator[Update]:
        report = JobReport("job_1", "", State.RUNNING, "yarn")
        for self.attempt in (1, 2):
            self.printed[1] = b"a long first try\n" + b"its end" * (self.attempt == 2)
            tasks = {
                TASK: TaskView(TASK, attempt=self.attempt, attempts=[AttemptView(n + 1) for n in range(self.attempt)])
            }
            yield Update(JobView(tasks=tasks), report)
        yield Update(JobView(tasks=tasks, outcome=Outcome(State.SUCCEEDED)), report)

    def log(self, task: TaskId, stream: str, offset: int, limit: int, attempt: int) -> LogChunk:
        data = self.printed[attempt or self.attempt] if stream == "stdout" else b""
        return LogChunk(0, min(offset, len(data)), len(data), data[offset:].decode("latin-1"))


def test_all_is_followed_of_a_task_that_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "Follower", Restarted)
    job, followed = JobReport("job_1", "", State.RUNNING, "yarn"), replace(ALL, follow=True)
    engine: Any = None
    pieces = list(logs._live_pieces(engine, job, followed, pytest.fail))
    assert [data for _, data in pieces] == [b"a long first try\n", b"its end", b"second"]
    assert {heading for heading, _ in pieces} == {"worker:0 stdout"}
    first = [(1, b"a long first try"), (1, b"its end")]
    for merge in (False, True):
        for attempt, wanted in ((None, [*first, (2, b"second")]), (1, first), (2, [(2, b"second")])):
            chosen = replace(followed, merge=merge, attempt=attempt)
            assert [(line.attempt, line.text) for line in logs._live_lines(engine, job, chosen)] == wanted


class Verbose:
    """Follows a job of two tasks that have printed much."""

    printed, asked = b"".join(b"%07d\n" % number for number in range(10_000)), 0

    def __init__(self, engine: object, job_id: str) -> None:
        self.job_id, self.master = job_id, self

    def updates(self) -> Iterator[Update]:
        tasks = {task: TaskView(task, attempt=1) for task in (TASK, TaskId("worker", 1))}
        yield Update(JobView(tasks=tasks), JobReport("job_1", "", State.RUNNING, "yarn"))

    def log(self, task: TaskId, stream: str, offset: int, limit: int, attempt: int) -> LogChunk:
        Verbose.asked += 1
        data = self.printed if stream == "stdout" else b""
        return LogChunk(0, offset, len(data), data[offset:][:limit].decode("latin-1"))


def test_merged_lines_are_read_as_they_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "Follower", Verbose)
    monkeypatch.setattr(log_lines, "PIECE_BYTES", 80)
    engine: Any = None
    lines = logs._live_lines(engine, JobReport("job_1", "", State.RUNNING, "yarn"), replace(ALL, merge=True))
    assert next(lines).text == b"0000000"
    assert Verbose.asked < 200
    assert len(list(lines)) == 2 * 10_000 - 1


class Exiting:
    """Follows a job whose master exits before all is read that its task has printed: between two updates, or when it
    has told the end."""

    tells_end, printed = False, b"one\ntwo\nlast"

    def __init__(self, engine: object, job_id: str) -> None:
        self.engine, self.job_id, self.master, self.is_gone = engine, job_id, self, False
        self.view = JobView(tasks={TASK: TaskView(TASK, attempt=1, attempts=[AttemptView(1)])})

    def updates(self) -> Iterator[Update]:
        report = JobReport("job_1", "", State.RUNNING, "yarn")
        yield Update(self.view, report)
        self.is_gone, self.view = True, replace(self.view, outcome=Outcome(State.SUCCEEDED))
        if not self.tells_end:
            self.master: Any = None
        yield Update(self.view, report)

    def log(self, task: TaskId, stream: str, offset: int, limit: int, attempt: int) -> LogChunk:
        if self.is_gone:
            raise WireError("connection refused", 0, "")
        data = b"one\ntw" if stream == "stdout" else b""
        return LogChunk(0, min(offset, len(data)), len(data), data[offset:].decode("latin-1"))


class Keeping(Running):
    """An engine that has kept what the task has printed."""

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        if not self.report.state.ended:
            raise StagingError("the job has not ended")
        yield "worker:0 attempt 1 stdout", Exiting.printed


@pytest.mark.parametrize("tells_end", [True, False])
def test_the_last_lines_come_from_what_is_kept_if_the_master_exits_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tells_end: bool
) -> None:
    monkeypatch.setattr(logs, "Follower", Exiting)
    monkeypatch.setattr(Exiting, "tells_end", tells_end)
    job, followed = JobReport("job_1", "", State.RUNNING, "yarn"), replace(ALL, follow=True)

    def engine() -> Keeping:
        made = Keeping(str(tmp_path), NO_MASTER)
        made.ends_at = 0.0
        return made

    pieces = list(logs._live_pieces(engine(), job, followed, pytest.fail))
    assert b"".join(data for _, data in pieces) == Exiting.printed
    assert {heading for heading, _ in pieces} == {"worker:0 stdout"}
    for merge in (False, True):
        lines = logs._live_lines(engine(), job, replace(followed, merge=merge))
        assert [line.text for line in lines] == [b"one", b"two", b"last"]
    last = replace(followed, choice=LineFilter(pattern=re.compile(b"t")))
    assert [line.text for line in logs._live_lines(engine(), job, last)] == [b"two", b"last"]
