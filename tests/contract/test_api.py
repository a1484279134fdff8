"""Tests the API's calls over a real socket: who may look, embed and act, and what is cached."""

from __future__ import annotations

import gzip
import http.client
import itertools
import json
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from test_master_api import KEY, LIMIT_S, Running, running, say

from howdah.api.openapi import openapi
from howdah.spec import Exit
from howdah.spec.events import Noted
from howdah.spec.message import message
from howdah.wire import auth
from howdah.wire.messages import LogChunk, Phase

__all__ = ["running"]  # a fixture
TOKEN = auth.view_token(KEY)
JOB = "/api/v1/jobs/job-1"
HOSTILE = '<script>alert(1)</script>\u2028&#x27;"</script>'


def ask(running: Running, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
    """Status, headers and the JSON of the answer."""
    address = running.url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=LIMIT_S)
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data, {"Host": address, **headers})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.headers.get("Content-Encoding") == "gzip":
        text = gzip.decompress(text)
    return answer.status, answer.headers, json.loads(text) if text else None


def look(running: Running, path: str, **headers: str) -> Any:
    status, _, value = ask(running, "GET", f"{JOB}{path}{'&' if '?' in path else '?'}token={TOKEN}", **headers)
    assert status == 200, value
    return value


def act(running: Running, name: str, token: str, method: str = "PUT", **words: Any) -> tuple[int, Any]:
    status, _, value = ask(running, method, f"{JOB}/actions/{name}", {"token": token, **words})
    if status == 200:
        document = openapi()
        answer = document["paths"][f"/api/v1/jobs/{{job}}/actions/{name}"][method.lower()]["responses"]["200"]
        schema = answer["content"]["application/json"]["schema"]
        Draft202012Validator({**schema, "components": document["components"]}).validate(value)
    return status, value


def test_the_calls_of_a_job(running: Running) -> None:
    say(running.executor(), 1, Phase.HELLO)
    say(running.executor(), 2, Phase.JOINED, ports={"main": 4321})
    say(running.executor(), 3, Phase.RUNNING, ports={"main": 4321}, program_pid=9, log_offset=120)
    status, _, server = ask(running, "GET", f"/api/v1/server?token={TOKEN}")
    assert status == 200
    assert (server["kind"], server["job"]) == ("master", "job-1")
    job = look(running, "")
    assert (job["state"], job["roles"][0]["running"]) == ("RUNNING", 1)
    assert set(job["can"]) >= {"cancel", "save"}
    assert (job["gpu_hours"], job["stacks"]) == (0, [])
    (task,) = look(running, "/tasks")["tasks"]
    assert (task["task"], task["rank"], task["state"], task["ports"]) == ("worker:0", 0, "RUNNING", {"main": 4321})
    assert [(each["attempt"], each["state"], each["log_offset"]) for each in task["attempts"]] == [(1, "RUNNING", 120)]
    timeline = look(running, "/timeline")
    spans = [span["phase"] for span in timeline["tasks"][0]["spans"]]
    assert spans == ["asked", "allocated", "launched", "localising", "joined", "running"]
    assert [span["phase"] for span in timeline["job"]] == ["forming", "running"]
    events = look(running, "/events?limit=2")
    assert [event["kind"] for event in events["events"]] == ["JobStarted", "Asked"]
    assert look(running, "/events?since=2")["events"][0]["kind"] == "Allocated"


def test_what_is_being_printed_is_cut_at_characters(running: Running) -> None:
    executor, printed = running.executor(), "损失 0.5 😀\n".encode()
    say(executor, 1, Phase.HELLO)
    say(executor, 2, Phase.JOINED, ports={"main": 4321})
    numbers, status = itertools.count(3), {"ports": {"main": 4321}, "program_pid": 9}

    def answered(size: int, offset: int) -> dict[str, Any]:
        """What the page gets while `size` bytes are printed; the executor sends what it is asked for."""
        with ThreadPoolExecutor(1) as caller:
            page = caller.submit(look, running, f"/logs/worker:0?offset={offset}&limit=7")
            while not page.done():
                chunks: list[LogChunk] = []
                for one in say(executor, next(numbers), Phase.RUNNING, wait=0.2, **status).log_requests:
                    begin = one.offset if one.offset >= 0 else max(0, size + one.offset)
                    data = printed[:size][begin : begin + one.limit].decode("latin-1")
                    chunks.append(LogChunk(request=one.request, offset=begin, size=size, text=data))
                if chunks:
                    say(executor, next(numbers), Phase.RUNNING, chunks=tuple(chunks), **status)
            return dict(page.result())

    shown, offset = "", 0
    for size in (2, 4, 11, 13, len(printed), len(printed)):
        part = answered(size, offset)
        assert (part["offset"], part["size"], part["complete"]) == (offset, size, False)
        shown, offset = shown + part["text"], part["next"]
        assert shown == printed[:offset].decode()
    assert (shown, offset) == (printed.decode(), len(printed))
    end = answered(len(printed), -3)
    assert (end["offset"], end["text"]) == (len(printed) - 1, "\n")
    say(executor, next(numbers), Phase.ENDED, exit=Exit("exit", 0), **status)


def test_the_numbers_and_times_of_printed_lines(running: Running) -> None:
    executor, printed = running.executor(), b"one\ntwo\nthree\n"
    streams = {"stdout": printed, "times": b"100.0 0 0 0 0\n200.5 8 0 2 0\n"}
    say(executor, 1, Phase.HELLO)
    say(executor, 2, Phase.JOINED, ports={"main": 4321})
    numbers, status = itertools.count(3), {"ports": {"main": 4321}, "program_pid": 9}
    with ThreadPoolExecutor(1) as caller:
        page = caller.submit(look, running, "/logs/worker:0?offset=5&lines=1")
        while not page.done():
            chunks: list[LogChunk] = []
            for one in say(executor, next(numbers), Phase.RUNNING, wait=0.2, **status).log_requests:
                data = streams[one.stream]
                begin = one.offset if one.offset >= 0 else max(0, len(data) + one.offset)
                text = data[begin : begin + one.limit].decode("latin-1")
                chunks.append(LogChunk(request=one.request, offset=begin, size=len(data), text=text))
            if chunks:
                say(executor, next(numbers), Phase.RUNNING, chunks=tuple(chunks), **status)
    found = page.result()
    assert (found["text"], found["first_line"]) == ("wo\nthree\n", 2)
    assert found["times"] == [[0, 100.0], [1, 200.5]]
    say(executor, next(numbers), Phase.ENDED, exit=Exit("exit", 0), **status)


def test_a_variable_that_looks_secret_is_not_shown(running: Running) -> None:
    events, job = look(running, "/events"), look(running, "")
    for spec in (events["events"][0]["job"], job["spec"]):
        assert spec["env"] == {"API_TOKEN": "***", "LR": "1"}
        assert spec["roles"]["worker"]["env"] == {"DB_PASSWORD": "***"}
    assert job["captured"]["variables"] == {"API_TOKEN": "***", "LR": "1"}
    assert running.master.log.view.job.env["API_TOKEN"] == "abc"


def test_who_has_the_latest_version_is_answered_shortly(running: Running) -> None:
    first = look(running, "/tasks")
    assert look(running, f"/tasks?since={first['version']}") == {"version": first["version"], "unchanged": True}
    assert look(running, "/tasks?since=99999")["tasks"] == first["tasks"]
    say(running.executor(), 1, Phase.HELLO)
    until = time.monotonic() + LIMIT_S
    while "unchanged" in look(running, f"/tasks?since={first['version']}"):
        assert time.monotonic() < until, "no new version came"
    changed = look(running, f"/tasks?since={first['version']}")
    assert changed["version"] > first["version"]
    assert changed["tasks"][0]["phase"] == "localising"


def test_answers_are_compressed_for_those_who_take_it(running: Running) -> None:
    path = f"{JOB}?token={TOKEN}"
    _, plain, value = ask(running, "GET", path)
    _, packed, same = ask(running, "GET", path, **{"Accept-Encoding": "gzip"})
    assert plain.get("Content-Encoding") is None
    assert packed["Content-Encoding"] == "gzip"
    assert int(packed["Content-Length"]) < int(plain["Content-Length"])
    assert value == same


@pytest.mark.parametrize(
    ("path", "status", "place"),
    [
        ("/api/v1/jobs/job-2?token={t}", 404, "job"),
        ("/api/v1/nothing?token={t}", 404, ""),
        (JOB + "/events?since=x&token={t}", 400, "since"),
        (JOB + "/logs/worker:9?token={t}", 404, "task"),
        (JOB + "/logs/worker?token={t}", 400, "task"),
        (JOB + "/logs/worker:0?stream=x&token={t}", 400, "stream"),
        (JOB + "/logs/merged?task=nobody&token={t}", 404, "task"),
        (JOB + "/logs/archive?task=nobody&token={t}", 404, "task"),
        (JOB + "/search/download?token={t}", 400, "text"),
        (JOB + "/tasks", 403, "token"),
        (JOB + "/logs/archive", 403, "token"),
        (JOB + "/logs/merged", 403, "token"),
        (JOB + "/tasks?token=%00%ff", 403, "token"),
        (JOB + "/tasks?token=" + auth.embed_token(KEY), 403, "token"),
    ],
)
def test_why_not_is_said_in_json(running: Running, path: str, status: int, place: str) -> None:
    found, _, value = ask(running, "GET", path.replace("{t}", TOKEN))
    assert (found, value["place"]) == (status, place)
    assert "\n" not in value["error"]


def test_an_embed_token_shows_curves_alone(running: Running) -> None:
    embed = auth.embed_token(KEY)
    assert ask(running, "GET", f"{JOB}/curves/runs?token={embed}")[0] != 403
    assert ask(running, "GET", f"{JOB}/curves/runs?token=wrong")[0] == 403
    assert ask(running, "GET", f"{JOB}?token={embed}")[0] == 403
    assert ask(running, "GET", f"{JOB}/checkpoints?token={embed}")[0] == 403
    assert act(running, "cancel", embed)[0] == 403


def test_a_parameter_that_is_repeated_reaches_the_curves(running: Running) -> None:
    embed = auth.embed_token(KEY)
    address = f"{running.url}{JOB}/curves/embed.html?run=a,b&run=c&tag=%22x&token={embed}"
    with urllib.request.urlopen(address, timeout=LIMIT_S) as answer:
        page = answer.read().decode()
    query = f"run=a%2Cb&amp;run=c&amp;tag=%22x&amp;token={embed}"
    assert f'<script src="embed.js?{query}"></script>' in page


def test_only_a_token_that_may_act_acts(running: Running) -> None:
    good = auth.act_token(KEY, time.time() + 60)
    for token in ("", TOKEN, auth.act_token(KEY, time.time() - 1), auth.act_token(b"x" * 32, time.time() + 60)):
        assert act(running, "cancel", token)[0] == 403
    later = good.replace(good.split(".")[1], str(int(time.time()) + 9999))
    odd = ("act.x.y", "act.99999999999999999999.0", "act.²." + "0" * 40, f"{good}\ud800")
    for token in (later, good + "0", good[:-1], *odd):
        assert act(running, "cancel", token)[0] == 403
    assert act(running, "check", good) == (200, {})
    assert act(running, "check", good, method="POST") == (200, {})
    assert running.thread.is_alive()
    assert act(running, "cancel", good) == (200, {})
    running.thread.join(LIMIT_S)
    assert running.outcome.diagnostics.startswith("cancelled by")


def test_what_an_action_refuses(running: Running) -> None:
    good = auth.act_token(KEY, time.time() + 60)
    assert act(running, "nothing", good)[0] == 404
    assert act(running, "save", good)[0] == 409
    assert act(running, "save", good, output="x")[0] == 400
    assert ask(running, "PUT", f"{JOB}/actions/check", b"[]")[0] == 400
    assert ask(running, "PUT", f"{JOB}/actions/check", b"{")[0] == 400
    assert ask(running, "PUT", f"{JOB}/tasks", {"token": good})[0] == 405
    assert ask(running, "PUT", "/", {"token": good})[0] == 405
    assert ask(running, "DELETE", JOB)[0] == 405
    foreign = {"Origin": "http://evil.example"}
    assert ask(running, "PUT", f"{JOB}/actions/check", {"token": good}, **foreign)[0] == 403


def test_looking_changes_nothing(running: Running) -> None:
    good = auth.act_token(KEY, time.time() + 60)
    before = running.master.log.version
    for name in ("cancel", "save", "check"):
        assert ask(running, "GET", f"{JOB}/actions/{name}?token={TOKEN}&act={good}")[0] == 404
    for path in ("", "/tasks", "/timeline", "/events", "/checkpoints", "/curves/runs"):
        ask(running, "GET", f"{JOB}{path}?token={TOKEN}")
    assert running.master.log.version == before


def test_what_a_task_says_is_data_whatever_it_says(running: Running) -> None:
    say(running.executor(), 1, Phase.HELLO)
    exit = Exit("exit", 1, detail=HOSTILE, lines=(HOSTILE, "\x1b[31m\x00"))
    say(running.executor(), 2, Phase.ENDED, exit=exit)
    running.master.log.append(Noted(time.time(), HOSTILE))
    _, headers, job = ask(running, "GET", f"{JOB}?token={TOKEN}")
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "script-src" not in headers["Content-Security-Policy"]
    assert HOSTILE in [note["text"] for note in job["notes"]]


def test_the_page_itself_is_no_secret_and_runs_no_script_but_its_own(running: Running, tmp_path: Path) -> None:
    address = running.url.removeprefix("http://")
    for path, status in (("/", 200), ("/../../etc/passwd", 404), ("/assets/none.js", 404), ("/assets/../x", 404)):
        connection = http.client.HTTPConnection(address, timeout=LIMIT_S)
        connection.request("GET", path, headers={"Host": address})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        assert answer.status == status
        policy = answer.headers["Content-Security-Policy"]
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy


def test_sentences_are_in_the_language_that_is_asked_for(running: Running) -> None:
    running.master.apply(Noted(time.time(), message("no TensorBoard: {reason}", reason="no room")))
    english = look(running, "")
    chinese = look(running, "", **{"Accept-Language": "zh-CN,en;q=0.5"})
    assert english["notes"][-1]["text"] == "no TensorBoard: no room"
    assert chinese["notes"][-1]["text"] == "没有 TensorBoard：no room"
    assert look(running, "") == english, "the answers that are kept are kept by language"
    (record,) = [record for record in look(running, "/events")["events"] if record["kind"] == "Noted"]
    assert record["text"] == "no TensorBoard: no room"
    assert record["text_message"] == {"template": "no TensorBoard: {reason}", "values": {"reason": "no room"}}


def test_refusals_are_in_that_language_too(running: Running) -> None:
    status, headers, refused = ask(running, "GET", JOB, **{"Accept-Language": "zh"})
    assert status == 403
    assert refused["error"].startswith("需要访问链接：")
    assert refused["command"]
    assert headers["Vary"] == "Accept-Language"
