"""Tests the cookie that a browser gets for its link's token: who gets it, where it counts, what it allows."""

from __future__ import annotations

import time
from typing import Any

import pytest
from test_api import JOB, TOKEN, ask
from test_master_api import KEY, Running, running

from howdah.wire import auth

__all__ = ["running"]  # a fixture
SESSION = "/api/v1/session"


def opened(running: Running) -> tuple[str, str]:
    """The path that was given, and the cookie as a browser sends it back."""
    status, headers, answer = ask(running, "PUT", SESSION, {"token": TOKEN})
    assert status == 200
    return answer["path"], headers["Set-Cookie"].partition(";")[0]


def test_the_token_is_exchanged_for_a_cookie_of_one_path(running: Running) -> None:
    _, headers, answer = ask(running, "PUT", SESSION, {"token": TOKEN})
    value, *attributes = headers["Set-Cookie"].split("; ")
    assert set(attributes) >= {f"Path={answer['path']}", "HttpOnly", "SameSite=Strict"}
    assert TOKEN not in value
    assert len(answer["path"]) > 16, "nobody guesses it"
    for name in ("", "tasks", "curves/runs"):
        below = f"{answer['path'].rstrip('/')}{JOB}/{name}".rstrip("/")
        assert ask(running, "GET", below)[0] == 403
        assert ask(running, "GET", below, Cookie=f"other=1; {value}")[0] == 200


@pytest.mark.parametrize(
    "token",
    ["", "wrong", auth.embed_token(KEY), auth.act_token(KEY, time.time() + 60), "\x00ÿ"],
    ids=["empty", "wrong", "of an embedded chart", "of an action", "not ASCII"],  # the same in every process of the run
)
def test_nothing_else_is_exchanged(running: Running, token: str) -> None:
    status, headers, answer = ask(running, "PUT", SESSION, {"token": token})
    assert (status, answer["place"]) == (403, "token")
    assert headers["Set-Cookie"] is None
    assert ask(running, "GET", f"{SESSION}?token={TOKEN}")[0] == 200, "looking gives no cookie"
    assert ask(running, "PUT", SESSION, {"token": TOKEN}, Origin="http://evil.example")[0] == 403


def test_the_page_lies_below_the_path_as_well(running: Running) -> None:
    path, cookie = opened(running)
    assert ask(running, "PUT", f"{path}api/v1/session", {"token": TOKEN})[2] == {"path": path}
    assert ask(running, "GET", f"{path}api/v1/session", Cookie=cookie)[2] == {"path": path, "token": TOKEN}
    assert ask(running, "GET", f"{path}api/v1/server", Cookie=cookie)[0] == 200
    assert running.plain("GET", f"/0000000000000000{JOB}", Cookie=cookie)[0] == 404


def test_a_page_of_another_port_rides_on_no_cookie(running: Running) -> None:
    """Ports of one host are one site, so `SameSite` alone would let it."""
    path, cookie = opened(running)
    below = f"{path.rstrip('/')}{JOB}"
    for site, status in (("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)):
        assert ask(running, "GET", below, Cookie=cookie, **{"Sec-Fetch-Site": site})[0] == status
    assert ask(running, "GET", below, Cookie=cookie, Origin="http://127.0.0.1:1")[0] == 403


def test_the_cookie_changes_nothing(running: Running) -> None:
    path, cookie = opened(running)
    below = f"{path.rstrip('/')}{JOB}/actions/cancel"
    words: tuple[dict[str, Any], ...] = ({}, {"token": cookie.partition("=")[2]}, {"token": TOKEN})
    for body in words:
        assert ask(running, "PUT", below, body, Cookie=cookie)[0] == 403
    assert running.thread.is_alive()


def test_whoever_lacks_a_link_is_told_the_command_that_prints_one(running: Running) -> None:
    _, _, answer = ask(running, "GET", JOB)
    assert answer == {
        "error": "you need an access link: run `howdah page ID` and open what it prints",
        "place": "token",
        "command": "howdah page ID",
    }
