"""Filters of job lists, for `howdah list` and `howdah.Client.jobs`."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from howdah.errors import Mistake, SpecError
from howdah.spec import JobReport
from howdah.spec.task import JOB_STATES
from howdah.spec.validation import nearest
from howdah.spec.values import dataclass

OF_REPORTS = ("user", "queue", "name", "state", "text", "since", "until", "limit")
"""Filters of the fields that every engine reports."""
MOMENTS = {"since": "since", "until": "until", "from": "since", "to": "until"}
"""Filters that are moments, each with the field of JobFilter that it sets; docs/api.md calls them `from` and `to`."""
OF_SERVERS = ("framework", "sort")
"""Filters that only a history server has."""


@dataclass(frozen=True)
class JobFilter:
    """Chooses jobs; a field that is "" or 0 is not checked."""

    user: str = ""
    """The users, with commas between."""
    state: str = ""
    """The states, with commas between."""
    name: str = ""
    """A text that the job's name must contain."""
    text: str = ""
    """Words that must all occur in the job's name, id or diagnostics."""
    since: float = 0.0
    """The earliest start, in epoch seconds."""
    queue: str = ""
    """The queues, with commas between."""
    until: float = 0.0
    """The latest start, in epoch seconds."""
    tag: str = ""
    """A tag. `fits` does not check it, because a report has the tags that people have added only afterwards."""

    def fits(self, report: JobReport) -> bool:
        """Return whether a job is chosen, by the same rules as the history server's list."""
        said = f"{report.name} {report.id} {report.diagnostics}".casefold()
        return (
            (not self.user or report.user in self.user.split(","))
            and (not self.queue or report.queue in self.queue.split(","))
            and (not self.state or report.state.value in self.state.split(","))
            and self.name.casefold() in report.name.casefold()
            and all(word in said for word in self.text.casefold().split())
            and start_time(report) >= self.since
            and (not self.until or start_time(report) <= self.until)
        )

    @property
    def query(self) -> dict[str, str]:
        """Return the same filter as parameters of the call `jobs` in docs/api.md."""
        words = {"user": self.user, "queue": self.queue, "state": self.state, "name": self.name, "text": self.text}
        words["tag"] = self.tag
        moments = {"from": self.since, "to": self.until}
        return {name: value for name, value in words.items() if value} | {
            name: str(value) for name, value in moments.items() if value
        }


def start_time(report: JobReport) -> float:
    """Return when the job started, or else when it was submitted."""
    return report.started or report.submitted


def read_filters(filters: Mapping[str, Any], known: tuple[str, ...]) -> tuple[JobFilter, int | None]:
    """Check the filters that a program gives. Return them, and the limit of the number of jobs (None: no limit).

    Raises:
        SpecError: filters are wrong, or none of `known`; the error has all mistakes.
    """
    mistakes = [_unknown(name, known) for name in filters if name not in known and name not in MOMENTS]
    moments = {"since": 0.0, "until": 0.0}
    for name in [name for name in MOMENTS if name in filters]:
        try:
            moment = float(filters[name])
        except (TypeError, ValueError):
            moment = math.nan
        if not math.isfinite(moment):
            mistakes.append(Mistake(name, f"is {filters[name]!r}, must be epoch seconds"))
        moments[MOMENTS[name]] = moment
    limit = filters.get("limit")
    if limit is not None and (isinstance(limit, bool) or not str(limit).isdecimal() or int(limit) < 1):
        mistakes.append(Mistake("limit", f"is {limit!r}, must be a whole number, at least 1"))
    state = ",".join(word.strip().upper() for word in _text(filters.get("state", "")).split(",") if word.strip())
    states = [one.value for one in JOB_STATES]
    for word in state.split(",") if state else ():
        if word not in states:
            mistakes.append(Mistake("state", f"is {word!r}, must be one of {', '.join(states)}", nearest(word, states)))
    if mistakes:
        raise SpecError(mistakes)
    texts = {name: _text(filters.get(name, "")) for name in ("user", "queue", "name", "text")}
    wanted = JobFilter(**texts, state=state, since=moments["since"], until=moments["until"])
    return wanted, int(limit) if limit is not None else None


def _text(value: Any) -> str:
    """Return the text of a filter: the value of a State, or several texts with commas between them."""
    if isinstance(value, Collection) and not isinstance(value, str):
        return ",".join(map(_text, value))
    return str(getattr(value, "value", value))


def _unknown(name: str, known: tuple[str, ...]) -> Mistake:
    if name in OF_SERVERS:
        return Mistake(name, "is a filter of history servers: make a Client of the address of one")
    return Mistake(name, f"is not a filter here, known are {', '.join(known)}", nearest(name, known))
