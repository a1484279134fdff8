"""This module maps every error that refuses a request to its HTTP status, and a status back to an error for callers.
The errors themselves know no status; only this package does."""

from __future__ import annotations

from howdah.errors import (
    AnswerTimeout,
    Conflict,
    InvalidRequest,
    JobNotFound,
    LimitExceeded,
    NoLongerThere,
    NotFound,
    NotPermitted,
    NotReady,
    RequestRefused,
)


class MethodNotAllowed(RequestRefused):
    """The path does not accept the HTTP method of the request."""


class LinkNeeded(NotPermitted):
    """The request needs an access link to the page, which `command` prints."""

    def __init__(self, text: str, command: str) -> None:
        super().__init__(text, "token")
        self.command = command


_STATUSES: dict[type[RequestRefused], int] = {
    InvalidRequest: 400,
    NotPermitted: 403,
    NotFound: 404,
    MethodNotAllowed: 405,
    Conflict: 409,
    NoLongerThere: 410,
    LimitExceeded: 413,
    NotReady: 503,
    AnswerTimeout: 504,
}


def status_of(error: RequestRefused) -> int:
    """Return the HTTP status that answers `error`: that of its nearest class in the table, else 400."""
    return next((_STATUSES[cls] for cls in type(error).__mro__ if cls in _STATUSES), 400)


def error_for_status(status: int, text: str, place: str = "") -> RequestRefused:
    """Return the error for an answer with this HTTP status, which is from 401 to 499."""
    if status == 404 and place == "job":
        return JobNotFound(text, place)
    return next((cls for cls, known in _STATUSES.items() if known == status), RequestRefused)(text, place)
