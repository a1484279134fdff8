"""Following a job from outside: from its master while that lives, from its log afterwards.

A master that does not answer is not the end of a job: the engine is asked, and says what became of it.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import field

from howdah.client.job_end import report_of, wait_for_end
from howdah.client.master_client import MasterClient, link_to, recorded_events, recorded_log
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, HowdahError, StagingError
from howdah.logs.stream_index import STREAMS
from howdah.spec import JobReport, Outcome, State, TaskId, chief
from howdah.spec.events import AllocationLost, Event, JobFinished, Launched, Noted, TookOver, Used
from howdah.spec.fold import fold, fold_recorded
from howdah.spec.values import dataclass
from howdah.spec.view import JobView
from howdah.wire.connection import WireError

MOST_CHUNKS = 8
FIRST_LOOK_S, LAST_LOOK_S = 0.015, 1.0
LOOK_SHARE = 0.05
"""Pauses grow with what was waited already: a whole job of a second must not fit between two looks."""


@dataclass
class Update:
    """What is new: events in order, the view after them, log bytes by task and stream, the engine's word so far."""

    view: JobView
    report: JobReport
    events: list[Event] = field(default_factory=list)
    logs: list[tuple[TaskId, str, bytes]] = field(default_factory=list)


def look(engine: Engine, job_id: str) -> Update:
    """The job as it is now.

    Raises:
        JobNotFound: there is no such job. EngineUnavailable: its engine does not answer.
    """
    return next(Follower(engine, job_id).updates(wait_s=0.0))


def settled(engine: Engine, job_id: str) -> JobReport:
    """The engine's word on a job; of one that its master has ended, which an engine hears a little later, its last.

    Raises:
        JobNotFound: there is no such job. EngineUnavailable: its engine does not answer.
    """
    report = report_of(engine, job_id)
    if report.state.ended or look(engine, job_id).view.outcome is None:
        return report
    return wait_for_end(engine, job_id) or report


class Follower:
    """Follows one job; `log_tasks` says whose output is wanted, too: `all`, `chief`, a role, a task, or "" for none.

    An engine that does not answer (it restarts, say) is asked again for `patience_s`.
    """

    def __init__(self, engine: Engine, job_id: str, log_tasks: str = "", patience_s: float = 0.0) -> None:
        self.engine, self.job_id, self.log_tasks, self.patience_s = engine, job_id, log_tasks, patience_s
        self.view = JobView(id=job_id)
        self.link: MasterClient | None = None
        self._since, self._followed, self._shown_until = 0, "", 0.0
        self._offsets: dict[tuple[TaskId, str], int] = {}
        self._attempts: dict[TaskId, int] = {}
        self._lost: set[tuple[TaskId, str]] = set()
        self._silent_since = self._engine_silent_since = 0.0
        self._known = JobReport(job_id, "", State.PENDING, engine.name)

    def updates(self, wait_s: float = 1.0) -> Iterator[Update]:
        """Updates until the job has ended, at least one a `wait_s`; the last one's view has an outcome.

        Raises:
            EngineUnavailable: the engine itself does not answer.
        """
        try:
            yield from self._updates(wait_s)
        finally:
            self._unlink()

    def _updates(self, wait_s: float) -> Iterator[Update]:
        began = time.monotonic()
        while True:
            try:
                report = self._report()
            except EngineUnavailable as error:
                yield self._engine_unanswered(error)
                continue
            if report.state.ended:
                yield self._ending(report)
                return
            self.link = self.link or self._connect(report)
            if self.link is None:
                if report.master and self._finished(report):  # it has forgotten its key, and is about to leave
                    yield self._ending(report)
                    return
                yield Update(self.view, report)
                time.sleep(min(FIRST_LOOK_S + LOOK_SHARE * (time.monotonic() - began), LAST_LOOK_S))
                continue
            yield from self._live(report, wait_s)
            if self.view.outcome is not None:
                return
            began = time.monotonic()

    def _report(self) -> JobReport:
        self._known = report_of(self.engine, self.job_id)
        self._engine_silent_since = 0.0
        return self._known

    def _engine_unanswered(self, error: EngineUnavailable) -> Update:
        now, notes = time.time(), list[Event]()
        if not self._engine_silent_since:
            self._engine_silent_since = now
            notes.append(Noted(now, f"{error}; asking again for {self.patience_s:.0f} s"))
        if now - self._engine_silent_since >= self.patience_s:
            raise error
        time.sleep(LAST_LOOK_S)
        return Update(self.view, self._known, notes)

    def _connect(self, report: JobReport) -> MasterClient | None:
        try:
            link = link_to(report)
        except StagingError:
            return None  # another's job, or a directory that is gone: the engine's word is all there is
        if link is not None and link.url != self._followed:
            if self._followed:  # another master took over, and may not know all that the one before it told
                self.view, self._since = JobView(id=self.job_id), 0
            self._followed = link.url
        return link

    def _live(self, report: JobReport, wait_s: float) -> Iterator[Update]:
        """Updates from the master until it ends or stops answering."""
        assert self.link is not None
        wait = 0.0
        while True:
            try:
                news = self.link.events(self._since, wait)
                self._silent_since = 0.0
            except WireError as error:
                yield self._unanswered(report, error)
                return
            known, self._since, wait = self._since, news.next, wait_s
            fold([*news.events, *news.usage], self.view)
            for event in news.events:
                if isinstance(event, Launched) and event.attempt > self._attempts.get(event.task, 0):
                    self._attempts[event.task] = event.attempt
                    for stream in STREAMS:  # another attempt prints to files of its own
                        self._offsets.pop((event.task, stream), None)
                        self._lost.discard((event.task, stream))
            fresh = news.events if known else self._since_takeover(news.events)
            self._shown_until = max((event.time for event in fresh), default=self._shown_until)
            yield Update(self.view, report, fresh, self._new_logs())
            if self.view.outcome is not None:
                last = self._new_logs()
                lost = [stream for stream in self._wanted() if stream in self._lost]
                yield Update(self.view, report, [], last + self._kept_logs(lost))
                return

    def _since_takeover(self, events: list[Event]) -> list[Event]:
        """What came before the present master has been shown, or will be found in the log; but the one before may have
        ended before it could tell why."""
        begun = [number for number, event in enumerate(events) if isinstance(event, TookOver)]
        if not begun:
            return events
        why = events[begun[-1] - 1 : begun[-1]]
        untold = [event for event in why if isinstance(event, AllocationLost) and event.time > self._shown_until]
        return untold + events[begun[-1] :]

    def _unanswered(self, report: JobReport, error: WireError) -> Update:
        self._unlink()
        now = time.time()
        notes: list[Event] = []
        if not self._silent_since:
            self._silent_since = now
            if self._finished(report):  # an engine needs a moment to say so itself
                return self._ending(report)
        elif now - self._silent_since > 5.0:
            notes = [Noted(now, f"the master has not answered for {now - self._silent_since:.0f} s: {error}")]
            time.sleep(LAST_LOOK_S)
        time.sleep(0.1)
        return Update(self.view, report, notes)

    def _unlink(self) -> None:
        if self.link is not None:
            self.link.close()
        self.link = None

    def _new_logs(self) -> list[tuple[TaskId, str, bytes]]:
        """What wanted tasks wrote since the last time; a task whose executor does not answer is passed over."""
        found: list[tuple[TaskId, str, bytes]] = []
        for task, stream in self._wanted():
            found += [(task, stream, data) for data in self._new_bytes(task, stream)]
        return found

    def _wanted(self) -> list[tuple[TaskId, str]]:
        if self.log_tasks == "all":
            chosen = list(self.view.tasks)
        elif self.log_tasks == "chief":
            chosen = [chief(self.view.job)] if self.view.job else []
        else:
            chosen = [task for task in self.view.tasks if self.log_tasks in (str(task), task.role)]
        return [(task, stream) for task in chosen if self.view.tasks[task].started for stream in STREAMS]

    def _new_bytes(self, task: TaskId, stream: str) -> Iterator[bytes]:
        assert self.link is not None
        for _ in range(MOST_CHUNKS):
            try:
                chunk = self.link.log(task, stream, self._offsets.get((task, stream), 0))
            except WireError:
                self._lost.add((task, stream))
                return
            self._lost.discard((task, stream))
            if not chunk.text:
                return
            self._offsets[task, stream] = chunk.offset + len(chunk.text)
            yield chunk.text.encode("latin-1")

    def _kept_logs(self, streams: list[tuple[TaskId, str]]) -> list[tuple[TaskId, str, bytes]]:
        """What was written to `streams` and not read while their tasks lived, as far as the engine has it by now."""
        gone = [task for task in self.view.tasks.values() if task.exit and task.exit.cause in ("lost", "withdrawn")]
        if not streams or gone:
            return []  # the engine would wait for a node that does not come back
        found: list[tuple[TaskId, str, bytes]] = []
        with contextlib.suppress(HowdahError):
            wait_for_end(self.engine, self.job_id)
        for task, stream in streams:
            with contextlib.suppress(HowdahError):
                found += [(task, stream, data) for data in self._kept_bytes(task, stream)]
        return found

    def _kept_bytes(self, task: TaskId, stream: str) -> Iterator[bytes]:
        """Of the present attempt; the engine has those before it, too."""
        attempt = self.view.tasks[task].attempt
        read = self._offsets.get((task, stream), 0) if self._attempts.get(task) == attempt else 0
        heading = f"{task} attempt {attempt} {stream}"
        kept = self.engine.logs(self.job_id, task, stream)
        return itertools.islice(_after(read, (data for name, data in kept if name == heading)), MOST_CHUNKS)

    def _finished(self, report: JobReport) -> bool:
        with contextlib.suppress(HowdahError):
            return any(isinstance(event, JobFinished) for event in recorded_events(report))
        return False

    def _ending(self, report: JobReport) -> Update:
        """The whole of an ended job; where its log lacks the end (a killed master), the engine's word is the end."""
        try:
            log = list(recorded_log(report))
        except StagingError:
            log = []
        if not any(isinstance(event, JobFinished) for event in log):
            log.append(JobFinished(report.finished or time.time(), Outcome(report.state, report.diagnostics)))
        self.view = fold_recorded(log, JobView(id=self.job_id))
        events = [event for event in log if event is not None]
        numbered = [event for event in events if not isinstance(event, Used)]
        return Update(self.view, report, numbered[self._since :], self._kept_logs(self._wanted()))


def _after(offset: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
    for data in pieces:
        if rest := data[offset:]:
            yield rest
        offset = max(0, offset - len(data))
