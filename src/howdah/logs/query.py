"""What a search of logs asks for and gives back: the query, the files, the matches. Standard library only."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from howdah.logs.levels import LEVELS
from howdah.spec.values import dataclass
from howdah.wire.helper_main import HelperReply

MOST_HITS = 2000


@dataclass(frozen=True)
class LogQuery:
    """Lines that hold `text` (a regular expression if `regex`), of a level, printed in a span of time (epoch seconds;
    lines whose time is not known are taken). At most `limit` of each stream, from its beginning on."""

    text: str = ""
    regex: bool = False
    level: str = ""
    since: float = 0.0
    until: float = float("inf")
    limit: int = 200

    @classmethod
    def from_parameters(cls, query: Mapping[str, str]) -> LogQuery:
        """From the query of `search`.

        Raises:
            QueryError: which parameter is wrong, and why.
        """
        limit = whole_number(query, "limit", 200)
        since, until = _moment(query, "since", 0.0), _moment(query, "until", math.inf)
        text, regex, level = query.get("text", ""), query.get("regex", "0") not in ("", "0"), query.get("level", "")
        if level and level not in LEVELS:
            raise QueryError("level", f"level is {level[:40]!r}, must be {' or '.join(LEVELS)}")
        if not text and not level:
            raise QueryError("text", "text or level is wanted")
        if regex:
            try:
                re.compile(text.encode())
            except re.error as error:
                raise QueryError("text", f"text is no regular expression: {error}") from None
        return cls(text, regex, level, since, until, max(1, min(limit, MOST_HITS)))


class QueryError(ValueError):
    """A parameter of a search is wrong; `name` is the parameter's, the message a sentence."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def whole_number(query: Mapping[str, str], name: str, default: int) -> int:
    """The query's whole number of this name.

    Raises:
        QueryError: it is none.
    """
    text = query.get(name) or str(default)
    try:
        return int(text)
    except ValueError:
        raise QueryError(name, f"{name} is {text[:40]!r}, must be a whole number") from None


def _moment(query: Mapping[str, str], name: str, default: float) -> float:
    text = query.get(name) or str(default)
    try:
        moment = float(text)
    except ValueError:
        moment = math.nan
    if math.isnan(moment):
        raise QueryError(name, f"{name} is {text[:40]!r}, must be epoch seconds")
    return moment


@dataclass(frozen=True)
class LogMatch:
    """A line: its number from 1 and offset in its stream, what is to be seen of it, and when it was printed."""

    task: str
    attempt: int
    stream: str
    offset: int
    line: int
    text: str
    level: str = ""
    time: float | None = None


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
    """Offset in the stream behind the file's last byte."""
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
    """What was found."""

    hits: tuple[Mapping[str, Any], ...] = ()
    """The fields of each `LogMatch`."""
    scanned_bytes: int = 0
    """How much was searched."""
    complete: bool = False
    """Everything was searched, and no limit cut the matches short."""
    problems: tuple[str, ...] = ()
    """Streams that could not be searched, and why."""
