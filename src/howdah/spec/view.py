"""`fold(events) -> JobView`: the only way anyone looks at a job, live or after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Type

from howdah.spec import events as e
from howdah.spec.job import JobSpec
from howdah.spec.world import Exit, Outcome, State, TaskId


@dataclass
class TaskView:
    """One task as people see it.

    `phase` is the state's finer grain: asked, launched, localising, joined, running. `python` is what runs the
    executor, `program` the one that the program finds.
    """

    id: TaskId
    state: State = State.PENDING
    phase: str = "asked"
    attempt: int = 0
    container: str = ""
    host: str = ""
    node: str = ""
    log_url: str = ""
    pid: int = 0
    python: str = ""
    program: str = ""
    ports: Mapping[str, int] = field(default_factory=dict)
    started: float = 0.0
    finished: float = 0.0
    progress: Optional[float] = None
    memory_mib: float = 0.0
    peak_mib: float = 0.0
    cpu: float = 0.0
    exit: Optional[Exit] = None


@dataclass
class JobView:
    """A job as people see it."""

    id: str = ""
    engine: str = ""
    user: str = ""
    job: Optional[JobSpec] = None
    python: str = ""
    host: str = ""
    state: State = State.PENDING
    epoch: int = 0
    started: float = 0.0
    running: float = 0.0
    finished: float = 0.0
    tasks: Dict[TaskId, TaskView] = field(default_factory=dict)
    notes: List[str] = field(default_factory=list)
    outputs: List[str] = field(default_factory=list)
    outcome: Optional[Outcome] = None

    @property
    def progress(self) -> float:
        """Mean of what the tasks report, 1 for one that ended well; 0 while nothing is known."""
        told = [
            1.0 if task.state is State.SUCCEEDED else task.progress
            for task in self.tasks.values()
            if task.progress is not None or task.state is State.SUCCEEDED
        ]
        return sum(value for value in told if value is not None) / len(told) if told else 0.0


def fold(events: Iterable[e.Event], view: Optional[JobView] = None) -> JobView:
    """Apply `events` in order to `view` (a new one by default) and give it back."""
    view = view or JobView()
    for event in events:
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(view, event)
    return view


def _started(view: JobView, event: e.JobStarted) -> None:
    view.id, view.engine, view.user = event.id, event.engine, event.user
    view.job, view.python, view.host, view.started = event.job, event.python, event.host, event.time
    for name, role in event.job.roles.items():
        for index in range(role.replicas):
            task = TaskId(name, index)
            view.tasks.setdefault(task, TaskView(task))


def _launched(view: JobView, event: e.Launched) -> None:
    view.tasks[event.task] = TaskView(
        event.task,
        phase="launched",
        attempt=event.attempt,
        container=event.container.id,
        node=event.container.node,
        log_url=event.container.log_url,
    )


def _greeted(view: JobView, event: e.Greeted) -> None:
    task = view.tasks[event.task]
    task.phase, task.host, task.python = "localising", event.host, event.python


def _joined(view: JobView, event: e.Joined) -> None:
    task = view.tasks[event.task]
    task.phase, task.host, task.ports, task.state, task.exit = "joined", event.host, event.ports, State.PENDING, None


def _formed(view: JobView, event: e.WorldFormed) -> None:
    view.epoch, view.state = event.epoch, State.RUNNING
    view.running = view.running or event.time


def _running(view: JobView, event: e.Started) -> None:
    task = view.tasks[event.task]
    task.phase, task.state, task.pid, task.started = "running", State.RUNNING, event.pid, event.time
    task.program = event.python


def _used(view: JobView, event: e.Used) -> None:
    task = view.tasks[event.task]
    task.memory_mib, task.peak_mib, task.cpu = event.memory_mib, event.peak_mib, event.cpu
    if event.progress is not None:
        task.progress = event.progress


def _ended(view: JobView, event: e.Ended) -> None:
    task = view.tasks[event.task]
    task.exit, task.finished, task.phase = event.exit, event.time, "ended"
    if event.exit.ok:
        task.state = State.SUCCEEDED
    else:
        task.state = State.FAILED if event.counts else State.CANCELLED


def _released(view: JobView, event: e.GangReleased) -> None:
    view.tasks = {task: TaskView(task, attempt=old.attempt) for task, old in view.tasks.items()}
    view.notes.append(f"{event.reason}; asking again in {event.retry_in:.0f} s")


def _restarted(view: JobView, event: e.GangRestarted) -> None:
    view.state = State.PENDING
    view.notes.append(f"restarted as epoch {event.epoch}: {event.reason}")


def _stopping(view: JobView, event: e.Stopping) -> None:
    view.notes.append(event.reason)


def _noted(view: JobView, event: e.Noted) -> None:
    view.notes.append(event.text)


def _committed(view: JobView, event: e.Committed) -> None:
    view.outputs.append(event.uri)


def _finished(view: JobView, event: e.JobFinished) -> None:
    view.outcome, view.state, view.finished = event.outcome, event.outcome.state, event.time
    for task in view.tasks.values():
        if not task.state.ended:  # nobody told of its end, and nothing of the job runs any more
            task.state, task.phase, task.finished = State.CANCELLED, "ended", event.time


_HANDLERS: Dict[Type[e.Event], Callable[..., None]] = {
    e.JobStarted: _started,
    e.Launched: _launched,
    e.Greeted: _greeted,
    e.Joined: _joined,
    e.WorldFormed: _formed,
    e.Started: _running,
    e.Used: _used,
    e.Ended: _ended,
    e.GangReleased: _released,
    e.GangRestarted: _restarted,
    e.Stopping: _stopping,
    e.Noted: _noted,
    e.Committed: _committed,
    e.JobFinished: _finished,
}
