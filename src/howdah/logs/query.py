"""Values of a search of logs: the query, the tasks, the streams, the matches and the joined results. Standard library
only."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from howdah.errors import InvalidRequest, NotFound
from howdah.logs.levels import LEVELS
from howdah.logs.stream_index import BOTH, STREAMS
from howdah.spec.values import dataclass
from howdah.wire.helper_main import HelperReply

if TYPE_CHECKING:
    from howdah.spec import TaskId
    from howdah.spec.view import JobView

MAX_HITS = 2000
MAX_PROBLEMS = 20
_NAME_OF_TASKS = re.compile(r"[^:]*(:\d+(-\d*)?)?")


@dataclass(frozen=True)
class LogQuery:
    """Selects lines of logs."""

    text: str = ""
    """The text that a line holds."""
    regex: bool = False
    """`text` is a regular expression."""
    level: str = ""
    """Only lines of this level (`error`), or of this or a more severe level (`warning`)."""
    since: float = 0.0
    """Only lines that were printed at this time or later, in epoch seconds; lines without a known time match."""
    until: float = float("inf")
    """Only lines that were printed at this time or earlier."""
    limit: int = 200
    """The most lines of each stream, from its beginning on."""

    @classmethod
    def from_parameters(cls, query: Mapping[str, str]) -> LogQuery:
        """Return the query that the parameters of a `search` call describe.

        Raises:
            InvalidRequest: a parameter is malformed, or text and level are missing.
        """
        limit = whole_number(query, "limit", 200)
        since, until = epoch_seconds(query, "since", 0.0), epoch_seconds(query, "until", math.inf)
        text, regex, level = query.get("text", ""), query.get("regex", "0") not in ("", "0"), query.get("level", "")
        if level and level not in LEVELS:
            raise InvalidRequest(f"level is {level[:40]!r}, must be {' or '.join(LEVELS)}", "level")
        if not text and not level:
            raise InvalidRequest("text or level must be given", "text")
        if regex:
            try:
                re.compile(text.encode())
            except re.error as error:
                raise InvalidRequest(f"text is not a regular expression: {error}", "text") from None
        return cls(text, regex, level, since, until, max(1, min(limit, MAX_HITS)))


def whole_number(query: Mapping[str, str], name: str, default: int) -> int:
    """Return the query's whole number of this name.

    Raises:
        InvalidRequest: the value is not a whole number.
    """
    text = query.get(name) or str(default)
    try:
        return int(text)
    except ValueError:
        raise InvalidRequest(f"{name} is {text[:40]!r}, must be a whole number", name) from None


def epoch_seconds(query: Mapping[str, str], name: str, default: float) -> float:
    """Return the query's time of this name, in epoch seconds.

    Raises:
        InvalidRequest: the value is not a number.
    """
    text = query.get(name) or str(default)
    try:
        time = float(text)
    except ValueError:
        time = math.nan
    if math.isnan(time):
        raise InvalidRequest(f"{name} is {text[:40]!r}, must be epoch seconds", name)
    return time


def search_arguments(view: JobView, query: Mapping[str, str]) -> tuple[LogQuery, list[TaskId], int, str]:
    """Return the query, the tasks, the attempt and the stream that the parameters of a `search` call describe.

    Raises:
        InvalidRequest, NotFound: a parameter is wrong.
    """
    log_query, attempt = LogQuery.from_parameters(query), whole_number(query, "attempt", 0)
    return log_query, tasks_of(view, query.get("task", "")), attempt, stream_of(query, BOTH)


def stream_of(query: Mapping[str, str], default: str) -> str:
    """Return the stream that the query names.

    Raises:
        InvalidRequest: there is no such stream.
    """
    stream = query.get("stream") or default
    if stream not in (BOTH, *STREAMS):
        raise InvalidRequest(f"stream is {stream[:40]!r}, must be stdout, stderr or both", "stream")
    return stream


def tasks_of(view: JobView, text: str) -> list[TaskId]:
    """Return the tasks that `text` names, with commas between: a task, a role, or a range such as worker:0-7.

    Raises:
        InvalidRequest: a part of `text` is no name of tasks.
        NotFound: the job has no such task.
    """
    if text in ("", "*"):
        return list(view.tasks)
    found: dict[TaskId, None] = {}
    for word in text.split(","):
        chosen = [task for task in view.tasks if _matches(word, task)]
        if not chosen and not _NAME_OF_TASKS.fullmatch(word):
            raise InvalidRequest(f"{word[:80]!r} is not a task: write role:index, such as worker:0", "task")
        if not chosen:
            raise NotFound(f"the job has no task {word[:80]}", "task")
        found.update(dict.fromkeys(chosen))
    return list(found)


def _matches(word: str, task: TaskId) -> bool:
    role, _, ranks = word.partition(":")
    first, _, last = ranks.partition("-")
    if role != task.role or not ranks:
        return word == task.role
    return first.isdigit() and int(first) <= task.index <= int(last if last.isdigit() else first)


@dataclass(frozen=True)
class LogMatch:
    """A line that a search found."""

    task: str
    """The task."""
    attempt: int
    """Number of the attempt."""
    stream: str
    """`stdout` or `stderr`."""
    offset: int
    """Offset of the line in its stream."""
    line: int
    """Number of the line in its stream, from 1."""
    text: str
    """The line, or the part of a long line around the match."""
    level: str = ""
    """`error`, `warning` or ""."""
    time: float | None = None
    """When the line was printed, in epoch seconds; None if that is not known."""


@dataclass(frozen=True)
class SearchedStream:
    """One stream of one attempt that is searched: a file by its `path`, a page of a node, or an open `file`."""

    task: str
    """The task."""
    attempt: int
    """Number of the attempt."""
    stream: str
    """`stdout` or `stderr`."""
    path: str = ""
    """Path of the file that holds the stream."""
    url: str = ""
    """The NodeManager's page of the container's logs."""
    file: int = -1
    """Descriptor of an open file that holds bytes `start` to `end` of the stream."""
    start: int = 0
    """Offset in the stream of the file's first byte."""
    end: int = 0
    """Offset in the stream after the file's last byte."""
    lines: int = 0
    """Number of lines of the stream before `start`."""
    times: str = ""
    """The index of the attempt's streams (`howdah.logs.stream_index`), for an open file."""


@dataclass(frozen=True)
class LogSearchRequest:
    """Search streams (`howdah.logs.search`)."""

    files: tuple[SearchedStream, ...]
    """The streams."""
    query: LogQuery
    """The lines that are wanted."""


@dataclass(frozen=True)
class LogSearchReply(HelperReply):
    """The matches of one search."""

    hits: tuple[Mapping[str, Any], ...] = ()
    """The fields of each `LogMatch`."""
    scanned_bytes: int = 0
    """The number of bytes that were searched."""
    complete: bool = False
    """Whether everything was searched, and no limit cut the matches short."""
    problems: tuple[str, ...] = ()
    """Streams that could not be searched, and why."""


class SearchResults:
    """Joins the results of searches in several places; at most `limit` matches are kept, the earliest first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._hits: list[Mapping[str, Any]] = []
        self._scanned, self._complete = 0, True
        self._problems: list[str] = []

    def add(self, answer: Mapping[str, Any]) -> None:
        """Add the matches that were found in one place."""
        self._hits += answer.get("hits", ())
        self._scanned += int(answer.get("scanned_bytes", 0))
        self._complete = self._complete and bool(answer.get("complete"))
        for problem in (*answer.get("problems", ()), *filter(None, (answer.get("error"),))):
            self.add_problem(str(problem))

    def add_problem(self, problem: str) -> None:
        """Note that one place could not be searched."""
        self._complete = False
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)

    def answer(self, seconds: float) -> dict[str, Any]:
        """Return the answer of the API's `search`."""
        place = operator.itemgetter("task", "attempt", "stream", "offset")
        hits = sorted(self._hits, key=lambda hit: (hit["time"] or 0.0, *place(hit)))
        return {
            "hits": hits[: self._limit],
            "scanned_bytes": self._scanned,
            "seconds": round(seconds, 3),
            "complete": self._complete and len(hits) <= self._limit,
            "problems": self._problems,
        }
