"""The HTTP status of every error that refuses a request, and the error that a status stands for on the caller's side.
Errors themselves know no status; only this package does."""

from __future__ import annotations

from howdah.api.sources import ApiError
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

_STATUSES: dict[type[RequestRefused], int] = {
    InvalidRequest: 400,
    NotPermitted: 403,
    NotFound: 404,
    Conflict: 409,
    NoLongerThere: 410,
    LimitExceeded: 413,
    NotReady: 503,
    AnswerTimeout: 504,
}


def status_of(error: RequestRefused) -> int:
    """Return the HTTP status that answers `error`: its own for an ApiError, else that of its nearest known class."""
    if isinstance(error, ApiError):
        return error.status
    return next((_STATUSES[cls] for cls in type(error).__mro__ if cls in _STATUSES), 400)


def refusal(status: int, text: str, place: str = "") -> RequestRefused:
    """Return the error that an answer with this HTTP status, from 401 to 499, stands for."""
    if status == 404 and place == "job":
        return JobNotFound(text, place)
    return next((cls for cls, known in _STATUSES.items() if known == status), RequestRefused)(text, place)
