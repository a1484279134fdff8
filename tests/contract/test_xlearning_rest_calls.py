"""Tests XLearning's REST calls over a real socket: their answers, and who may change a job by them."""

from __future__ import annotations

import http.client
import json
import time
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from test_master_api import KEY, LIMIT_S, Running, running, say

from howdah.wire import auth
from howdah.wire.messages import Phase

__all__ = ["running"]  # a fixture
TOKEN = auth.view_token(KEY)


def ask(running: Running, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str, bytes]:
    """Status, content type and body."""
    address = running.url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=LIMIT_S)
    data = None if body is None else json.dumps(body)
    connection.request(method, path, data, {"Host": address, **headers})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, answer.headers["Content-Type"], text


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_signal_that_ends_programs_ends_the_job(running: Running, method: str) -> None:
    good = auth.act_token(KEY, time.time() + 60)
    for token in ("", TOKEN, auth.act_token(KEY, time.time() - 1)):
        assert ask(running, method, "/ws/app/signal/9", {"token": token})[0] == 403
    assert ask(running, method, "/ws/app/signal/9", {"token": good}, Origin="http://evil.example")[0] == 403
    assert ask(running, method, "/ws/app/signal/9", {"token": good}, Host="evil.example")[0] == 403
    assert ask(running, "DELETE", "/ws/app/signal/9", {"token": good})[0] == 405
    assert running.thread.is_alive()
    assert ask(running, method, "/ws/app/signal/9", {"token": good}) == (200, "text/plain; charset=utf-8", b"SUCCEED")
    running.thread.join(LIMIT_S)
    assert running.outcome.diagnostics.startswith("cancelled by")


def test_what_cannot_be_changed_is_said(running: Running) -> None:
    good = auth.act_token(KEY, time.time() + 60)
    for path, status, words in (
        ("/ws/app/signal/10", 409, b"2, 9, 15 end the job"),
        ("/ws/app/signal/" + "9" * 6000, 409, b"is sent to no program"),
        ("/ws/app/savemodel", 409, b"no directory to copy"),
        ("/ws/app", 405, b"nothing is changed by POST /ws/app"),
    ):
        found, _, text = ask(running, "POST", path, {"token": good})
        assert found == status
        assert words in text


def test_json_text_and_xml(running: Running) -> None:
    say(running.executor(), 1, Phase.HELLO)
    _, kind, text = ask(running, "GET", f"/ws/containers?token={TOKEN}")
    (container,) = json.loads(text)["containerInfos"]
    assert kind == "application/json"
    wanted = {"Accept": "application/xml"}
    _, kind, text = ask(running, "GET", f"/ws/containers?token={TOKEN}", **wanted)
    root = ET.fromstring(text)
    assert (kind, root.tag) == ("application/xml", "containerInfo")
    assert [child.findtext("cid") for child in root.findall("containerInfos")] == [container["cid"]]
    _, _, text = ask(running, "GET", f"/ws/app?token={TOKEN}", **wanted)
    root = ET.fromstring(text)
    assert (root.tag, root.findtext("appId"), root.findtext("workerMem")) == ("info", "job-1", "1.0 GB")
    _, _, text = ask(running, "GET", f"/ws/containers/{container['cid']}?token={TOKEN}", **wanted)
    assert ET.fromstring(text).findtext("cid") == container["cid"]
    assert ask(running, "GET", f"/ws/app/evaluator?token={TOKEN}", **wanted) == (200, "text/plain; charset=utf-8", b"")
    assert ask(running, "GET", "/ws/app", **wanted)[0] == 403
