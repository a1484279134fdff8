"""The summary of a job for the list of jobs: built from the lines of its log as they come, and stored between scans.

The rule: a log may hold anything. A malformed line is counted and changes nothing else; every text is cut to a length,
every number is finite, and no duration is negative whatever the nodes' clocks say.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from howdah.api.job_annotations import MAX_KEPT_TAGS
from howdah.history import run_facts
from howdah.spec import Resources, State
from howdah.spec.units import LATEST_S
from howdah.spec.values import dataclass

NAME, WORD, SENTENCE = 200, 100, 400
"""The most characters of a name, of a word such as a queue's name, and of the diagnostics."""
_IGNORED = tuple(
    b'{"kind":"%b"' % kind
    for kind in (b"Asked", b"Allocated", b"Greeted", b"Noted", b"SaveAdvanced", b"ContainerEnded")
)
_USED, _MEASURED = b'{"kind":"Used"', b'{"kind":"Measured"'
_RESOURCES = Resources()
MAX_MODELS = 20
"""The most models of GPUs of a job."""
_PROGRESS = re.compile(rb'"task":\{"role":"([^"\\]{1,100})","index":(\d{1,6})\}.*"progress":([0-9.eE-]{1,30})[,}]')
_STORED_NAMES = {"reported_progress": "told", "malformed_lines": "bad"}
"""Fields that the index stores by their earlier names."""
_NAMES = {stored: name for name, stored in _STORED_NAMES.items()}


@dataclass
class AttemptSpan:
    """One attempt of a task: where and when it ran. The fields are stored in the index."""

    task: str
    """The task, as `role:index`."""
    attempt: int
    """The number of the task's attempt, from 1."""
    container: str = ""
    """The engine's name for the container."""
    node: str = ""
    """The node of the container, as the engine calls it."""
    host: str = ""
    """The node as its executor calls it; "" before the task has joined."""
    pid: int = 0
    """The program's process id on the node; 0 before it runs."""
    gpus: str = ""
    """Numbers or UUIDs of the GPUs, separated by commas."""
    held: int = 0
    """Number of GPUs that the attempt holds."""
    model: str = ""
    """Model of the GPUs, by their first one."""
    epoch: int = 0
    """The epoch in which the task last joined, or its program last started; 0 before that."""
    since: float = 0.0
    """When the attempt got its container."""
    until: float = 0.0
    """When the attempt ended; 0 while it runs."""
    counted_until: float = 0.0
    """Up to when its hours are counted: the end of its latest program."""


@dataclass
class JobSummary:
    """The summary of one job. The fields are stored in the index as JSON, so their names stay."""

    id: str = ""
    """The job's id; "" until its first line was read."""
    name: str = ""
    """The name that the job was given."""
    user: str = ""
    """The user who submitted it."""
    queue: str = ""
    """The queue that it asked for; "" for the engine's own choice."""
    engine: str = ""
    """The name of the engine that runs it."""
    framework: str = ""
    """The name of its framework."""
    words: str = ""
    """Labels, for the search of words."""
    tags: list[str] = field(default_factory=list)
    """The tags of the job file."""
    params: dict[str, str] = field(default_factory=dict)
    """Hyperparameters by name."""
    event_files: bool = False
    """Whether the job may have event files: it has outputs or checkpoints, or names their directory."""
    metrics: dict[str, list[float]] = field(default_factory=dict)
    """The last, the least and the greatest value of each metric that the programs reported."""
    state: str = State.PENDING.value
    """The name of the job's `State`."""
    started: float = 0.0
    """When the job was started; 0 until its first line was read."""
    finished: float = 0.0
    """When the job ended; 0 while it goes on."""
    latest: float = 0.0
    """Time of the latest event."""
    tasks: int = 0
    """The number of tasks of all roles."""
    gpus: dict[str, int] = field(default_factory=dict)
    """The GPUs of each task, by role."""
    vcores: dict[str, int] = field(default_factory=dict)
    """The virtual cores of each task, by role."""
    memory_mib: dict[str, int] = field(default_factory=dict)
    """The memory of each task in MiB, by role."""
    replicas: dict[str, int] = field(default_factory=dict)
    """The number of tasks, by role."""
    gpu_hours: float = 0.0
    """GPU hours that ended attempts held."""
    hours_by_model: dict[str, float] = field(default_factory=dict)
    """The GPU hours by the model of the GPUs, "" if it is not known."""
    cpu_hours: float = 0.0
    """Hours of virtual cores that ended attempts held."""
    memory_gib_hours: float = 0.0
    """GiB hours of memory that ended attempts held."""
    wasted: dict[str, float] = field(default_factory=dict)
    """The GPU hours of ended attempts whose work was lost, by the cause of the loss."""
    stopped_hours: float = 0.0
    """The GPU hours of attempts that were stopped on purpose; they are wasted if the job fails."""
    epoch: int = 0
    """The latest epoch."""
    cause: str = ""
    """The cause (`Exit.cause`) of the job's failure; "" where none is known."""
    failed: str = ""
    """The cause of the latest failure of a task; "" before the first."""
    diagnostics: str = ""
    """Why the job ended, for people."""
    reported_progress: dict[str, float] = field(default_factory=dict)
    """The latest progress, from 0 to 1, that each task reported."""
    live: dict[str, AttemptSpan] = field(default_factory=dict)
    """The attempts that have not ended, by task."""
    idle: dict[str, AttemptSpan] = field(default_factory=dict)
    """The attempts whose program has ended, and whose container may start it again, by task."""
    malformed_lines: int = 0
    """The number of malformed lines of the log."""
    changed: dict[tuple[str, int], AttemptSpan] = field(default_factory=dict)
    """The attempts whose present state is not in the index, by task and number; not stored."""

    @classmethod
    def load(cls, text: str) -> JobSummary:
        """Return the summary that `dump` stored; a new one for ""."""
        kept = json.loads(text) if text else {}
        summary = cls(**{_NAMES.get(name, name): value for name, value in kept.items()})
        for name in ("live", "idle"):
            stored = getattr(summary, name)
            setattr(summary, name, {task: AttemptSpan(**kept) for task, kept in stored.items()})
        return summary

    def dump(self) -> str:
        """Return the summary as JSON, from which `load` continues."""
        kept = {name: value for name, value in vars(self).items() if value and name not in ("changed", "live", "idle")}
        kept = {_STORED_NAMES.get(name, name): value for name, value in kept.items()}
        spans = {"live": self.live, "idle": self.idle}
        stored = {name: {task: vars(attempt) for task, attempt in held.items()} for name, held in spans.items()}
        return json.dumps({**kept, **stored})

    @property
    def ended(self) -> bool:
        """Return whether the log says how the job ended."""
        return State(self.state).ended

    @property
    def duration(self) -> float:
        """Return the seconds from the job's start to its end, or to its latest event."""
        return max(0.0, (self.finished or self.latest) - self.started) if self.started else 0.0

    @property
    def progress(self) -> float:
        """Return the mean progress of the tasks, 0 to 1."""
        if self.state == State.SUCCEEDED.value:
            return 1.0
        reported = self.reported_progress.values()
        return min(1.0, sum(reported) / len(reported)) if reported else 0.0

    @property
    def gpu_count(self) -> int:
        """Return the number of GPUs that the whole gang holds."""
        return sum(count * self.gpus.get(role, 0) for role, count in self.replicas.items())

    def feed(self, lines: Iterable[bytes]) -> None:
        """Apply further lines of the log."""
        pending: list[bytes] = []
        for line in lines:
            if line.startswith(_USED):
                if b'"gpus"' in line:
                    pending.append(line)
                if b'"progress"' in line:
                    self._apply(pending)
                    pending = []
                    self._progress_reported(line)
            elif line.startswith(_MEASURED):
                run_facts.add_point(self.metrics, line)
            elif line and not line.startswith(_IGNORED):
                pending.append(line)
        self._apply(pending)

    def _progress_reported(self, line: bytes) -> None:
        found = _PROGRESS.match(line, line.find(b'"task"'))
        if found:
            with contextlib.suppress(ValueError):
                task = f"{found[1].decode('utf-8', 'replace')}:{int(found[2])}"
                self.reported_progress[task] = min(1.0, max(0.0, _number(found[3])))

    def _on_gpus_used(self, record: Mapping[str, Any]) -> None:
        """Note the GPUs of a task. Every sample of usage names them; the first one suffices."""
        attempt = self.live.get(_task(record))
        if attempt is not None and not (attempt.gpus and attempt.model):
            attempt.model = attempt.model or _text(next((gpu.get("name") for gpu in record["gpus"]), ""), WORD)
            attempt.gpus = attempt.gpus or _text(",".join(str(gpu["id"]) for gpu in record["gpus"]), SENTENCE)
            self.changed[attempt.task, attempt.attempt] = attempt

    def _apply(self, lines: list[bytes]) -> None:
        for record in _records(lines):
            try:
                handler = _HANDLERS.get(record["kind"])
                if handler is not None:
                    handler(self, record)
                    self.latest = max(self.latest, _moment(record))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
                self.malformed_lines += 1

    def _on_started(self, record: Mapping[str, Any]) -> None:
        job = record["job"]
        roles = {_text(name, WORD): role for name, role in job["roles"].items()}
        labels = [f"{key}:{value}" for key, value in dict(job.get("labels") or {}).items()]
        fields = {
            "id": _text(record.get("id"), WORD),
            "engine": _text(record.get("engine"), WORD),
            "user": _text(record.get("user"), WORD),
            "started": _moment(record),
            "name": _text(job.get("name", "job"), NAME),
            "queue": _text(job.get("queue"), WORD),
            "framework": _text(job.get("framework", "generic"), WORD),
            "words": _text(" ".join(labels), SENTENCE),
            "tags": [_text(tag, WORD) for tag in dict.fromkeys(job.get("tags") or ())][:MAX_KEPT_TAGS],
            "event_files": run_facts.may_have_event_files(job),
            "params": run_facts.hyperparameters(job),
            "replicas": {name: _parse_int(role.get("replicas", 1)) for name, role in roles.items()},
            "gpus": _of_roles(roles, "gpus", 0),
            "vcores": _of_roles(roles, "vcores", _RESOURCES.vcores),
            "memory_mib": _of_roles(roles, "memory_mib", _RESOURCES.memory_mib),
        }
        vars(self).update(fields)  # all fields, or none if one of them is malformed
        self.tasks = sum(self.replicas.values())

    def _on_launched(self, record: Mapping[str, Any]) -> None:
        task, container = _task(record), record.get("container") or {}
        for before in filter(None, (record.get("giver"), record["task"])):  # the giver of a container wasted nothing
            self._end_attempt(_task({"task": before}), _moment(record), "")
            self.idle.pop(_task({"task": before}), None)
        held = self.gpus.get(task.rpartition(":")[0], 0)
        attempt = AttemptSpan(task, _parse_int(record.get("attempt")), held=held, since=_moment(record))
        attempt.container, attempt.node = _text(container.get("id"), WORD), _text(container.get("node"), NAME)
        self._keep(attempt)

    def _on_noticed(self, record: Mapping[str, Any]) -> None:
        attempt = self._attempt(record)
        attempt.host = _text(record.get("host"), NAME) or attempt.host
        attempt.epoch = _parse_int(record.get("epoch")) or attempt.epoch
        attempt.pid = _parse_int(record.get("pid")) or attempt.pid
        attempt.gpus = _text(",".join(map(str, record.get("gpus") or ())), SENTENCE) or attempt.gpus
        self._keep(attempt)

    def _attempt(self, record: Mapping[str, Any]) -> AttemptSpan:
        """Return the attempt of a program that is about to start: maybe one whose earlier program has ended."""
        task, number = _task(record), _parse_int(record.get("attempt"))
        idle = self.idle.pop(task, None)
        if (live := self.live.get(task)) is not None:
            return live
        if idle is None or idle.attempt != number:
            return AttemptSpan(task, number, since=_moment(record))
        idle.until = 0.0
        return idle

    def _keep(self, attempt: AttemptSpan) -> None:
        self.live[attempt.task] = self.changed[attempt.task, attempt.attempt] = attempt

    def _on_formed(self, record: Mapping[str, Any]) -> None:
        self.state, self.epoch = State.RUNNING.value, _parse_int(record.get("epoch"))

    def _on_ended(self, record: Mapping[str, Any]) -> None:
        exit = record.get("exit") or {}
        cause, task = _text(exit.get("cause"), WORD), _task(record)
        ok = cause == "exit" and exit.get("code") == 0
        if ok:
            self.reported_progress[task] = 1.0
        elif record.get("counts", True):
            self.failed = cause = "exit" if cause in ("exit", "signal") else cause
        else:
            behind = _parse_int(record.get("epoch")) < self.epoch and self.failed
            cause = self.failed if behind else "stopped"
        self._end_attempt(task, _moment(record), "" if ok else cause, lost=bool(record.get("lost")))

    def _end_attempt(self, task: str, moment: float, cause: str, lost: bool = True) -> None:
        """End the present attempt of a task; the GPU hours that it held are wasted if there is a `cause`. Unless its
        container is `lost`, its program may start there again."""
        if lost:
            self.idle.pop(task, None)
        attempt = self.live.pop(task, None)
        if attempt is None:
            return
        begun = max(attempt.since, attempt.counted_until)
        attempt.until = attempt.counted_until = max(moment, begun)
        self.changed[attempt.task, attempt.attempt] = attempt
        if not lost:
            self.idle[task] = attempt
        held_hours, role = (attempt.until - begun) / 3600, task.rpartition(":")[0]
        hours = attempt.held * held_hours
        self.gpu_hours += hours
        if hours:
            known = attempt.model in self.hours_by_model or len(self.hours_by_model) < MAX_MODELS
            model = attempt.model if known else ""
            self.hours_by_model[model] = self.hours_by_model.get(model, 0.0) + hours
        self.cpu_hours += self.vcores.get(role, 0) * held_hours
        self.memory_gib_hours += self.memory_mib.get(role, 0) / 1024 * held_hours
        if cause == "stopped":
            self.stopped_hours += hours
        elif cause and hours:
            self.wasted[cause] = self.wasted.get(cause, 0.0) + hours

    def _on_released(self, record: Mapping[str, Any]) -> None:
        for task in list(self.live):
            self._end_attempt(task, _moment(record), "released")
        self.idle.clear()

    def _on_restarted(self, record: Mapping[str, Any]) -> None:
        self.epoch = _parse_int(record.get("epoch"))
        if not record.get("tasks"):
            self.state = State.PENDING.value

    def _on_resized(self, record: Mapping[str, Any]) -> None:
        self.replicas[_text(record["role"], WORD)] = _parse_int(record["replicas"])
        self.tasks = sum(self.replicas.values())

    def _on_finished(self, record: Mapping[str, Any]) -> None:
        outcome = record["outcome"]
        cause = _text((outcome.get("exit") or {}).get("cause"), WORD)
        diagnostics = _text(outcome.get("diagnostics"), SENTENCE)
        moment = _moment(record) or self.latest  # an end without a time is not earlier than the events before it
        self.end(State(outcome["state"]), moment, diagnostics, cause)

    def end(self, state: State, moment: float, diagnostics: str, cause: str = "") -> None:
        """Note how the job ended, as its log or its engine reports. If it failed, the hours of stopped attempts are
        wasted, too."""
        self.state, self.finished, self.diagnostics = state.value, max(moment, self.started), diagnostics
        for task in list(self.live):
            self._end_attempt(task, self.finished, "stopped")
        self.idle.clear()
        if state is not State.SUCCEEDED:
            self.cause = cause or self.failed or ("cancelled" if state is State.CANCELLED else "other")
            if self.stopped_hours:
                self.wasted[self.cause] = self.wasted.get(self.cause, 0.0) + self.stopped_hours
        self.stopped_hours = 0.0


def _records(lines: list[bytes]) -> Iterable[Any]:
    """Return the record of each line, None for a malformed one. All lines are parsed at once if that works, which takes
    half the time."""
    try:
        records = json.loads(b"[%b]" % b",".join(lines))
    except (ValueError, RecursionError):
        return map(_parse_line, lines)
    return records if len(records) == len(lines) else map(_parse_line, lines)


def _parse_line(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _text(value: Any, max_length: int) -> str:
    """Return the value as text that can be stored and shown, cut to `max_length` characters."""
    text = "" if value is None else value if isinstance(value, str) else str(value)
    text = text[:max_length] + "…" if len(text) > max_length else text
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _number(value: Any) -> float:
    """Return the value as a finite number, else 0."""
    number = float(value or 0.0)
    return number if math.isfinite(number) else 0.0


def _moment(record: Mapping[str, Any]) -> float:
    """Return when the event was, in epoch seconds, else 0."""
    moment = _number(record.get("time"))
    return moment if 0 <= moment <= LATEST_S else 0.0


def _parse_int(value: Any) -> int:
    return max(0, min(int(value or 0), 1 << 40))


def _of_roles(roles: Mapping[str, Mapping[str, Any]], resource: str, default: int) -> dict[str, int]:
    """Return the amount of a resource for a container of each role; the log leaves out the default."""
    return {name: _parse_int((role.get("resources") or {}).get(resource, default)) for name, role in roles.items()}


def _task(record: Mapping[str, Any]) -> str:
    task = record["task"]
    return f"{_text(task['role'], WORD)}:{_parse_int(task['index'])}"


_HANDLERS = {
    "JobStarted": JobSummary._on_started,
    "Launched": JobSummary._on_launched,
    "Joined": JobSummary._on_noticed,
    "Started": JobSummary._on_noticed,
    "WorldFormed": JobSummary._on_formed,
    "Ended": JobSummary._on_ended,
    "GangReleased": JobSummary._on_released,
    "GangRestarted": JobSummary._on_restarted,
    "Resized": JobSummary._on_resized,
    "Used": JobSummary._on_gpus_used,
    "JobFinished": JobSummary._on_finished,
}
