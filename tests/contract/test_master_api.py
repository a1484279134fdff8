"""Tests the master's port over a real socket: who may send what, and that long polls are answered."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.client.master_client import MasterClient, translate_refusals
from howdah.errors import Conflict, EngineUnavailable, NotFound
from howdah.master.app import JobMaster, MasterIdentity
from howdah.master.server.server import MAX_LOG_BYTES
from howdah.spec import Exit, JobSpec, Role, StagedJob, State, TaskId, Timeouts
from howdah.spec.codec import decode, encode
from howdah.storage.factory import filesystem
from howdah.testing import FakeAllocator
from howdah.wire import auth
from howdah.wire import program_protocol as programs
from howdah.wire.connection import MasterConnection, WireError
from howdah.wire.messages import Goal, LogChunk, LogRequest, Orders, Phase, Status

KEY = b"k" * 32
LIMIT_S = 120.0
WORKER = auth.executor_principal("worker:0", 1)


class Running:
    """A master of one worker in a thread of its own."""

    def __init__(self, directory: str) -> None:
        roles = {"worker": Role("train", env={"DB_PASSWORD": "abc"})}
        times = Timeouts(stop_s=0.1)  # nobody ends here when he is told to
        job = JobSpec(roles=roles, name="<b>job</b>", env={"API_TOKEN": "abc", "LR": "1"}, timeouts=times)
        staged = StagedJob(job, home=directory)
        self.identity = MasterIdentity("job-1", "fake", directory, "127.0.0.1", staged, KEY, {})
        self.ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self.thread.start()
        assert self.ready.wait(LIMIT_S)

    async def _run(self) -> None:
        self.master = JobMaster(self.identity, FakeAllocator)
        running = asyncio.ensure_future(self.master.run())
        while self.master.allocator is None or not self.master.allocator.launched:
            await asyncio.sleep(0.01)
        assert self.master.context is not None
        self.url = self.master.context.url
        self.ready.set()
        self.outcome = await running

    def executor(self, principal: str = WORKER, key: bytes = KEY) -> MasterConnection:
        return MasterConnection(self.url, principal, auth.derive(key, principal))

    def plain(self, method: str, path: str, **headers: str) -> tuple[int, bytes]:
        address = self.url.removeprefix("http://")
        connection = http.client.HTTPConnection(address, timeout=LIMIT_S)
        connection.request(method, path, headers={"Host": address, **headers})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    running = Running(f"file://{tmp_path}")
    yield running
    end(running)


def end(running: Running) -> None:
    if running.thread.is_alive():
        with MasterClient(running.url, KEY) as link:
            link.cancel("the test")
        with contextlib.suppress(WireError):  # it does not wait for an executor from which it never heard
            say(running.executor(), 1 << 30, Phase.ENDED, exit=Exit("stopped"))
    running.thread.join(LIMIT_S)
    assert not running.thread.is_alive(), "the master did not end"


def status(sequence: int, phase: Phase, **fields: object) -> Status:
    return Status(
        task="worker:0",
        attempt=1,
        epoch=fields.pop("epoch", 1),
        sequence=sequence,
        phase=phase,
        host="127.0.0.1",
        pid=7,
        **fields,
    )


def say(connection: MasterConnection, sequence: int, phase: Phase, wait: float = 0.0, **fields: object) -> Orders:
    message = encode(status(sequence, phase, **fields))
    try:
        return decode(Orders, connection.call("POST", f"/v1/executor?wait={wait}", message))
    finally:
        connection.close()


def until_it_runs(running: Running, first: int = 2) -> Orders:
    """It may have to wait until its start is in the log."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        told = say(running.executor(), first, Phase.JOINED, ports={"main": 4321})
        if told.goal is Goal.RUN:
            return told
        time.sleep(0.01)
    raise AssertionError(f"it was not told to run: {told}")


def test_a_whole_life_over_the_wire(running: Running):
    hello = say(running.executor(), 1, Phase.HELLO)
    assert hello.goal is Goal.JOIN
    assert hello.assignment is not None
    assert hello.assignment.command == "train"
    told = until_it_runs(running)
    assert told.environment["HOWDAH_PORT"] == "4321"
    say(running.executor(), 3, Phase.RUNNING, ports={"main": 4321}, program_pid=9)
    say(running.executor(), 4, Phase.ENDED, ports={"main": 4321}, program_pid=9, exit=Exit("exit", 0))
    running.thread.join(LIMIT_S)
    assert running.outcome.state is State.SUCCEEDED


def test_the_largest_piece_of_a_log_fits_into_a_message(running: Running):
    binary = LogChunk(request=1, offset=0, size=1 << 20, text="\xff" * (1 << 20))
    assert say(running.executor(), 1, Phase.HELLO, chunks=(binary,)).goal is Goal.JOIN


def test_a_program_that_may_not_start_twice_waits_until_its_start_is_written():
    """Else a master that took over would not know of it, and start it once more."""
    directory = f"memory://starts/{time.monotonic_ns()}"
    log = f"{directory}/events.jsonl"
    files = filesystem(directory)
    files.mkdirs(log)  # in the way of the log
    running = Running(directory)
    try:
        say(running.executor(), 1, Phase.HELLO)
        assert say(running.executor(), 2, Phase.JOINED, wait=1, ports={"main": 4321}).goal is Goal.JOIN
        files.delete(log)
        until_it_runs(running, 3)
        assert b"WorldFormed" in files.read_bytes(log)
    finally:
        end(running)


def test_a_client_follows_events(running: Running):
    with MasterClient(running.url, KEY) as link:
        first = link.events(0, 0)
        assert [type(event).__name__ for event in first.events[:2]] == ["JobStarted", "Asked"]
        assert link.events(first.next, 0).events == []


@pytest.mark.parametrize(
    ("principal", "key", "code"),
    [
        (WORKER, b"x" * 32, 0),  # nothing that is signed comes back
        (auth.executor_principal("worker:0", 2), KEY, 403),
        (auth.CLIENT, KEY, 404),
    ],
)
def test_who_is_not_this_attempt_is_refused(running: Running, principal: str, key: bytes, code: int):
    with pytest.raises(WireError) as refused:
        say(running.executor(principal, key), 5, Phase.HELLO)
    assert refused.value.status == code


def test_an_old_attempt_is_told_that_it_is_not_wanted(running: Running):
    principal = auth.executor_principal("worker:0", 2)
    message = encode(status(1, Phase.HELLO)) | {"attempt": 2}
    with running.executor(principal) as connection, pytest.raises(WireError) as refused:
        connection.call("POST", "/v1/executor", message)
    assert refused.value.status == 410


def test_an_executor_in_another_container_is_told_that_it_is_not_wanted(running: Running):
    with running.executor() as connection, pytest.raises(WireError) as refused:
        connection.call("POST", "/v1/executor", encode(status(1, Phase.HELLO, container="another")))
    assert refused.value.status == 410
    assert running.master.state.tasks[TaskId("worker", 0)].phase is None
    say(running.executor(), 1, Phase.HELLO, container="c1")
    assert running.master.state.tasks[TaskId("worker", 0)].phase is Phase.HELLO


def test_an_executor_speaks_for_its_own_attempt_only(running: Running):
    stranger = auth.executor_principal("worker:0", 2)
    with running.executor(stranger) as connection, pytest.raises(WireError) as refused:
        connection.call("POST", "/v1/executor", encode(status(1, Phase.HELLO)))
    assert refused.value.status == 403


@pytest.mark.parametrize("principal", ["gang", "view", "act 9999999999"])
def test_who_has_another_key_of_the_job_may_not_speak(running: Running, principal: str):
    """Programs and the holders of links know what is made of such keys."""
    header = {auth.HEADER: auth.sign(auth.derive(KEY, principal), "request", principal, "/v1/x", time.time(), b"")}
    assert running.plain("GET", "/v1/x", **header)[0] == 403


def test_a_program_may_not_do_what_a_client_may(running: Running):
    program = f"{programs.PROGRAM}worker:0/1/1"
    key = programs.program_key(auth.derive(KEY, WORKER), program)
    with MasterConnection(running.url, program, key) as connection, pytest.raises(WireError) as refused:
        connection.call("GET", "/v1/events?since=0")
    assert refused.value.status == 404


def test_a_signature_that_does_not_fit_is_refused(running: Running):
    path = "/v1/events?since=0"
    for key, told in ((KEY, b""), (auth.derive(KEY, auth.CLIENT), b"another body")):
        header = {auth.HEADER: auth.sign(key, "request", auth.CLIENT, path, time.time(), told)}
        assert running.plain("GET", path, **header)[0] == 403


def test_a_part_of_a_log_has_a_limit(running: Running):
    say(running.executor(), 1, Phase.HELLO)
    asked = threading.Thread(target=ask_for_log, args=(running, 1 << 40))
    asked.start()
    try:
        requests = say_until_a_log_is_asked_for(running)
        assert [request.limit for request in requests] == [MAX_LOG_BYTES]
        say(
            running.executor(),
            1 << 20,
            Phase.LOCALISING,
            chunks=(LogChunk(request=requests[0].request, offset=0, size=0),),
        )
    finally:
        asked.join(LIMIT_S)


def say_until_a_log_is_asked_for(running: Running) -> tuple[LogRequest, ...]:
    deadline = time.monotonic() + LIMIT_S
    for number in itertools.count(2):
        told = say(running.executor(), number, Phase.LOCALISING)
        if told.log_requests:
            return told.log_requests
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    raise AssertionError("nobody has asked for the log")


def ask_for_log(running: Running, limit: int) -> None:
    with running.executor(auth.CLIENT) as connection:
        connection.call("GET", f"/v1/logs/worker:0?limit={limit}")


def test_an_executor_may_not_cancel(running: Running):
    with running.executor() as connection, pytest.raises(WireError) as refused:
        connection.call("POST", "/v1/actions/cancel", {})
    assert refused.value.status == 404


@pytest.mark.parametrize("message", [7, [1], "text"])
@pytest.mark.parametrize("principal", [WORKER, auth.CLIENT])
def test_json_that_is_no_object_is_malformed(running: Running, principal: str, message: object):
    path = "/v1/executor" if principal is WORKER else "/v1/actions/check"
    with running.executor(principal) as connection, pytest.raises(WireError, match="must be a JSON object") as refused:
        connection.call("POST", path, message)
    assert refused.value.status == 400


def test_a_client_hears_a_no_in_the_masters_own_words(running: Running):
    with MasterClient(running.url, KEY) as link:
        with (
            pytest.raises(NotFound, match=r"^job-1: no task worker:404; there are worker:0$"),
            translate_refusals("job-1"),
        ):
            link.stacks("me", "worker:404")
        with (
            pytest.raises(Conflict, match=r"^job-1: worker:0 has no program that runs now$"),
            translate_refusals("job-1"),
        ):
            link.stacks("me", "worker:0")
    silent = MasterClient(running.url, b"x" * 32)
    with (
        silent,
        pytest.raises(EngineUnavailable, match=r"^job-1: the signature does not fit"),
        translate_refusals("job-1"),
    ):
        silent.stacks("me")


def test_an_answer_is_believed_only_with_the_masters_signature(running: Running):
    key, path = auth.derive(KEY, auth.CLIENT), "/v1/events?since=0"
    requested_at = time.time()
    request = {auth.HEADER: auth.sign(key, "request", auth.CLIENT, path, requested_at, b"")}
    raw = http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=LIMIT_S)
    raw.request("GET", path, headers=request)
    answer = raw.getresponse()
    body, signature = answer.read(), answer.headers[auth.HEADER]
    raw.close()
    assert auth.verify_answer(key, signature, path, requested_at, body)
    assert not auth.verify_answer(key, signature, path, requested_at, body + b" ")
    assert not auth.verify_answer(key, signature, path, requested_at + 1, body)
    assert not auth.verify_answer(key, signature, path, requested_at, body, 410)
    assert not auth.verify_answer(b"other", signature, path, requested_at, body)


def test_a_signature_is_good_for_its_own_message_and_minute_only():
    key = auth.derive(KEY, auth.CLIENT)
    header = auth.sign(key, "request", auth.CLIENT, "/v1/cancel", 1000.0, b"{}")
    assert auth.verify(key, "request", header, "/v1/cancel", 1000.0, b"{}")
    for changed in (
        ("response", "/v1/cancel", 1000.0, b"{}"),
        ("request", "/v1/other", 1000.0, b"{}"),
        ("request", "/v1/cancel", 1301.0, b"{}"),
        ("request", "/v1/cancel", 1000.0, b"{ }"),
    ):
        direction, path, now, body = changed
        assert not auth.verify(key, direction, header, path, now, body)


def test_the_page_needs_its_token(running: Running):
    token = auth.view_token(KEY)
    job = "/api/v1/jobs/job-1"
    assert running.plain("GET", job)[0] == 403
    assert running.plain("GET", f"{job}?token=wrong")[0] == 403
    assert running.plain("GET", job, Cookie="proxy-user=alice")[0] == 403
    code, body = running.plain("GET", f"{job}?token={token}")
    assert code == 200
    assert json.loads(body)["name"] == "<b>job</b>"
    assert running.plain("GET", job, **{"Howdah-Token": token})[0] == 200


def test_xlearnings_calls_need_the_token_and_change_nothing(running: Running):
    token = auth.view_token(KEY)
    assert running.plain("GET", "/ws/app")[0] == 403
    code, body = running.plain("GET", f"/ws/app?token={token}")
    assert code == 200
    assert json.loads(body)["workerNum"] >= 1
    before = running.master.log.version
    for path in ("savemodel", "signal/9"):
        assert running.plain("GET", f"/ws/app/{path}?token={token}")[0] == 405
        assert running.plain("POST", f"/ws/app/{path}?token={token}")[0] == 403
    assert running.master.log.version == before


def test_the_token_does_not_let_its_holder_act(running: Running):
    token = auth.view_token(KEY)
    assert running.plain("POST", f"/v1/cancel?token={token}")[0] == 403
    assert running.plain("GET", f"/v1/events?token={token}")[0] == 404


def test_foreign_hosts_and_origins_are_refused(running: Running):
    token = auth.view_token(KEY)
    assert running.plain("GET", f"/?token={token}", Host="evil.example")[0] == 403
    assert running.plain("GET", f"/?token={token}", Origin="http://evil.example")[0] == 403


@pytest.mark.parametrize(
    ("bytes_sent", "code"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 40000 + b"\r\n\r\n", 431),
    ],
)
def test_what_is_no_request_is_refused_and_the_master_lives(running: Running, bytes_sent: bytes, code: int):
    host, _, port = running.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=LIMIT_S) as raw:
        raw.sendall(bytes_sent)
        assert raw.recv(4096).split(b" ")[1] == str(code).encode()
    with MasterClient(running.url, KEY) as link:
        assert link.events(0, 0).events
