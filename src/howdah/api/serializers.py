"""Pure functions that turn a job's view into JSON; they are the same for a running job and for an ended one."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from howdah.api.gpu_hours import gpu_hours
from howdah.api.hints import ResourceHint, hints
from howdah.spec import Exit, JobSpec, State, TaskId, redaction
from howdah.spec.advice import advice
from howdah.spec.attempt import AttemptView
from howdah.spec.codec import encode
from howdah.spec.eta import eta
from howdah.spec.event_lines import read_record
from howdah.spec.event_sentences import detailed_sentence, sentence
from howdah.spec.events import BoardChanged, Waiting
from howdah.spec.job_file_keys import job_file_record
from howdah.spec.links import resolve_links
from howdah.spec.tracebacks import exception_line, user_frames
from howdah.spec.tracker_runs import tracker_pages, tracker_run
from howdah.spec.view import JobView, SnapshotView, TaskView

if TYPE_CHECKING:
    from howdah.api import schemas

_NOTES = ("note", "restarted", "takeover")
MAX_TRACKER_RUNS = 100
"""The most tracked runs in a job's answer, because an open page requests it every two seconds."""


def job(view: JobView, can: Mapping[str, bool], now: float, tensorboard_url: str = "") -> schemas.Job:
    """Return the job itself, without what looks like a secret; `can` are the actions that are possible now, and
    `tensorboard_url` is the address of its TensorBoard."""
    spec, note = view.job, view.submission
    left = eta(view, now)
    return {
        "id": view.id,
        "name": spec.name if spec else "",
        "user": view.user,
        "queue": spec.queue if spec else "",
        "engine": view.engine,
        "framework": spec.framework if spec else "",
        "state": view.state.value,
        "epoch": view.epoch,
        "host": view.host,
        "python": view.python,
        "progress": round(view.progress, 4),
        "eta_s": None if left is None else round(left),
        "asked": note.time or view.started,
        "started": view.started,
        "running": view.running,
        "finished": view.finished,
        "gpu_hours": round(gpu_hours(view, now), 4),
        "diagnostics": view.outcome.diagnostics if view.outcome else "",
        "failure": failure(view),
        "waiting": _wait(view.waiting),
        "stacks": list(view.stacks),
        "resumed": view.resumed,
        "outputs": list(view.outputs),
        "links": list(_links(view, tensorboard_url)),
        "tracker_runs": list(itertools.islice(tracker_runs(view), MAX_TRACKER_RUNS)),
        "tracker_run_count": sum(1 for task in view.tasks.values() for _ in filter(web, task.tracker_runs)),
        "notes": [{"time": mark.time, "text": mark.text} for mark in view.marks if mark.kind in _NOTES],
        "saves": [_snapshot_row(save) for save in view.snapshots],
        "tensorboard_ended": _tensorboard_end(view.tensorboard),
        "can": dict(can),
        "submitted": {
            "yaml": redaction.lines(note.text),
            "file": note.file,
            "overrides": dict(redaction.record(dict(note.overrides))),
        },
        "spec": mask_spec(spec) if spec else {},
        "resolved": redaction.record(job_file_record(spec)) if spec else {},
        "captured": {
            "git_commit": note.git_commit,
            "git_dirty": note.git_dirty,
            "packages": dict(note.packages),
            "command": redaction.words(note.command),
            "client": note.client,
            "user": note.user,
            "submitted_at": note.time,
            "variables": redaction.variables(spec.env) if spec else {},
        },
        "roles": list(_roles(view)),
        "hints": [_hint(hint) for hint in hints(view)],
        "labels": dict(spec.labels) if spec else {},
        "tags": list(spec.tags) if spec else [],
    }


def _hint(hint: ResourceHint) -> schemas.Hint:
    role = "" if ":" in hint.of else hint.of
    task = hint.of if ":" in hint.of else ""
    return {"task": task, "role": role, "text": hint.text, "template": hint.template, "values": hint.values}


def mask_spec(spec: JobSpec) -> dict[str, Any]:
    """Return the spec as JSON, without what looks like a secret in its commands and variables."""
    return dict(redaction.record(encode(spec)))


def masked_record(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an event as JSON, without what looks like a secret in the spec and in the notes of the submission."""
    if record.get("kind") != "JobStarted":
        return record
    shown: dict[str, Any] = redaction.record(record)
    note = shown.get("submission")
    if isinstance(note, dict) and isinstance(note.get("text"), str):
        note["text"] = redaction.lines(note["text"])
    return shown


def event_sentence(record: Mapping[str, Any]) -> str:
    """Return a sentence about an event of the log; "" for a sample of usage or metrics, and for an event that cannot be
    read."""
    event = read_record(record)
    return detailed_sentence(event) if event is not None else ""


def failure(view: JobView) -> schemas.Failure | None:
    """Return the task whose failure decided the outcome, with its last lines; None if the job has not failed."""
    outcome = view.outcome
    if outcome is None or outcome.state is not State.FAILED or outcome.first is None:
        return None
    task = view.tasks.get(outcome.first)
    exit = outcome.exit
    lines = list(exit.lines) if exit else []
    failed = _failed_try(task, exit) if task else None
    return {
        "task": str(outcome.first),
        "try_number": failed.try_number if failed else 0,
        "attempt": failed.attempt if failed else 0,
        "log_end": _log_end(task, failed) if task and failed else None,
        "node": ((failed and failed.node) or task.node or task.host) if task else "",
        "exit": str(exit) if exit else "",
        "exception": _exception(exit) if exit else "",
        "advice": advice(exit.cause) if exit else "",
        "lines": lines,
        "user_lines": user_frames(lines),
    }


def _failed_try(task: TaskView, exit: Exit | None) -> AttemptView | None:
    """Return the latest try that ended with this exit, because another try may have begun after it. If no such try is
    known, return the latest try."""
    ended = (attempt for attempt in reversed(task.attempts) if exit is not None and attempt.exit == exit)
    return next(ended, task.attempts[-1] if task.attempts else None)


def _log_end(task: TaskView, attempt: AttemptView) -> int | None:
    """Return where the output of the next try in the same container begins."""
    later = [each for each in task.attempts if each.attempt == attempt.attempt and each.try_number > attempt.try_number]
    return later[0].log_offset if later else None


def _exception(exit: Exit) -> str:
    """Return the exception that the sentence about the end names; logs of earlier versions have it only in its last
    lines."""
    return exit.exception or (exception_line(exit.lines, exit.code) if exit.cause == "exit" else "")


def _wait(wait: Waiting | None) -> schemas.Wait | None:
    if wait is None:
        return None
    return {"since": wait.since, "missing": dict(wait.missing), "reasons": list(wait.reasons)}


def _tensorboard_end(change: BoardChanged) -> schemas.Note | None:
    if change.state != "ended":
        return None
    return {"time": change.time, "text": sentence(change)}


def _snapshot_row(save: SnapshotView) -> schemas.SnapshotRow:
    return cast("schemas.SnapshotRow", {**asdict(save), "state": save.state.value, "skipped": list(save.skipped)})


def _links(view: JobView, tensorboard_url: str) -> Iterator[schemas.Link]:
    """Yield only addresses that a browser may follow: others would run as script."""
    if tensorboard_url:
        yield {"name": "TensorBoard", "url": tensorboard_url, "kind": "tensorboard"}
    links = resolve_links(view.job.links, view.tasks) if view.job else {}
    for name, url in links.items():
        if web(url):
            yield {"name": name, "url": url, "kind": "user"}

    pages: dict[str, str] = {}
    if spec := view.job:
        for role in spec.roles.values():
            pages = {**tracker_pages({**spec.env, **role.env}, view.id), **pages}
    for name, url in pages.items():
        yield {"name": name, "url": url, "kind": "tracker"}


def tracker_runs(view: JobView) -> Iterator[schemas.TrackedRun]:
    """Yield the runs of experiment trackers that programs have printed, with their tasks."""
    for task in view.tasks.values():
        for run in map(tracker_run, filter(web, task.tracker_runs)):
            yield {"task": str(task.id), "tracker": run.tracker, "run": run.run, "url": run.url}


def web(url: str) -> str:
    """Return `url` if it leads to a web page, else ""."""
    return url if url.startswith(("http://", "https://")) else ""


def _roles(view: JobView) -> Iterator[schemas.RoleRow]:
    counts = Counter((id.role, task.state) for id, task in view.tasks.items())
    for name, role in (view.job.roles if view.job else {}).items():
        yield {
            "name": name,
            "replicas": role.replicas,
            "running": counts[name, State.RUNNING],
            "succeeded": counts[name, State.SUCCEEDED],
            "failed": counts[name, State.FAILED],
            "pending": counts[name, State.PENDING],
            "cancelled": counts[name, State.CANCELLED],
            "stopped": counts[name, State.STOPPED],
            "resources": resources(view, name),
        }


def resources(view: JobView, role: str) -> dict[str, Any]:
    """Return the resources of one container of the role."""
    return asdict(view.job.roles[role].resources) if view.job else {}


def ranks(view: JobView) -> dict[TaskId, int]:
    """Return the rank of each task in the whole job; spares have none."""
    return {id: rank for rank, id in enumerate(id for id in view.tasks if view.takes_part(id))}


def tasks(view: JobView) -> list[schemas.Task]:
    """Return all tasks, in order of rank."""
    rank_of = ranks(view)
    return [_task(task, rank_of.get(task.id)) for task in view.tasks.values()]


def _task(task: TaskView, rank: int | None) -> schemas.Task:
    usage = task.usage
    memory = [gpu.memory_mib for gpu in usage.gpus if gpu.memory_mib is not None]
    return {
        "task": str(task.id),
        "role": task.id.role,
        "rank": rank,
        "state": task.state.value,
        "phase": task.phase,
        "attempt": task.attempt,
        "tries": task.tries,
        "container": task.container,
        "node": task.node,
        "host": task.host,
        "pid": task.pid,
        "python": task.python,
        "program_python": task.program,
        "gpus": [gpu.id for gpu in usage.gpus],
        "ports": dict(task.ports),
        "started": task.started,
        "finished": task.finished,
        "progress": usage.progress,
        "memory_mib": round(usage.memory_mib, 1),
        "peak_mib": round(usage.peak_mib, 1),
        "cpu": round(usage.cpu, 3),
        "gpu": usage.gpu_mean,
        "gpu_memory_mib": sum(memory) if memory else None,
        "read_mib": usage.read_mib,
        "written_mib": usage.written_mib,
        "received_mib": usage.received_mib,
        "sent_mib": usage.sent_mib,
        "data_bytes": task.data_bytes,
        "data_total_bytes": task.data_total_bytes,
        "metrics": {name: points[-1].value for name, points in task.metrics.items() if points},
        "exit": str(task.exit) if task.exit else "",
        "log_url": web(task.log_url),
        "straggler": task.straggler,
        "notice": task.notice,
        "attempts": [_attempt(task, attempt) for attempt in task.attempts],
    }


def try_state(task: TaskView, attempt: AttemptView) -> State:
    """Return the state of a try; the latest try has the state of its task."""
    if attempt is task.attempts[-1]:
        return task.state
    if attempt.exit is None or attempt.stopped:
        return State.STOPPED
    return State.SUCCEEDED if attempt.exit.ok else State.FAILED


def _attempt(task: TaskView, attempt: AttemptView) -> schemas.Attempt:
    return {
        "try_number": attempt.try_number,
        "attempt": attempt.attempt,
        "container": attempt.container,
        "node": attempt.node,
        "started": attempt.running or attempt.launched,
        "finished": attempt.finished,
        "exit": str(attempt.exit) if attempt.exit else "",
        "state": try_state(task, attempt).value,
        "log_url": web(attempt.log_url),
        "log_offset": attempt.log_offset,
    }
