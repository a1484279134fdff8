"""Stand-ins for tests: `Gang` drives the master's `step` by hand, `FakeAllocator` replaces an engine's allocator.

`Gang` grants containers, plays executors, and keeps the master's actions; no process, socket or clock is involved.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from howdah.engines import GONE, NO_PREFERENCES, Allocator, ContainerPreferences, Launch, MasterContext
from howdah.master.decisions.actions import (
    Action,
    Finish,
    LaunchTask,
    RecordEvent,
    ReleaseContainer,
    StartRecorded,
    StatusReceived,
    Tick,
)
from howdah.master.decisions.outputs import part_directory
from howdah.master.decisions.step import step
from howdah.master.recovery import replay
from howdah.master.state import GangState
from howdah.outputs.commit import temporary_directory
from howdah.spec import Container, Exit, JobSpec, Outcome, Role, TaskId, event_lines
from howdah.spec.events import Allocated, ContainerEnded, Event, JobStarted, TookOver
from howdah.wire.messages import Phase, Status

__all__ = ["OK", "FakeAllocator", "Gang", "job"]

OK = Exit("exit", 0)
"""The end of a program that succeeded."""
_A = TypeVar("_A", bound=Action)
_E = TypeVar("_E", bound=Event)


def job(**changes: Any) -> JobSpec:
    """Return a job with two workers and a parameter server whose end the job does not wait for."""
    roles = {"ps": Role("ps", tracked=False), "worker": Role("train", replicas=2)}
    return replace(JobSpec(roles=roles), **changes)


class Gang:
    """A job under test. `now` is its clock, `did` all actions of the master, in order, `gone` the ended containers."""

    def __init__(self, spec: JobSpec, now: float = 1000.0) -> None:
        self.state = GangState.for_job("job-1", spec)
        self.now, self.number = now, 0
        self.did: list[Action] = []
        self.sequences: dict[str, int] = {}
        self.gone: set[str] = set()
        self.feed(JobStarted(now, id="job-1", engine="local", user="alice", job=spec, one_machine=True))

    def feed(self, event: Event) -> list[Action]:
        """Apply `event`; return the actions of `step`."""
        if isinstance(event, ContainerEnded):
            self.gone.add(event.container_id)
        actions = step(self.state, event)
        self.did += actions
        for epoch in sorted(self.state.unrecorded):  # the log's file has it at once
            if self.outcome is not None:
                self.state.unrecorded.clear()
                break
            actions += self.feed(StartRecorded(self.now, epoch))
        return actions

    def actions_of(self, kind: type[_A]) -> list[_A]:
        """Return all actions of one kind so far."""
        return [action for action in self.did if isinstance(action, kind)]

    def recorded(self, kind: type[_E]) -> list[_E]:
        """Return all recorded events of one kind so far."""
        return [action.event for action in self.actions_of(RecordEvent) if isinstance(action.event, kind)]

    def grant(self, role: str) -> Container:
        """Grant one container on a node of its own."""
        self.number += 1
        container = Container(f"c{self.number}", f"node{self.number}", role)
        self.feed(Allocated(self.now, container))
        return container

    def say(self, task: str, phase: Phase, **fields: Any) -> None:
        """Post a status of the executor of the task's current attempt."""
        known = self.state.tasks[TaskId.parse(task)]
        number = self.sequences[task] = self.sequences.get(task, 0) + 1
        base: dict[str, Any] = {"epoch": known.epoch, "host": f"host-{task}", "pid": 1}
        status = Status(task=task, attempt=known.attempt, sequence=number, phase=phase, **{**base, **fields})
        self.feed(StatusReceived(self.now, status))

    def join(self, task: str) -> None:
        """Report that the task's files are in place and its port is reserved."""
        self.say(task, Phase.JOINED, ports={"main": 4000})

    def run(self, task: str) -> None:
        """Report that the task's program runs."""
        self.say(task, Phase.RUNNING, ports={"main": 4000}, program_pid=7)

    def end(self, task: str, exit: Exit = OK, made: tuple[int, ...] = ()) -> None:
        """Report that the task's program ended and its files for the outputs in `made` are uploaded."""
        known, outputs = self.state.tasks[TaskId.parse(task)], self.state.job.outputs
        uploaded = tuple(
            f"{temporary_directory('job-1', number, outputs[number].path)}/{part_directory(known)}" for number in made
        )
        self.say(task, Phase.ENDED, ports={"main": 4000}, program_pid=7, exit=exit, uploaded=uploaded)

    def form(self) -> None:
        """Grant, join and run all tasks."""
        for task in self.state.tasks:
            self.grant(task.role)
        for task in self.state.tasks:
            self.join(str(task))
            self.run(str(task))

    def wait(self, seconds: float) -> None:
        """Let time pass without any report."""
        self.now += seconds
        self.feed(Tick(self.now))

    def take_over(self, lost: int = 0) -> None:
        """Kill the master, with its last `lost` events, and let another one take over. The cluster takes back the
        containers that the new master does not know."""
        log = [action.event for action in self.actions_of(RecordEvent)]
        log = list(event_lines.read_lines(event_lines.to_line(event) for event in log[: len(log) - lost]))
        self.state = GangState.for_job("job-1", self.state.job)
        kept = [action for action in self.did if not isinstance(action, RecordEvent)]
        self.did = [*kept, *map(RecordEvent, log), RecordEvent(TookOver(self.now, 2))]
        self.did += replay(self.state, log, self.now)
        given = {action.container.id for action in kept if isinstance(action, LaunchTask)}
        returned = {action.container_id for action in self.actions_of(ReleaseContainer)}
        unknown = given - returned - self.gone - set(self.state.containers)
        self.did += [ReleaseContainer(container) for container in sorted(unknown)]
        for container in [each for each in self.state.containers if each in self.gone | returned]:
            self.feed(ContainerEnded(self.now, container, Exit("withdrawn", detail=GONE)))

    @property
    def outcome(self) -> Outcome | None:
        """Return how the job ended; None while it has not."""
        return self.actions_of(Finish)[0].outcome if self.actions_of(Finish) else None


class FakeAllocator(Allocator):
    """Grants every request at once, on nodes with invented names, and starts nothing: the test plays the executors.
    `poll` returns one batch of events of `script` a call, after the grants."""

    script: ClassVar[list[list[Event]]] = []

    def __init__(self, context: MasterContext) -> None:
        self.context = context
        self.launched: list[tuple[Container, Launch]] = []
        self.released: list[str] = []
        self.outcome: Outcome | None = None
        self._news: asyncio.Queue[list[Event]] = asyncio.Queue()
        self._number = 0
        for batch in self.script:
            self._news.put_nowait(batch)

    @classmethod
    async def open(cls, context: MasterContext) -> FakeAllocator:
        """Return an allocator."""
        return cls(context)

    def request(self, role: str, count: int, preferences: ContainerPreferences = NO_PREFERENCES) -> None:
        """Grant all containers."""
        for _ in range(count):
            self._number += 1
            container = Container(f"c{self._number}", f"node{self._number}", role)
            self._news.put_nowait([Allocated(time.time(), container)])

    async def poll(self) -> list[Event]:
        """Return the next batch."""
        return await self._news.get()

    async def launch(self, container: Container, launch: Launch) -> None:
        """Remember the launch."""
        self.launched.append((container, launch))

    def release(self, container_id: str, cause: str = "") -> None:
        """Remember the release."""
        self.released.append(container_id)

    async def unregister(self, outcome: Outcome, progress: float = 1.0) -> None:
        """Remember the outcome."""
        self.outcome = outcome
