"""This module defines every error that a user can meet. The tree is split by who must act.

HowdahError
├── SpecError            the user edits the job: one `Mistake` per thing that is wrong, all at once
├── StagingError         a file or directory is missing, forbidden, full, or in the way
├── EngineUnavailable    the cluster does not answer: try again, or correct the address
├── EngineRejected       the cluster answers no: unknown queue, too large a request, no permission
├── RequestRefused       a request about a job cannot be answered: whoever asked corrects the request, or asks again
│   ├── InvalidRequest   a value in the request is malformed
│   ├── NotPermitted     whoever asks may not do this
│   ├── NotFound         nothing has the name that the request gives
│   │   └── JobNotFound  no job has this id
│   ├── Conflict         the request contradicts the present state of the job
│   │   └── JobEnded     the job has ended, and the request needs a running job
│   ├── NoLongerThere    the thing existed, and is gone
│   ├── LimitExceeded    the request asks for more than a documented limit
│   ├── NotReady         the answer is not known yet: ask again
│   └── AnswerTimeout    the answer did not come in time: ask again
└── JobFailed            the job ran and failed: look at the task that the message names
    └── JobCancelled     a user cancelled the job

A message names the place, the value, what is allowed and what to do. Lower libraries' errors are mapped
where they enter howdah and nowhere else; anything that is not a HowdahError is a bug and keeps its traceback.
No error here knows an HTTP status: `howdah.api.errors` maps a RequestRefused to one.
A HowdahError that only the code of one subject raises and handles stands there: `howdah.engines.AttemptOver` goes from
an allocator to the master, `howdah.master.owned_file.LogOwnerChanged` ends a master that another has replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Mapping, Optional, Sequence

__all__ = [
    "AnswerTimeout",
    "Conflict",
    "EngineRejected",
    "EngineUnavailable",
    "HowdahError",
    "InvalidRequest",
    "JobCancelled",
    "JobEnded",
    "JobFailed",
    "JobNotFound",
    "LimitExceeded",
    "Mistake",
    "NoLongerThere",
    "NotFound",
    "NotPermitted",
    "NotReady",
    "RequestRefused",
    "SpecError",
    "StagingError",
]


class HowdahError(Exception):
    """The base of all errors that are shown to a user as one line, without a traceback."""

    exit_code = 70
    """The command line's documented exit status (docs/exit-codes.md)."""


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong with a job."""

    place: str
    """The path into the spec: `roles.worker.replicas`; "" for all of it."""
    problem: str
    """What is wrong there, and what is allowed."""
    nearest: Optional[str] = None
    """The closest valid name, for a misspelt one."""
    origin: Optional[str] = None
    """The words that the user typed (`--worker-num`, `job.yaml:12`), where they are known."""

    def __str__(self) -> str:
        hint = f" (did you mean {self.nearest!r}?)" if self.nearest else ""
        origin = f" ({self.origin})" if self.origin and self.place else ""
        return f"{self.place or self.origin or ''}: {self.problem}{hint}{origin}"

    def with_origin(self, origins: Mapping[str, str]) -> Mistake:
        """Return the mistake with the user's own words for its place, or for the place that contains it."""
        place = self.place
        while place and place not in origins:
            place = place.rpartition(".")[0]
        return replace(self, origin=origins[place] if place else None)


class SpecError(HowdahError):
    """The job description is wrong. `mistakes` holds all mistakes, in reading order."""

    exit_code = 64

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__("\n".join(str(mistake) for mistake in mistakes))
        self.mistakes = tuple(mistakes)

    @classmethod
    def at(cls, place: str, problem: str, nearest: Optional[str] = None) -> SpecError:
        """Return a SpecError of a single mistake."""
        return cls([Mistake(place, problem, nearest)])


class StagingError(HowdahError):
    """A file could not be read, written, found or moved."""

    exit_code = 66


class EngineUnavailable(HowdahError):
    """The engine does not answer; the message says where, for how long, and which setting names it."""

    exit_code = 69


class EngineRejected(HowdahError):
    """The engine refuses the job or the call."""

    exit_code = 77


class RequestRefused(HowdahError):
    """A request about a job cannot be answered. `place` is the parameter that is wrong, "" for none."""

    exit_code = 66

    def __init__(self, text: str, place: str = "") -> None:
        super().__init__(text)
        self.place = place


class InvalidRequest(RequestRefused):
    """A value in the request is malformed, or is none of the values that are allowed."""

    exit_code = 64


class NotPermitted(RequestRefused):
    """The caller is not permitted to do this."""


class NotFound(RequestRefused):
    """Nothing has the name that the request gives: no such task, attempt or action."""


class JobNotFound(NotFound):
    """No job has this id on the engine or in the directory that was asked."""


class Conflict(RequestRefused):
    """The request contradicts the present state of the job."""


class JobEnded(Conflict):
    """The job has ended, and the request needs a running job."""


class NoLongerThere(RequestRefused):
    """The thing that the request names existed once, and is gone."""


class LimitExceeded(RequestRefused):
    """The request asks for more than a documented limit allows."""


class NotReady(RequestRefused):
    """The answer is not known yet, or cannot be given at the moment: ask again."""

    exit_code = 69


class AnswerTimeout(RequestRefused):
    """The answer did not come in time: ask again."""

    exit_code = 69


class JobFailed(HowdahError):
    """The job ended without success; the message is its diagnostics."""

    exit_code = 1


class JobCancelled(JobFailed):
    """A user cancelled the job."""

    exit_code = 2
