"""Following a job from outside: through its master while the master runs, from the event log afterwards.

The rule: a master that does not answer is not the end of the job. The engine decides whether the job has ended.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from howdah.api.recorded_log import LEFT_OUT
from howdah.client.job_end import report_of, wait_for_end
from howdah.client.master_client import MasterClient, connect
from howdah.client.recorded_events import has_end, recorded_log
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, HowdahError, StagingError
from howdah.logs.stream_index import STREAMS
from howdah.spec import JobReport, Outcome, State, TaskId, chief
from howdah.spec.events import AllocationLost, Ended, Event, JobFinished, Launched, Measured, Noted, TookOver, Used
from howdah.spec.fold import fold, fold_recorded
from howdah.spec.message import Sentence
from howdah.spec.values import dataclass
from howdah.spec.view import JobView
from howdah.wire.connection import WireError

PATIENCE_S = 300.0
"""Seconds for which a cluster may not answer before a running job is given up."""
MAX_CHUNKS = 8
"""Pieces of one stream that are read for one update."""
MIN_PAUSE_S, MAX_PAUSE_S = 0.015, 1.0
FIRST_REASONS_S, REASONS_EVERY_S = 4.0, 10.0
"""Seconds for which a job waits for its master before the engine is asked why, and between two such questions."""
PAUSE_SHARE, CHECK_SHARE = 0.05, 0.1
"""Pauses before the master is known grow with the time waited, because a job of one second must not fit between two
checks. After a short while a check takes at most a tenth of the time: it may be a command that asks the controller of a
whole cluster."""


@dataclass
class Update:
    """The news of a followed job."""

    view: JobView
    """The view with these events."""
    report: JobReport
    """The engine's latest report."""
    events: list[Event] = field(default_factory=list)
    """The new events, in order."""
    logs: list[tuple[TaskId, str, bytes]] = field(default_factory=list)
    """The new bytes of logs, by task and stream."""
    reasons: tuple[Sentence, ...] = ()
    """Why the job waits for its master, as far as the engine has been asked."""


def fetch_update(engine: Engine, job_id: str) -> Update:
    """Return the job as it is now.

    Raises:
        JobNotFound: there is no such job. EngineUnavailable: its engine does not answer.
    """
    return next(Follower(engine, job_id).updates(wait_s=0.0))


def settled_report(engine: Engine, job_id: str) -> JobReport:
    """Return the engine's report on a job. If the master has ended the job, which the engine notices a little later,
    wait for the engine's last report.

    Raises:
        JobNotFound: there is no such job. EngineUnavailable: its engine does not answer.
    """
    report = report_of(engine, job_id)
    if report.state.ended or fetch_update(engine, job_id).view.outcome is None:
        return report
    return wait_for_end(engine, job_id) or report


class Follower:
    """Follows one job. `log_tasks` names the tasks whose logs are followed, too: `all`, `chief`, a role, a task, or ""
    for none.

    An engine that does not answer, for example because it restarts, is asked again for `retry_s` seconds.
    """

    def __init__(self, engine: Engine, job_id: str, log_tasks: str = "", retry_s: float = 0.0) -> None:
        self.engine, self.job_id, self.log_tasks, self.retry_s = engine, job_id, log_tasks, retry_s
        self.view = JobView(id=job_id)
        self.master: MasterClient | None = None
        self.job_key: bytes | None = None
        """The job's key, once it has been read: with it the master can be called even while the key can't be read
        again."""
        self._since, self._master_url, self._shown_until = 0, "", 0.0
        self._offsets: dict[tuple[TaskId, str], int] = {}
        self._attempts: dict[TaskId, int] = {}
        self._unread_streams: set[tuple[TaskId, str]] = set()
        self._silent_since = self._engine_silent_since = 0.0
        self._reasons_at = FIRST_REASONS_S
        self._last_report = JobReport(job_id, "", State.PENDING, engine.name)

    def updates(self, wait_s: float = 1.0) -> Iterator[Update]:
        """Yield updates until the job has ended, at least one every `wait_s` seconds; the last view has an outcome.

        Raises:
            EngineUnavailable: the engine does not answer.
        """
        try:
            yield from self._poll_updates(wait_s)
        finally:
            self._disconnect()

    def _poll_updates(self, wait_s: float) -> Iterator[Update]:
        began = time.monotonic()
        while True:
            asked = time.monotonic()
            try:
                report = self._report()
                check_s = time.monotonic() - asked
                if not report.state.ended:
                    self.master = self.master or self._connect(report)
            except EngineUnavailable as error:
                yield self._engine_silent(error)
                continue
            self._engine_silent_since = 0.0
            if report.state.ended:
                yield from self._final_updates(report)
                return
            if self.master is None:
                if report.master and self._log_has_end(report):  # the master has removed the key, and is about to exit
                    yield from self._final_updates(report)
                    return
                yield Update(self.view, report, reasons=self._why_no_master(time.monotonic() - began))
                waited_s = time.monotonic() - began
                least_s = min(check_s / CHECK_SHARE, MIN_PAUSE_S + waited_s)
                time.sleep(min(max(MIN_PAUSE_S + PAUSE_SHARE * waited_s, least_s), MAX_PAUSE_S))
                continue
            yield from self._updates_from_master(report, wait_s)
            if self.view.outcome is not None:
                return
            began, self._reasons_at = time.monotonic(), FIRST_REASONS_S

    def _why_no_master(self, waited_s: float) -> tuple[Sentence, ...]:
        """Return why the job has no master after this time; () if no reason is known."""
        if waited_s < self._reasons_at:
            return ()
        self._reasons_at = waited_s + REASONS_EVERY_S
        try:
            return tuple(each.sentence for each in self.engine.pending_reasons(self.job_id, None, {}))
        except HowdahError:
            return ()

    def _report(self) -> JobReport:
        self._last_report = report_of(self.engine, self.job_id)
        return self._last_report

    def latest_report(self) -> JobReport:
        """Return the engine's report on the job, the last one if the engine does not answer."""
        try:
            return report_of(self.engine, self.job_id)
        except EngineUnavailable:
            return self._last_report

    def _engine_silent(self, error: EngineUnavailable) -> Update:
        now, notes = time.time(), list[Event]()
        if not self._engine_silent_since:
            self._engine_silent_since = now
            notes.append(Noted(now, f"{error}; asking again for {self.retry_s:.0f} s"))
        if now - self._engine_silent_since >= self.retry_s:
            raise error
        time.sleep(MAX_PAUSE_S)
        return Update(self.view, self._last_report, notes)

    def _connect(self, report: JobReport) -> MasterClient | None:
        try:
            link = connect(self.engine, report)
        except StagingError:
            return None  # another user's job, or its directory is gone: only the engine's report is left
        if link is not None:
            self.job_key = link.job_key
        if link is not None and link.url != self._master_url:
            if self._master_url:  # the new master may lack events that the previous one reported
                self.view, self._since = JobView(id=self.job_id), 0
            self._master_url = link.url
        return link

    def _updates_from_master(self, report: JobReport, wait_s: float) -> Iterator[Update]:
        """Yield updates from the master until the job ends or the master stops answering."""
        assert self.master is not None
        wait = 0.0
        while True:
            try:
                news = self.master.events(self._since, wait)
                self._silent_since = 0.0
            except WireError as error:
                yield from self._master_silent(report, error)
                return
            first, self._since, wait = self._since == 0, news.next, wait_s
            fold([*news.events, *news.usage], self.view)
            for event in news.events:
                if isinstance(event, Launched) and event.attempt > self._attempts.get(event.task, 0):
                    self._attempts[event.task] = event.attempt
                    for stream in STREAMS:  # each attempt has log files of its own
                        self._offsets.pop((event.task, stream), None)
                        self._unread_streams.discard((event.task, stream))
            fresh = self._since_takeover(news.events) if first else news.events
            self._shown_until = max((event.time for event in fresh), default=self._shown_until)
            # Print all output of a program before its end: the program may be far ahead of the reader.
            ended = {event.task for event in fresh if isinstance(event, Ended)} & self._ended_tasks()
            yield from self._updates_of_logs(report, [each for each in self._chosen_streams() if each[0] in ended])
            yield Update(self.view, report, fresh, self._new_logs(self._chosen_streams()))
            if self.view.outcome is not None:
                yield from self._updates_of_logs(report, self._chosen_streams())
                lost = [stream for stream in self._chosen_streams() if stream in self._unread_streams]
                yield from self._updates_of_archive(report, lost)
                yield Update(self.view, report)
                return

    def _since_takeover(self, events: list[Event]) -> list[Event]:
        """Leave out the events before the present master: they have been shown, or are found in the log later. The
        reason why the previous master ended is kept, if that master could not report it itself."""
        takeovers = [number for number, event in enumerate(events) if isinstance(event, TookOver)]
        if not takeovers:
            return events
        last = takeovers[-1]
        reason = [event for event in events[last - 1 : last] if isinstance(event, AllocationLost)]
        return [event for event in reason if event.time > self._shown_until] + events[last:]

    def _master_silent(self, report: JobReport, error: WireError) -> Iterator[Update]:
        self._disconnect()
        now = time.time()
        notes: list[Event] = []
        if not self._silent_since:
            self._silent_since = now
            if self._log_has_end(report):  # the engine reports the end a moment later
                yield from self._final_updates(report)
                return
        elif now - self._silent_since > 5.0:
            notes = [Noted(now, f"the master has not answered for {now - self._silent_since:.0f} s: {error}")]
            time.sleep(MAX_PAUSE_S)
        time.sleep(0.1)
        yield Update(self.view, report, notes)

    def _disconnect(self) -> None:
        if self.master is not None:
            self.master.close()
        self.master = None

    def _ended_tasks(self) -> set[TaskId]:
        """Return the tasks whose programs print no more. A task that was started again is not among them."""
        return {task.id for task in self.view.tasks.values() if task.state.ended}

    def _updates_of_logs(self, report: JobReport, streams: Sequence[tuple[TaskId, str]]) -> Iterator[Update]:
        """Yield updates with all that was printed to streams of tasks that have ended, a bounded part in each."""
        while found := self._new_logs(streams):
            yield Update(self.view, report, [], found)

    def _new_logs(self, streams: Sequence[tuple[TaskId, str]]) -> list[tuple[TaskId, str, bytes]]:
        """Return what was printed to these streams since the last call, a bounded part of it; silent executors are
        skipped."""
        found: list[tuple[TaskId, str, bytes]] = []
        for task, stream in streams:
            found += [(task, stream, data) for data in self._new_bytes(task, stream)]
        return found

    def _chosen_streams(self) -> list[tuple[TaskId, str]]:
        if self.log_tasks == "all":
            chosen = list(self.view.tasks)
        elif self.log_tasks == "chief":
            chosen = [chief(self.view.job)] if self.view.job else []
        else:
            chosen = [task for task in self.view.tasks if self.log_tasks in (str(task), task.role)]
        return [(task, stream) for task in chosen if self.view.tasks[task].started for stream in STREAMS]

    def _new_bytes(self, task: TaskId, stream: str) -> Iterator[bytes]:
        assert self.master is not None
        for _ in range(MAX_CHUNKS):
            try:
                chunk = self.master.log(task, stream, self._offsets.get((task, stream), 0))
            except WireError:
                self._unread_streams.add((task, stream))
                return
            self._unread_streams.discard((task, stream))
            if not chunk.text:
                return
            self._offsets[task, stream] = chunk.offset + len(chunk.text)
            yield chunk.text.encode("latin-1")

    def _updates_of_archive(self, report: JobReport, streams: Sequence[tuple[TaskId, str]]) -> Iterator[Update]:
        """Yield updates with the output of `streams` that was not read while the tasks ran, as far as the engine has it
        by now."""
        gone = [task for task in self.view.tasks.values() if task.exit and task.exit.cause in ("lost", "withdrawn")]
        if not streams or gone:
            return  # the engine would wait for a node that may never return
        with contextlib.suppress(HowdahError):
            wait_for_end(self.engine, self.job_id)
        for task, stream in streams:
            with contextlib.suppress(HowdahError):
                for data in self._archived_bytes(task, stream):
                    yield Update(self.view, report, [], [(task, stream, data)])

    def _archived_bytes(self, task: TaskId, stream: str) -> Iterator[bytes]:
        """Yield the unread bytes of the present attempt; the engine also has the earlier attempts."""
        attempt = self.view.tasks[task].attempt
        read = self._offsets.get((task, stream), 0) if self._attempts.get(task) == attempt else 0
        heading = f"{task} attempt {attempt} {stream}"
        pieces = self.engine.logs(self.job_id, task, stream)
        return _skip_bytes(read, (data for name, data in pieces if name == heading))

    def _log_has_end(self, report: JobReport) -> bool:
        with contextlib.suppress(HowdahError):
            return has_end(report)
        return False

    def _final_updates(self, report: JobReport) -> Iterator[Update]:
        """Yield the last updates of an ended job. If its log has no end, because the master was killed, the engine's
        report counts as the end."""
        new: list[Event] = []
        try:
            self.view = fold_recorded(self._collect_new(recorded_log(report), new), JobView(id=self.job_id))
        except (StagingError, EngineUnavailable):  # the engine says how the job has ended, whatever its log would add
            self.view, new = JobView(id=self.job_id), []
        if self.view.outcome is None:
            new.append(JobFinished(report.finished or time.time(), Outcome(report.state, report.diagnostics)))
            fold(new[-1:], self.view)
        streams, ends = self._chosen_streams(), 0
        if streams:
            ends = next((number for number, event in enumerate(new) if isinstance(event, Ended)), len(new))
            yield Update(self.view, report, new[:ends])
            yield from self._updates_of_archive(report, streams)
        yield Update(self.view, report, new[ends:])

    def _collect_new(self, log: Iterable[Event | None], new: list[Event]) -> Iterator[Event | None]:
        """Yield the events of a log, and append to `new` the events that the master has not reported, and in any case
        the end. Samples have no number, as in the master's answers. The number of events that are missing in the log is
        not known, so all events after a gap count as new."""
        number = 0
        for event in log:
            if event is not None and not isinstance(event, (Used, Measured)):
                number = max(number, self._since) if event == LEFT_OUT else number
                if number >= self._since or isinstance(event, JobFinished):
                    new.append(event)
                number += 1
            yield event


def _skip_bytes(offset: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
    for data in pieces:
        if rest := data[offset:]:
            yield rest
        offset = max(0, offset - len(data))
