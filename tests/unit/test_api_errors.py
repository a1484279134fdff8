"""Tests that the API answers each error with the HTTP status that docs/api.md promises."""

from __future__ import annotations

import json

import pytest

from howdah.api.errors import LinkNeeded, MethodNotAllowed, status_of
from howdah.api.http_server import Request
from howdah.api.router import error_response
from howdah.errors import (
    AnswerTimeout,
    Conflict,
    EngineUnavailable,
    InvalidRequest,
    JobEnded,
    JobNotFound,
    LimitExceeded,
    NoLongerThere,
    NotFound,
    NotPermitted,
    NotReady,
    RequestRefused,
    SpecError,
    StagingError,
)

REQUEST = Request("GET", "/", {}, b"", "127.0.0.1")


@pytest.mark.parametrize(
    ("error", "status", "exit_code"),
    [
        (InvalidRequest, 400, SpecError.exit_code),
        (NotPermitted, 403, StagingError.exit_code),
        (NotFound, 404, StagingError.exit_code),
        (MethodNotAllowed, 405, StagingError.exit_code),
        (JobNotFound, 404, StagingError.exit_code),
        (Conflict, 409, StagingError.exit_code),
        (JobEnded, 409, StagingError.exit_code),
        (NoLongerThere, 410, StagingError.exit_code),
        (LimitExceeded, 413, StagingError.exit_code),
        (NotReady, 503, EngineUnavailable.exit_code),
        (AnswerTimeout, 504, EngineUnavailable.exit_code),
    ],
)
def test_each_error_has_its_status_and_exit_code(error: type[RequestRefused], status: int, exit_code: int) -> None:
    assert status_of(error("why", "task")) == status
    assert error.exit_code == exit_code
    answer = error_response(error("why", "task"), REQUEST)
    assert (answer.status, json.loads(answer.body)) == (status, {"error": "why", "place": "task"})


def test_a_refusal_names_the_command_that_prints_a_link() -> None:
    answer = error_response(LinkNeeded("why", "howdah page"), REQUEST)
    assert answer.status == 403
    assert json.loads(answer.body) == {"error": "why", "place": "token", "command": "howdah page"}
