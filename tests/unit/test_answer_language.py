"""Tests that the server renders the sentences of an answer in the language that a request asks for."""

from __future__ import annotations

from typing import Any

import pytest

from howdah.api import serializers
from howdah.api.answer_language import has_sentences, request_language, translate_answer
from howdah.api.http_server import Request
from howdah.api.timeline import timeline
from howdah.spec import Container, Exit, JobSpec, Role, TaskId
from howdah.spec.events import Ended, JobStarted, Launched, Noted
from howdah.spec.fold import fold
from howdah.spec.message import message
from howdah.spec.view import JobView

WORKER = TaskId("worker", 0)


def request(header: str | None) -> Request:
    return Request("GET", "/", {} if header is None else {"accept-language": header}, b"", "127.0.0.1")


@pytest.mark.parametrize(
    ("header", "language"),
    [
        (None, "en"),
        ("", "en"),
        ("zh", "zh"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB,en;q=0.9,zh-CN;q=0.8", "en"),
        ("ZH-hans", "zh"),
        ("fr, zh;q=0.5", "zh"),
        ("fr", "en"),
        ("zh;q=0", "en"),
        ("zh;q=x", "en"),
        (",;=,zh;q", "en"),
        ("*", "en"),
    ],
)
def test_the_preferred_language_is_taken(header: str | None, language: str) -> None:
    assert request_language(request(header)) == language


def view() -> JobView:
    job = JobSpec(name="exit code 3", roles={"worker": Role(command="exit code 3")})
    detail = message("killed by {signal}", signal="SIGKILL (9)")
    return fold(
        [
            JobStarted(1.0, "job-1", "local", "ada", job),
            Launched(2.0, WORKER, 1, Container("c1", "n1", "worker")),
            Ended(3.0, WORKER, 1, 1, Exit("signal", signal=9, detail=detail), "n1"),
            Noted(4.0, message("no TensorBoard: {reason}", reason="no room")),
            Noted(5.0, "memory limits are not enforced: no cgroup"),
        ]
    )


def test_sentences_of_a_job_are_chinese_and_names_stay() -> None:
    english = serializers.job(view(), {}, 9.0)
    chinese = translate_answer(english, "Job", "zh")
    assert [note["text"] for note in chinese["notes"]] == ["没有 TensorBoard：no room", "内存限制无效：no cgroup"]
    assert {name for name, value in chinese.items() if value != english[name]} == {"notes"}  # type: ignore[literal-required]
    assert translate_answer(english, "Job", "en") is english


def test_tasks_and_timeline_are_too() -> None:
    (task,) = translate_answer({"tasks": serializers.tasks(view())}, "Tasks", "zh")["tasks"]
    assert (task["exit"], task["attempts"][0]["exit"]) == ("被信号 SIGKILL (9) 终止",) * 2
    found: Any = translate_answer(timeline(view()), "Timeline", "zh")
    assert found["tasks"][0]["exit"] == found["first_failure"]["text"] == "被信号 SIGKILL (9) 终止"


def test_an_answer_without_sentences_is_left_alone() -> None:
    answer = {"offset": 0, "text": "exit code 3"}
    assert not has_sentences("Log")
    assert translate_answer(answer, "Log", "zh") is answer
    assert translate_answer({"version": 3, "unchanged": True}, "Jobs", "zh") == {"version": 3, "unchanged": True}
    assert not has_sentences("text/plain")
