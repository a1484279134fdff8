"""The timeline of a job: the phases of the job and of each try of a task, and what happened when. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from howdah.api import curve_schemas as schemas
from howdah.api.serializers import try_state
from howdah.spec import TaskId
from howdah.spec.attempt import AttemptView, JobMark
from howdah.spec.message import Sentence
from howdah.spec.view import JobView, TaskView


def timeline(view: JobView) -> schemas.Timeline:
    """Return the whole timeline. A phase that still lasts has the end 0; `to` is the time of the latest event."""
    began = view.submission.time or view.started
    first, last = _first_failure(view), _last_failure(view)
    return {
        "from": min(began, view.started) if view.started else began,
        "to": view.finished or view.updated,
        "job": list(_phases(view)),
        "tasks": [_row(view, task, attempt) for task in view.tasks.values() for attempt in task.attempts],
        "marks": [_mark(mark) for mark in view.marks],
        "first_failure": first,
        "last_failure": last if last != first else None,
    }


def _phases(view: JobView) -> Iterator[schemas.JobSpan]:
    """Yield the phases of the job: submitted, then forming and running for each time that all tasks began anew."""
    if view.submission.time and view.submission.time < view.started:
        yield {"phase": "submitted", "start": view.submission.time, "end": view.started}
    begins = [view.started, *(mark.time for mark in view.marks if mark.kind == "restarted" and mark.task is None)]
    for number, start in enumerate(begins):
        last = begins[number + 1] if number + 1 < len(begins) else view.finished
        formed = next((time for time in view.formed.values() if time >= start and (not last or time <= last)), 0.0)
        yield {"phase": "forming", "start": start, "end": formed or last}
        if formed:
            yield {"phase": "running", "start": formed, "end": last}


def _row(view: JobView, task: TaskView, attempt: AttemptView) -> schemas.TimelineRow:
    return {
        "task": str(task.id),
        "try_number": attempt.try_number,
        "attempt": attempt.attempt,
        "log_offset": attempt.log_offset,
        "spans": list(_spans(attempt, view.finished)),
        "exit": str(attempt.exit) if attempt.exit else "",
        "state": try_state(task, attempt).value,
    }


def _spans(attempt: AttemptView, finished: float) -> Iterator[schemas.Span]:
    """Yield the phases of a try. Each lasts until the next phase that was reached; all times are of the master's
    clock."""
    moments = [
        ("asked", attempt.asked),
        ("allocated", attempt.allocated),
        ("launched", attempt.launched),
        ("localising", attempt.greeted),
        ("joined", attempt.joined),
        ("running", attempt.running),
    ]
    reached = [(phase, time) for phase, time in moments if time]
    ends = [*(time for _, time in reached[1:]), attempt.finished or finished]
    for (phase, start), end in zip(reached, ends, strict=True):
        yield {"phase": phase, "start": start, "end": max(start, end) if end else 0.0}


def _mark(mark: JobMark) -> schemas.TimelineMoment:
    return {"time": mark.time, "kind": mark.kind, "task": str(mark.task) if mark.task else "", "text": mark.text}


def _first_failure(view: JobView) -> schemas.MarkedFailure | None:
    """Return the first failure after which something was started again, or which ended the job. A lost container
    explains the failures of others, even if these were seen earlier."""
    failures, restarted = list[JobMark](), False
    for mark in view.marks:
        if mark.kind in ("failed", "lost"):
            failures.append(mark)
        elif mark.kind == "restarted" and failures:
            restarted = True
            break
    ended = None if restarted else _last_failure(view)
    if ended is not None or not failures:
        return ended
    first = next((mark for mark in failures if mark.kind == "lost"), failures[0])
    return _failure(view, first.task, first.time, first.text)


def _last_failure(view: JobView) -> schemas.MarkedFailure | None:
    """Return the failure that ended the job, if its outcome names one."""
    outcome = view.outcome
    if outcome is None or outcome.first is None:
        return None
    times = [mark.time for mark in view.marks if mark.kind in ("failed", "lost") and mark.task == outcome.first]
    text = str(outcome.exit) if outcome.exit else outcome.diagnostics
    return _failure(view, outcome.first, times[-1] if times else view.finished, text)


def _failure(view: JobView, task: TaskId | None, time: float, text: Sentence) -> schemas.MarkedFailure:
    known = view.tasks.get(task) if task else None
    tries = [each.try_number for each in known.attempts if each.finished == time] if known else []
    return {"task": str(task), "try_number": tries[0] if tries else 0, "time": time, "text": text}
