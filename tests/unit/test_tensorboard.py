"""Tests TensorBoard's token middleware and the directory tree that it reads, without TensorBoard."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from howdah.cli.tensorboard import chosen as chosen_by
from howdah.client.wait_for_tensorboard import wait_until_open
from howdah.errors import RequestRefused
from howdah.spec import Board, JobSpec, Role, event_lines, uris
from howdah.spec.events import BoardChanged, Event, JobStarted, Noted
from howdah.tensorboard.gfile_adapter import ROOT, GFileTree
from howdah.tensorboard.job_directories import JobDirectories, JobSelection
from howdah.tensorboard.token_middleware import TokenMiddleware
from howdah.tensorboard.wsgi_server import WsgiServer
from howdah.wire.tensorboard_command import link, path

TOKEN = "a-token"
HERE = path(TOKEN)


class Visitor:
    """Sends requests to the middleware as a browser would, with the cookies it was given."""

    def __init__(self) -> None:
        self.now = 0.0
        self.middleware = TokenMiddleware(self._application, TOKEN, lambda: self.now)

    def _application(self, environ: Mapping[str, Any], start: Any) -> Iterable[bytes]:
        start("200 OK", [])
        return [b"curves"]

    def asks(self, where: str, query: str = "", cookie: str = "") -> tuple[str, dict[str, str]]:
        answered: list[Any] = []
        environ = {"PATH_INFO": where, "QUERY_STRING": query, "HTTP_COOKIE": cookie}
        b"".join(self.middleware(environ, lambda *answer: answered.append(answer)))
        return answered[0][0][:3], dict(answered[0][1])


def test_a_token_becomes_a_cookie_of_an_unguessable_path() -> None:
    visitor = Visitor()
    visitor.now = 5.0
    assert link("h", 7, TOKEN) == f"http://h:7{HERE}/?token={TOKEN}"
    status, headers = visitor.asks(f"{HERE}/", f"token={TOKEN}&tab=1")
    assert (status, headers["Location"], visitor.middleware.last_request_at) == ("303", f"{HERE}/?tab=1", 5.0)
    assert f"Path={HERE}/; HttpOnly" in headers["Set-Cookie"]
    visitor.now = 9.0
    cookie = headers["Set-Cookie"].split(";")[0]
    assert visitor.asks(f"{HERE}/data/runs", cookie=f"other=1; {cookie}")[0] == "200"
    assert visitor.middleware.last_request_at == 9.0


@pytest.mark.parametrize(
    ("where", "query", "cookie"),
    [
        (f"{HERE}/", "", ""),
        (f"{HERE}/", "token=another", ""),
        (f"{HERE}/", "token=%C3%A9", ""),
        (f"{HERE}/", "", "howdah-tensorboard=another"),
        (f"{HERE}/", "", 'howdah-tensorboard="; ;=;\x00'),
        (f"{HERE}x/", f"token={TOKEN}", ""),
        (HERE, f"token={TOKEN}", ""),
        ("/", f"token={TOKEN}", f"howdah-tensorboard={TOKEN}"),
        ("", "", ""),
    ],
)
def test_no_other_caller_is_let_in_or_keeps_tensorboard_awake(where: str, query: str, cookie: str) -> None:
    visitor = Visitor()
    visitor.now = 5.0
    assert visitor.asks(where, query, cookie)[0] == "403"
    assert visitor.middleware.last_request_at == 0.0


class FilledLater:
    """A TensorBoard that has nothing to show before `is_filled`; the listing of its plugins is a real one's, cut."""

    is_filled = False
    listed = 0

    def __call__(self, environ: Mapping[str, Any], start: Any) -> Iterable[bytes]:
        start("200 OK", [("Content-Type", "application/json")])
        if environ["PATH_INFO"] != f"{HERE}/data/plugins_listing":
            return [b"TensorBoard's own"]
        assert "HTTP_ACCEPT_ENCODING" not in environ  # it would compress its answer
        self.listed += 1
        names = ("timeseries", "scalars", "graphs")
        listing = {name: {"enabled": self.is_filled and name != "graphs", "remove_dom": False} for name in names}
        return [json.dumps(listing).encode()]


def test_who_opens_it_before_it_has_read_anything_sees_it_once_it_has() -> None:
    application = FilledLater()
    cookie = {"Cookie": f"howdah-tensorboard={TOKEN}", "Accept-Encoding": "gzip"}
    with served(application) as (middleware, port):
        before = middleware.last_request_at
        status, body, headers = ask(port, "GET", f"{HERE}/?darkMode=true", **cookie)
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert b"nothing to show yet" in body
        assert b'<meta http-equiv="refresh" content="2">' in body
        chinese = ask(port, "GET", f"{HERE}/", **cookie, **{"Accept-Language": "zh-CN,zh;q=0.9"})[1].decode()
        assert "尚无事件文件" in chinese
        assert '<html lang="zh">' in chinese
        assert middleware.last_request_at == before  # a page that waits does not keep TensorBoard awake
        assert ask(port, "GET", f"{HERE}/data/runs", **cookie)[1] == b"TensorBoard's own"
        application.is_filled = True
        assert ask(port, "GET", f"{HERE}/", **cookie)[1] == b"TensorBoard's own"
        assert middleware.last_request_at > before
        listed = application.listed
        assert ask(port, "GET", f"{HERE}/", **cookie)[1] == b"TensorBoard's own"
        assert application.listed == listed


@contextlib.contextmanager
def served(application: Any) -> Iterator[tuple[TokenMiddleware, int]]:
    """By our own server, in a thread."""
    middleware = TokenMiddleware(application, TOKEN)
    server = WsgiServer(middleware, "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield middleware, server.port
    finally:
        server.stop()
        thread.join(60)
        assert not thread.is_alive(), "the server has not stopped"


def ask(port: int, method: str, target: str, body: bytes = b"", **headers: str) -> tuple[int, bytes, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, target, body, headers)
    answer = connection.getresponse()
    found = answer.status, answer.read(), answer.headers
    connection.close()
    return found


def echo(environ: Mapping[str, Any], start: Any) -> Iterable[bytes]:
    """As TensorBoard's plugins read what they are sent."""
    body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    words = [environ["REQUEST_METHOD"], environ["PATH_INFO"].encode("latin-1").decode(), environ["QUERY_STRING"]]
    start("200 OK", [("Content-Type", "text/x"), ("Content-Length", "0"), ("X-Type", environ["CONTENT_TYPE"])])
    return [" ".join(words).encode(), b" ", body]


def test_an_application_is_asked_as_the_browser_asks() -> None:
    cookie = {"Cookie": f"a=b; howdah-tensorboard={TOKEN}", "Content-Type": "text/y"}
    with served(echo) as (_, port):
        assert ask(port, "GET", f"{HERE}/")[0] == 403
        status, _, headers = ask(port, "GET", f"{HERE}/?token={TOKEN}&tab=1")
        assert (status, headers["Location"]) == (303, f"{HERE}/?tab=1")
        status, body, headers = ask(port, "POST", f"{HERE}/d%C3%A4/x?run=%20", b"z" * 100_000, **cookie)
        assert (status, headers["Content-Type"], headers["X-Type"]) == (200, "text/x", "text/y")
        assert body == f"POST {HERE}/dä/x run=%20 ".encode() + b"z" * 100_000


def test_who_has_no_token_takes_no_thread_and_few_connections() -> None:
    with served(echo) as (_, port), contextlib.ExitStack() as stack:
        threads = threading.active_count()
        for _ in range(300):
            caller = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            caller.sendall(b"GET / HTTP/1.1\r\nX: ")
        assert ask(port, "GET", f"{HERE}/data/runs", Cookie=f"howdah-tensorboard={TOKEN}")[0] == 200
        assert threading.active_count() <= threads + 1
        assert ask(port, "POST", f"{HERE}/", bytes(100_000))[0] == 413


def test_directories_hang_in_one_tree(tmp_path: Path) -> None:
    (tmp_path / "a" / "x").mkdir(parents=True)
    (tmp_path / "a" / "events.1").write_bytes(b"0123456789")
    places = {"run": uris.of_local(tmp_path / "a"), "more/deep": uris.of_local(tmp_path / "gone")}
    tree = GFileTree(lambda: places)
    assert tree.listdir(ROOT) == ["more", "run"]
    assert tree.listdir(f"{ROOT}/more") == ["deep"]
    assert tree.listdir(f"{ROOT}/run") == ["events.1", "x"]
    assert tree.listdir(f"{ROOT}/more/deep") == tree.listdir(f"{ROOT}/none") == []
    assert [tree.isdir(f"{ROOT}/{name}") for name in ("", "more", "run", "run/x", "run/events.1", "more/deep")] == [
        *([True] * 4),
        *([False] * 2),
    ]
    assert tree.exists(f"{ROOT}/run/events.1".encode())
    assert tree.stat(f"{ROOT}/run/events.1").length == 10
    assert tree.glob(f"{ROOT}/run/*.1") == [f"{ROOT}/run/events.1"]
    with pytest.raises(PermissionError):
        tree.write(f"{ROOT}/run/events.1", b"")


def test_reading_goes_on_where_it_ended(tmp_path: Path) -> None:
    events = tmp_path / "events.1"
    events.write_bytes(b"0123456789")
    tree = GFileTree(lambda: {"": uris.of_local(tmp_path)})
    data, token = tree.read(f"{ROOT}/events.1", True, 8)
    assert data == b"01234567"
    data, token = tree.read(f"{ROOT}/events.1", True, 8, token)
    assert data == b"89"
    assert tree.read(f"{ROOT}/events.1", True, 8, token)[0] == b""
    with events.open("ab") as file:
        file.write(b"more")
    assert tree.read(f"{ROOT}/events.1", True, 8, token)[0] == b"more"
    assert tree.read(f"{ROOT}/events.1")[0] == "0123456789more"
    events.unlink()
    assert tree.read(f"{ROOT}/events.1", True, 8, token) == (b"", token)


def test_every_job_below_its_name(tmp_path: Path) -> None:
    for number, board in ((1, "hdfs://n/one"), (2, "hdfs://n/two"), (3, "")):
        directory = tmp_path / "jobs" / f"local-{number}"
        directory.mkdir(parents=True)
        job = JobSpec({"worker": Role("t")}, name="my <job>", board=Board(board))
        (directory / "events.jsonl").write_text(
            event_lines.to_line(JobStarted(1.0, f"local-{number}", "local", "me", job))
        )
    (tmp_path / "jobs" / "local-4").mkdir()
    (tmp_path / "jobs" / "local-5").mkdir()
    (tmp_path / "jobs" / "local-5" / "events.jsonl").write_text("")
    found = JobDirectories([uris.of_local(tmp_path), uris.of_local(tmp_path / "none")])()
    assert found == {"my_job__local-1": "hdfs://n/one", "my_job__local-2": "hdfs://n/two"}


def homes(tmp_path: Path) -> str:
    """Of two users, five jobs each, the higher the newer; a directory of a third may not be read."""
    for user in ("alice", "bob"):
        for number in range(5):
            id_ = f"{user}-{number}"
            directory = tmp_path / user / ".howdah" / "jobs" / id_
            directory.mkdir(parents=True)
            job = JobSpec(
                {"worker": Role("t")}, name="Digits" if number % 2 else "other", board=Board(f"hdfs://n/{id_}")
            )
            (directory / "events.jsonl").write_text(event_lines.to_line(JobStarted(1.0, id_, "yarn", user, job)))
            os.utime(directory, (number, number))
    (tmp_path / "carol").mkdir()
    (tmp_path / "carol" / ".howdah").write_text("no directory")
    return f"{uris.of_local(tmp_path)}/*/.howdah"


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        (JobSelection(), {f"{user}-{number}" for user in ("alice", "bob") for number in range(5)}),
        (JobSelection(("bob",)), {f"bob-{number}" for number in range(5)}),
        (JobSelection(name="digit"), {"alice-1", "alice-3", "bob-1", "bob-3"}),
        (JobSelection(("alice", "nobody"), "DIGITS"), {"alice-1", "alice-3"}),
        (JobSelection(("alice",), last=2), {"alice-4", "alice-3"}),
        (JobSelection(last=4), {"alice-4", "alice-3", "bob-4", "bob-3"}),
    ],
)
def test_jobs_of_all_users_are_chosen_as_in_the_history(tmp_path: Path, chosen: JobSelection, shown: set[str]) -> None:
    told: list[str] = []
    jobs = JobDirectories([homes(tmp_path)], selected=chosen, report=told.append)
    assert {name.partition("_")[2] for name in jobs()} == shown
    assert bool(told) == (chosen.last < 200)
    assert all(f"the newest {chosen.last} jobs" in text for text in told)


def test_what_the_command_line_chooses() -> None:
    assert chosen_by(["hdfs://n/user/*/.howdah"], ["/more", "s3://b/x"], "a,b", "x") == {
        "homes": ["hdfs://n/user/*/.howdah", "file:///more", "s3://b/x"],
        "users": ["a", "b"],
        "name": "x",
    }


def changes(*states: str) -> Iterator[list[Event]]:
    yield []
    for state in states:
        yield [Noted(1.0, "something else"), BoardChanged(1.0, state, "h", 1, "why")]


def test_a_tensorboard_is_waited_for() -> None:
    answers = iter(["", "http://it"])
    assert wait_until_open("j", lambda: {"url": next(answers)}, changes("asked", "starting", "open")) == "http://it"
    assert wait_until_open("j", lambda: {"url": "http://now"}, changes()) == "http://now"
    with pytest.raises(RequestRefused, match="no TensorBoard for j: why"):
        wait_until_open("j", lambda: {"url": ""}, changes("starting", "ended"))
