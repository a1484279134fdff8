"""`howdah logs`: prints the output of tasks, byte for byte or chosen line by line."""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeVar

import click

from howdah.cli.followed_logs import FollowedLogs
from howdah.cli.i18n import _, examples, translate_stored
from howdah.cli.job_choice import choose_job, job_argument
from howdah.cli.terminal import coloured_task, shown_line, styled_heading
from howdah.client.follow import Follower, Update, fetch_update, settled_report
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, NotFound, SpecError, StagingError
from howdah.logs.archive import StreamKey, parse_heading
from howdah.logs.levels import Traceback
from howdah.logs.lines import MAX_PIECES, ArchivedLines, AttemptLines, LineFilter, LogLine, merge_by_time
from howdah.logs.query import tasks_of
from howdah.logs.store import PIECE_BYTES, LiveLogs
from howdah.logs.stream_index import BOTH, STREAMS
from howdah.spec import JobReport, State, TaskId
from howdah.spec.codec import to_json
from howdah.spec.events import Noted
from howdah.spec.units import seconds
from howdah.spec.values import dataclass
from howdah.spec.view import JobView
from howdah.wire.connection import WireError

T = TypeVar("T")
_Source = Callable[[Engine, JobReport, "LogSelection"], Iterator[T]]

ANSWER_S = 30.0
"""Limit in seconds for the answer of a master when its logs are not followed."""
TAIL_BYTES, LINE_BYTES = 64 << 10, 400
"""Bytes that are read of a stream if not all of it is wanted; and the assumed bytes of a line."""


@dataclass(frozen=True)
class LogSelection:
    """The output that is asked for: which lines of which tasks."""

    words: tuple[str, ...]
    """The tasks, roles and ranks as they were typed."""
    streams: tuple[str, ...]
    """The streams."""
    attempt: int | None
    """The attempt; 0: all; None: the present one of a running job, all of an ended one."""
    choice: LineFilter
    """The filter of lines."""
    merge: bool
    """Whether the lines of all tasks are merged by time."""
    follow: bool
    """Whether to go on until the job ends."""
    whole: bool
    """Whether all of a long log is printed."""
    last_bytes: int = TAIL_BYTES
    """The least bytes that are read of each stream of a running job, unless `whole` is true."""

    def tasks(self, view: JobView) -> list[TaskId]:
        """Return the tasks of the job that are asked for.

        Raises:
            InvalidRequest, NotFound: as `tasks_of` does.
        """
        return tasks_of(view, ",".join(self.words))

    @property
    def first_bytes(self) -> int:
        """Return how many bytes of a stream are read at first; 0: all."""
        sought = self.choice.pattern or self.choice.level or self.choice.since
        if self.whole or sought or (self.follow and not self.choice.tail):
            return 0
        return max(self.last_bytes, self.choice.tail * LINE_BYTES)


@click.command(
    epilog=examples(
        "howdah logs                        # of the last job",
        "howdah logs -f resnet worker:0     # by the job's name",
        "howdah logs 503d --level error     # by the end of its id",
        "howdah logs @-2 --merge --tail 50  # the job before the last",
    )
)
@job_argument()
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job ends.")
@click.option(
    "--stream",
    type=click.Choice(["stdout", "stderr", "both", ""]),
    default="",
    help="Only this stream; `both` merges the two.",
)
@click.option("--attempt", default="", metavar="N|all", help="Only attempt N, or all attempts.")
@click.option("--level", type=click.Choice(["error", "warning", ""]), default="", help="Only lines of this level.")
@click.option("--grep", default="", metavar="RE", help="Only lines with this regular expression.")
@click.option("--since", default="", metavar="TIME", help="Only lines since 10m ago, or since 2026-11-21T18:00.")
@click.option("--tail", type=click.IntRange(min=1), default=None, metavar="N", help="Only the last N lines.")
@click.option("--merge", is_flag=True, help="Merge the lines of all tasks, in the order of time.")
@click.option("--all", "whole", is_flag=True, help="From the beginning, not the last 64 KiB.")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per piece of output.")
def logs(
    job_id: str | None,
    tasks: tuple[str, ...],
    follow: bool,
    stream: str,
    attempt: str,
    level: str,
    grep: str,
    since: str,
    tail: int | None,
    merge: bool,
    whole: bool,
    profile: str,
    as_json: bool,
) -> None:
    """Print the logs of JOB_ID, or of tasks (worker:1), roles (worker) or ranks (worker:0-7) of it."""
    choice = LineFilter(level, _compile_pattern(grep), _parse_time(since, time.time()), tail or 0)
    streams = (stream,) if stream in STREAMS else STREAMS
    by_line = choice != LineFilter() or merge or stream == BOTH
    selection = LogSelection(tasks, streams, _parse_attempt(attempt), choice, merge, follow, whole)
    engine, job_id = choose_job(job_id, profile)
    if selection.attempt and selection.attempt > 1:
        selection = _with_container_number(selection, fetch_update(engine, job_id).view)
    if by_line:
        print_lines(_live_or_archived(engine, job_id, selection, _live_lines, _archived_lines), as_json)
    else:
        print_pieces(output_of(engine, job_id, selection), as_json)


def _tell_unread(reason: str) -> None:
    click.echo(f"howdah: {translate_stored(reason)}", err=True)


def output_of(
    engine: Engine, job_id: str, selection: LogSelection, report_unread: Callable[[str], object] = _tell_unread
) -> Iterator[tuple[str, bytes]]:
    """Yield the chosen output of a running or ended job, byte for byte, in pieces with the headings of their logs.
    `report_unread` is called with each reason for which some output of a running job can't be read, unless it is read
    again later."""
    read_live = partial(_live_pieces, report_unread=report_unread)
    return _live_or_archived(engine, job_id, selection, read_live, _archived_pieces)


def _live_or_archived(
    engine: Engine, job_id: str, selection: LogSelection, read_live: _Source[T], read_archived: _Source[T]
) -> Iterator[T]:
    """Yield the output of a running job; if the job has ended meanwhile and nothing came, yield the output that was
    kept."""
    report = settled_report(engine, job_id)
    if report.state is State.PENDING and not report.master:
        click.echo(_("{id} has not begun: {reason}", id=job_id, reason=translate_stored(report.diagnostics)), err=True)
        if not selection.follow:
            return
    if not report.state.ended:
        found = read_live(engine, report, selection)
        for first in found:
            yield first
            yield from found
            return
        report = settled_report(engine, job_id)
    if report.state.ended:
        yield from read_archived(engine, report, selection)


def _compile_pattern(text: str) -> re.Pattern[bytes] | None:
    try:
        return re.compile(os.fsencode(text)) if text else None
    except re.error as error:
        raise SpecError.at("--grep", f"{text!r} is not a regular expression: {error}") from None


def _parse_time(text: str, now: float) -> float:
    """Return the time of `text` in seconds since 1970; 0 for none. The text is a moment, or a duration back from
    now."""
    if not text:
        return 0.0
    try:
        ago = seconds(re.sub(r"(?<=\d)m$", "min", text))
        return ago if ago > now / 2 else now - ago
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise SpecError.at("--since", f"{text!r} is not a time: 10m, 2h, 2026-11-21T18:00") from None


def _parse_attempt(text: str) -> int | None:
    if text in ("", "all"):
        return 0 if text else None
    if not text.isdigit() or not int(text):
        raise SpecError.at("--attempt", f"{text!r} must be a number from 1, or all")
    return int(text)


def _with_container_number(selection: LogSelection, view: JobView) -> LogSelection:
    """Return the request with the number of the container, because several attempts of a task may have run in one
    container.

    Raises:
        SpecError: none of the tasks has had so many.
    """
    number = selection.attempt or 0
    tasks = list(selection.tasks(view)) if view.tasks else []
    had = {task: max(view.tasks[task].attempt, view.tasks[task].tries) for task in tasks}
    if not selection.follow and 0 < max(had.values(), default=0) < number:
        task = max(tasks, key=lambda each: had[each])
        raise SpecError.at("--attempt", f"is {number}, but the last attempt of {task} was {had[task]}")
    for task in tasks:
        one = view.tasks[task]
        if one.attempt < number <= one.tries:
            container = max((each.attempt for each in one.attempts if each.try_number <= number), default=one.attempt)
            said = _(
                "attempt {number} of {task} ran in the container of attempt {container}, and printed into its files",
                number=number,
                task=task,
                container=container,
            )
            click.echo(f"howdah: {said}", err=True)
            return replace(selection, attempt=container)
    return selection


# Line by line


def _archived_lines(engine: Engine, report: JobReport, selection: LogSelection) -> Iterator[LogLine]:
    view = fetch_update(engine, report.id).view
    with ArchivedLines(engine, report.id, selection.tasks(view)) as kept:
        attempts = [kept.streams(key, selection.streams) for key in kept.attempts(selection.attempt or 0)]
        if selection.merge:
            yield from selection.choice.select(merge_by_time(stream for streams in attempts for stream in streams))
            return
        for streams in attempts:
            yield from selection.choice.select(merge_by_time(streams))


def _live_lines(engine: Engine, job: JobReport, selection: LogSelection) -> Iterator[LogLine]:
    follower = Follower(engine, job.id)
    followed = FollowedLogs(follower, _tell_unread)
    attempts_read: dict[tuple[TaskId, int], AttemptLines] = {}
    present: dict[TaskId, int] = {}
    report = _reporting_once(selection, _tell_unread)
    choice, tracebacks = selection.choice, dict[StreamKey, Traceback]()
    for update in followed.updates(_answered_updates(follower, selection.follow)):
        fresh: list[Iterator[LogLine]] = []
        tasks = selection.tasks(update.view)
        at_once = MAX_PIECES if selection.follow or not selection.merge else MAX_PIECES // max(1, len(tasks))
        for task in tasks:
            for number in _attempts_to_read(update.view, task, selection.attempt, present):
                logs = followed.of(task, number)
                lines = attempts_read.setdefault(
                    (task, number), AttemptLines(logs, str(task), selection.streams, selection.first_bytes, at_once)
                )
                is_over = update.view.outcome is not None or number < update.view.tasks[task].attempt
                found = _chosen_lines(lines, number, choice, tracebacks, report, is_over or not selection.follow)
                if selection.merge:
                    fresh.append(found)  # read as it is printed, for it may be long
                else:
                    yield from deque(found, choice.tail) if choice.tail else found
        merged = merge_by_time(fresh)
        yield from deque(merged, choice.tail) if choice.tail else merged
        choice = choice._replace(tail=0)
        if not selection.follow:
            return


def _chosen_lines(
    lines: AttemptLines,
    number: int,
    choice: LineFilter,
    tracebacks: dict[StreamKey, Traceback],
    report_unread: Callable[[str], object],
    to_end: bool,
) -> Iterator[LogLine]:
    """Yield the new lines of an attempt that are chosen, as far as the master answers: a part of bounded size, or with
    `to_end` all lines."""
    has_more = True
    with _ignoring_silence(report_unread):
        while has_more:
            yield from choice.select(lines.read(number, last=to_end), tracebacks)
            has_more = to_end and lines.has_more


def _answered_updates(follower: Follower, follow: bool) -> Iterator[Update]:
    """Yield updates of a job whose master answers. Until it answers, messages about that are printed.

    Raises:
        EngineUnavailable: it does not answer within ANSWER_S, and the job is not followed.
        StagingError: as `_key_problems`.
    """
    until, reason = time.monotonic() + ANSWER_S, f"the master of {follower.job_id} does not answer"
    is_told = key_is_checked = False
    for update in follower.updates():
        if follower.master is not None and update.view.tasks:
            is_told = False
            yield update
            continue
        if follower.master is None and update.view.outcome is None:
            notes = [event.text for event in update.events if isinstance(event, Noted)]
            if update.report.master and not key_is_checked:
                key_is_checked, notes = True, [*notes, *_key_problems(follower, update.report, follow)]
            if notes and not is_told:
                is_told = True
                _tell_unread(notes[-1])
            reason = notes[-1] if notes else reason
        if not follow and update.view.outcome is None and time.monotonic() >= until:
            raise EngineUnavailable(reason)


def _key_problems(follower: Follower, report: JobReport, follow: bool) -> list[str]:
    """Return why the job's key can't be read; without it the master answers nothing.

    Raises:
        StagingError: it can't be read, and the job is not followed to its end, after which the engine has the logs.
    """
    try:
        follower.engine.job_key(report)
    except StagingError as error:
        if not follow:
            raise
        return [str(error)]
    return []


def _reporting_once(selection: LogSelection, report: Callable[[str], object]) -> Callable[[str], object]:
    """Return a function that reports each reason once. It reports none while the job is followed, because the log is
    read again then."""
    told: set[str] = set()

    def report_unread(reason: str) -> None:
        if not selection.follow and reason not in told:
            told.add(reason)
            report(reason)

    return report_unread


@contextlib.contextmanager
def _ignoring_silence(report_unread: Callable[[str], object]) -> Iterator[None]:
    """Go on when a log can't be read now, or when the master does not answer.

    Raises:
        NotFound: the master answers that there is no such log.
    """
    try:
        yield
    except WireError as error:
        if error.status in (400, 404):
            raise NotFound(str(error)) from None
        report_unread((error.reason.strip() if error.status else "") or str(error))


def _attempts_to_read(view: JobView, task: TaskId, attempt: int | None, present: dict[TaskId, int]) -> list[int]:
    """Return the attempts of a task that are to be read. `present` remembers the present attempt of the last reading:
    when another attempt has followed, the end of the earlier one is read, too. Each attempt has log files of its
    own."""
    if attempt:
        return [attempt]
    number, known = view.tasks[task].attempt, [one.attempt for one in view.tasks[task].attempts]
    before, present[task] = present.get(task, number), number
    earlier = [one for one in known if one != number and (attempt is not None or one == before)]
    return [*dict.fromkeys(earlier), number]


def print_lines(lines: Iterable[LogLine], as_json: bool) -> None:
    """Print one line each: the task, `|` for standard output or `!` for standard error, and the text."""
    is_terminal = sys.stdout.isatty()
    for line in lines:
        if as_json:
            told = {"task": line.task, "attempt": line.attempt, "stream": line.stream, "time": line.time or None}
            click.echo(to_json({**told, "text": line.text.decode("utf-8", "replace")}))
        else:
            task = coloured_task(TaskId.parse(line.task)) if is_terminal else line.task
            click.echo(f"{task} {'|' if line.stream == 'stdout' else '!'} {shown_line(line.text)}")


# Byte for byte


def _archived_pieces(engine: Engine, report: JobReport, selection: LogSelection) -> Iterator[tuple[str, bytes]]:
    stream = selection.streams[0] if len(selection.streams) == 1 else ""
    if not selection.words:
        yield from _pieces_of_attempt(engine.logs(report.id, None, stream), selection.attempt)
        return
    is_empty = True
    for task in _selected_tasks(engine, report, selection):
        for piece in _pieces_of_attempt(engine.logs(report.id, task, stream), selection.attempt):
            is_empty = False
            yield piece
    if is_empty and (view := fetch_update(engine, report.id).view).tasks:
        selection.tasks(view)  # raises an error if the job has no such task


def _selected_tasks(engine: Engine, report: JobReport, selection: LogSelection) -> Sequence[TaskId]:
    """Return a single task without looking it up: its logs may exist after the job's directory is gone."""
    if len(selection.words) == 1:
        try:
            return [TaskId.parse(selection.words[0])]
        except ValueError:
            pass
    return selection.tasks(fetch_update(engine, report.id).view)


def _pieces_of_attempt(pieces: Iterable[tuple[str, bytes]], attempt: int | None) -> Iterator[tuple[str, bytes]]:
    for heading, data in pieces:
        key = parse_heading(heading)
        if not attempt or (key and key.attempt == attempt):
            yield heading, data


def _live_pieces(
    engine: Engine, job: JobReport, selection: LogSelection, report_unread: Callable[[str], object]
) -> Iterator[tuple[str, bytes]]:
    """Yield the output through the master: the existing output, and with `follow` the later output."""
    offsets: dict[tuple[TaskId, int, str], int] = {}
    present: dict[TaskId, int] = {}
    follower = Follower(engine, job.id)
    followed = FollowedLogs(follower, _tell_unread)
    report = _reporting_once(selection, report_unread)
    for update in followed.updates(_answered_updates(follower, selection.follow)):
        for task in selection.tasks(update.view):
            for number in _attempts_to_read(update.view, task, selection.attempt, present):
                is_named = selection.attempt or number != present.get(task)
                heading = f"{task} attempt {number}" if selection.attempt is not None and is_named else str(task)
                for name in selection.streams:
                    key = (task, number, name)
                    offsets.setdefault(key, -selection.first_bytes)
                    for data in _new_pieces(followed.of(task, number), key, offsets, report):
                        yield f"{heading} {name}", data
        if not selection.follow:
            return


def _new_pieces(
    logs: LiveLogs,
    key: tuple[TaskId, int, str],
    offsets: dict[tuple[TaskId, int, str], int],
    report_unread: Callable[[str], object],
) -> Iterator[bytes]:
    """Yield the bytes from the offset up to the present end of the stream: a program may print faster than it is
    read."""
    stream, end = key[-1], math.inf
    while offsets[key] < end:
        data = b""
        with _ignoring_silence(report_unread):
            start, data = logs.read(stream, offsets[key], PIECE_BYTES)
        if not data:
            return
        end = min(end, logs.size(stream))
        offsets[key] = start + len(data)
        yield data


def print_pieces(pieces: Iterator[tuple[str, bytes]], as_json: bool) -> None:
    """Print pieces of output, each log under its heading."""
    heading, ended = "", True
    for name, data in pieces:
        if as_json:
            click.echo(to_json({"log": name, "text": data.decode("utf-8", "replace")}))
            continue
        if name != heading:
            heading = name
            click.echo(f"{'' if ended else chr(10)}{styled_heading(name)}")
        _write(data)
        ended = data.endswith(b"\n") or sys.stdout.isatty()


def _write(data: bytes) -> None:
    """Write to a terminal as readable text, to a file or pipe byte for byte."""
    if sys.stdout.isatty():
        for line in data.split(b"\n"):
            click.echo(shown_line(line))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
