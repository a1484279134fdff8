"""The timeline of a job: the phases of the job and of each attempt, and what happened when. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from howdah.api import schemas
from howdah.spec import State
from howdah.spec.attempt import AttemptView, JobMark
from howdah.spec.view import JobView, TaskView


def timeline(view: JobView) -> schemas.Timeline:
    """Return the whole timeline. A phase that still lasts has the end 0; `to` is the time of the latest event."""
    began = view.submission.time or view.started
    return {
        "from": min(began, view.started) if view.started else began,
        "to": view.finished or view.updated,
        "job": list(_phases(view)),
        "tasks": [_row(view, task, attempt) for task in view.tasks.values() for attempt in task.attempts],
        "marks": [_mark(mark) for mark in view.marks],
        "first_failure": _first_failure(view),
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
    latest = attempt is task.attempts[-1]
    failed = attempt.exit is not None and not attempt.stopped
    ended = State.SUCCEEDED if attempt.exit and attempt.exit.ok else State.FAILED if failed else State.STOPPED
    return {
        "task": str(task.id),
        "attempt": attempt.attempt,
        "spans": list(_spans(attempt, view.finished)),
        "exit": str(attempt.exit) if attempt.exit else "",
        "state": task.state.value if latest else ended.value,
    }


def _spans(attempt: AttemptView, finished: float) -> Iterator[schemas.Span]:
    """Yield the phases of an attempt. Each lasts until the next phase that was reached; all times are of the master's
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


def _first_failure(view: JobView) -> schemas.FirstFailure | None:
    """Return the failure that explains the others, if the outcome names one; else the earliest."""
    failures = [mark for mark in view.marks if mark.kind in ("failed", "lost")]
    first = view.outcome.first if view.outcome else None
    if first is not None and view.outcome is not None:
        latest = [mark.time for mark in failures if mark.task == first]
        text = str(view.outcome.exit) if view.outcome.exit else view.outcome.diagnostics
        return {"task": str(first), "time": latest[-1] if latest else view.finished, "text": text}
    if not failures:
        return None
    return {"task": str(failures[0].task), "time": failures[0].time, "text": failures[0].text}
