"""Simulates attempts of the master, each a process around the real `step`, orders, admission and recovery.

Each has its own memory, clock and hold on the event log. Several may live at the same time: the ResourceManager starts
another one when it has not heard the previous one. The previous one learns this from a refused heartbeat, from the log
that it does not own any more, or never.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from event_log import Log

from howdah.engines import GONE
from howdah.errors import EngineUnavailable
from howdah.master.app import CLAIM_S, CONFIRM_EVERY_S, CONFIRMED_S, ENGINE_SILENT_S, HAND_OVER_S
from howdah.master.decisions import job_completion
from howdah.master.decisions.actions import (
    Action,
    CollectStacks,
    Commit,
    CommitDone,
    FindCheckpoint,
    Finish,
    HandOver,
    LaunchTask,
    NotifyExecutors,
    RecordEvent,
    ReleaseContainer,
    RequestContainers,
    StartRecorded,
    StatusReceived,
    Tick,
)
from howdah.master.decisions.admission import explain_refusal, reassign_orders
from howdah.master.decisions.heartbeat_timeouts import FENCE_S
from howdah.master.decisions.step import step
from howdah.master.journal import CLAIM_TRIES
from howdah.master.owned_file import LogChanged, LogOwnerChanged
from howdah.master.recovery import replay
from howdah.master.state import GangState, Stage
from howdah.spec import Exit, Outcome, State, TaskId, event_lines
from howdah.spec.events import (
    AllocationLost,
    CancelRequested,
    CheckpointFound,
    ContainerEnded,
    Event,
    JobFinished,
    JobStarted,
    TimeLost,
    TookOver,
    WorldFormed,
)
from howdah.storage.retry import AGAIN_S
from howdah.wire.messages import Orders, Status

if TYPE_CHECKING:
    from cluster import Simulation
    from executors import Executor, Node

EPOCH = 1e6
LOST_ATTEMPTS = "no attempt of the master is left"
KILL_AFTER_S = 0.25
"""Seconds that YARN's NodeManager waits between SIGTERM and SIGKILL."""


@dataclass(eq=False)
class Master:
    """One attempt.

    Its clock is `ahead` of the others'; its process does not run until `stopped_until`. `heard_at` is when the
    ResourceManager last heard it, `confirmed_at` when it last saw that it owns the log. `unsent` goes to the
    ResourceManager with the next heartbeat. `leaving` is set once it has the job's end, or has left the job to the next
    master.
    """

    sim: Simulation
    number: int
    node: Node
    state: GangState
    alive: bool = True
    ready: bool = False
    ahead: float = EPOCH
    stopped_until: float = 0.0
    looked_at: tuple[float, float] = (0.0, 0.0)
    heard_at: float = 0.0
    confirmed_at: float = -1e9
    claiming_since: float = 0.0
    leaving: bool = False
    unsent: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log, self.living = Log(self.sim.files, self.number, self.sim.without != "one log"), set[str]()

    @property
    def now(self) -> float:
        """Return the time by the clock of its machine."""
        return self.sim.now + self.ahead

    @property
    def runs(self) -> bool:
        """Return whether the process handles events now."""
        return self.alive and self.ready and self.sim.now >= self.stopped_until

    def when_running(self, act: Callable[[], None]) -> bool:
        """Return whether the process runs now; if it is stopped, call `act` when it goes on."""
        if self.alive and self.sim.now < self.stopped_until:
            self.sim.later(self.stopped_until - self.sim.now, act)
        return self.alive and self.sim.now >= self.stopped_until

    # The beginning

    def begin(self) -> None:
        """Register, then read the log of the previous master."""
        if not self.when_running(self.begin):
            return
        manager = self.sim.manager
        if not manager.hears(self):
            self.sim.later(1.0, self.begin)
        elif manager.current is not self:
            self.die("refused at registration")
        else:
            self.heard_at = self.sim.now
            if self.number == 1:
                self.begin_job()
            else:
                self.read_log(CLAIM_TRIES)

    def read_log(self, tries: int) -> None:
        if not self.when_running(lambda: self.read_log(tries)):
            return
        try:
            lines = self.log.read()
        except EngineUnavailable:  # it waits for the log
            self.sim.later(1.0, lambda: self.read_log(tries))
            return
        if lines:
            event, self.claiming_since = TookOver(self.now, self.number), self.sim.now
            self.sim.later(self.sim.claim_delay(), lambda: self.claim(lines, event, tries))
        else:
            self.begin_job()

    def claim(self, lines: list[str], event: TookOver, tries: int) -> None:
        if not self.when_running(lambda: self.claim(lines, event, tries)):
            return
        try:
            self.log.claim(lines, event_lines.to_line(event))
        except LogChanged:
            self.sim.seen["the log grew while it was read"] += 1
            if tries > 1:
                self.read_log(tries - 1)
            else:
                self.die("the log grew")
            return
        except EngineUnavailable:
            self.sim.later(AGAIN_S, lambda: self.claim(lines, event, tries))
            return
        log = list(event_lines.read_lines(lines))
        if log:
            self.take_over(log, event.time)
        else:
            self.begin_job()

    def begin_job(self) -> None:
        """Begin the job from the start."""
        anew = self.number > 1
        if not self.adopt(()):
            return
        self.sim.seen["begun anew"] += anew
        self.looked_at = (self.sim.now, self.now)
        fence = self.now + FENCE_S if anew else 0.0
        self.apply(JobStarted(self.now, "job-1", "sim", "u", self.sim.job, fenced_until=fence))
        self.announce()

    def take_over(self, log: list[Event], now: float) -> None:
        self.looked_at = (self.sim.now, self.now)
        left = replay(self.state, log, now)
        claiming = self.sim.now - self.claiming_since
        if claiming > CLAIM_S:
            left += step(self.state, TimeLost(now, claiming))
        self.sim.invariants.taken_over(self, log)
        held = {task.container.id for task in self.state.tasks.values() if task.container is not None}
        if self.sim.without == "takeover fence":
            for task in self.state.tasks.values():
                task.fenced_until = task.fenced_until if task.container else 0.0
        if not self.adopt(held):
            return
        self.sim.seen["takeovers"] += 1
        self.sim.seen["takeovers while another lives"] += any(m.alive for m in self.sim.masters if m is not self)
        for action in left:
            self.perform(action)
        for id_ in sorted(held - self.living):
            exit = Exit("withdrawn", detail=GONE) if self.state.open else Exit("stopped", detail=GONE)
            self.apply(ContainerEnded(now, id_, exit))
        self.sim.later(self.sim.announce_delay(), self.announce)

    def adopt(self, held: set[str] | tuple[()]) -> bool:
        """Take over the containers that the cluster still knows; return False when it does not know this attempt any
        more."""
        if self.sim.manager.current is not self:
            self.die("refused at a takeover")
            return False
        self.living = self.sim.manager.adopt(set(held), self)
        return True

    def announce(self) -> None:
        """Publish the address, so that executors and clients may find it."""
        if self.alive:
            self.sim.announced, self.ready = self.number, True
            self.tick()
            self.flush()
            self.confirm()

    # Events and actions

    def apply(self, event: Event) -> None:
        """Handle an event; while the process is stopped, events wait."""
        if self.alive and self.sim.now < self.stopped_until:
            self.sim.later(self.stopped_until - self.sim.now, lambda: self.apply(replace(event, time=self.now)))
        elif self.alive and not self.state.handed_over:
            self.watch_clock()
            before = self.state.stage, self.state.outcome
            if isinstance(event, CancelRequested) and self.sim.without == "decided" and not self.state.open:
                actions: list[Action] = []
                job_completion.stop(self.state, Outcome(State.CANCELLED, "cancelled"), "cancelled", self.now, actions)
            else:
                actions = step(self.state, event)
            if isinstance(event, CancelRequested):
                self.sim.invariants.cancelled(self, before)
            for action in actions:
                self.perform(action)
            if not isinstance(event, CommitDone):
                self.sim.invariants.stepped(self, before, event)
            if self.sim.without == "gang":
                for formation in self.state.formations.values():
                    formation.waiting.clear()
            if self.sim.without == "fence":
                for task in self.state.tasks.values():
                    task.fenced_until = 0.0

    def watch_clock(self) -> None:
        """Measure, as the real one does, how long the process stood still, and how far its clock was set."""
        steady, wall = self.looked_at
        self.looked_at = self.sim.now, self.now
        ran, passed = self.sim.now - steady, self.now - wall
        lost = (ran - 0.5 if ran > 2.5 else 0.0) + (passed - ran if abs(passed - ran) > 1 else 0.0)
        if lost and self.sim.without != "clock":
            for action in step(self.state, TimeLost(self.now, lost)):
                self.perform(action)

    def perform(self, action: Action) -> None:
        sim = self.sim
        if isinstance(action, RecordEvent):
            self.record(action.event)
        elif isinstance(action, RequestContainers):
            self.unsent.append(lambda: sim.manager.ask(action))
        elif isinstance(action, ReleaseContainer):
            if sim.without != "release":
                self.unsent.append(lambda: sim.manager.release(action.container_id))
        elif isinstance(action, LaunchTask):
            sim.later(sim.delay(), lambda: sim.launch(self, action))
        elif isinstance(action, NotifyExecutors):
            for task in action.tasks:
                sim.notify(self, task)
        elif isinstance(action, Commit):
            self.decide(action.keep or sim.without == "failed outputs")
            if sim.without == "one commit":
                self.decide(action.keep)
        elif isinstance(action, CollectStacks):
            sim.look_into(self, action)
        elif isinstance(action, FindCheckpoint):
            found = CheckpointFound(self.now, action.epochs)
            sim.later(sim.chance.uniform(0, 1), lambda: self.apply(replace(found, time=self.now)))
        elif isinstance(action, HandOver):
            self.hand_over()
        elif isinstance(action, Finish):
            self.leaving = True
            self.leave(action.outcome, sim.now + 60.0)

    def record(self, event: Event) -> None:
        if isinstance(event, WorldFormed):
            self.sim.invariants.world_formed(self, event.epoch)
            if event.epoch in self.state.unrecorded:
                self.sim.later(0.03, lambda: self.record_start(event.epoch))
        self.log.write(event)

    # Executors

    def holds_the_job(self) -> bool:
        """Return whether no other master can have begun to run the job; the real one checks this before it renews
        leases."""
        return not self.may_be_replaced() or self.sim.now - self.confirmed_at < CONFIRMED_S

    def may_be_replaced(self) -> bool:
        return self.sim.now - self.heard_at > self.sim.expiry_s

    def hear(self, status: Status, executor: Executor, sent_at: float, answer: bool = True) -> None:
        """A status comes from the network."""
        if self.state.handed_over:
            return
        if not self.holds_the_job():
            self.sim.seen["leases not renewed"] += 1
            return
        moved = reassign_orders(self.state, status)
        if moved is not None:
            self.sim.answer(executor, moved, sent_at)
            return
        claimed = replace(status, container="") if self.sim.without == "container" else status
        if explain_refusal(self.state, claimed):
            self.sim.seen["statuses refused"] += 1
            self.sim.refuse(executor)
            return
        executor.received_at = max(executor.received_at, sent_at)
        task, invariants = self.state.tasks[TaskId.parse(status.task)], self.sim.invariants
        invariants.admitted(self, executor)
        sequence, before = task.sequence, invariants.knowledge(self, task.id)
        if self.sim.without == "sequence":
            task.sequence = 0
        self.apply(StatusReceived(self.now, status))
        invariants.heard(self, status, sequence, before)
        if answer and self.alive and self.sim.outcome is None and not self.state.handed_over:
            self.sim.answer(executor, self.orders(status), sent_at)

    def orders(self, status: Status) -> Orders:
        return self.sim.director.orders(self.state, status)

    # The event log

    def write(self) -> bool:
        """Write the log, and return whether everything is in the file; a replaced master ends."""
        try:
            return self.log.flush()
        except LogOwnerChanged:
            self.be_superseded()
            return False

    def be_superseded(self) -> None:
        self.sim.seen["found out by the log"] += 1
        self.die("superseded")

    def record_start(self, epoch: int) -> None:
        """The programs of the epoch wait until the file system has the line."""
        if not self.alive:
            return
        if self.sim.without == "log" or (self.runs and self.write()):
            self.apply(StartRecorded(self.now, epoch))
        else:
            self.sim.later(1.0, lambda: self.record_start(epoch))

    def flush(self) -> None:
        if self.alive and not self.leaving:
            if self.runs:
                self.write()
            late = 10 if self.sim.without == "log" else 1
            self.sim.later(late * self.sim.chance.uniform(0.2, 2.0), self.flush)

    def confirm(self) -> None:
        """While the ResourceManager does not answer, check whether this master still owns the log."""
        if self.alive and not self.leaving:
            if self.runs and self.sim.now - self.heard_at > ENGINE_SILENT_S:
                try:
                    if self.log.confirm():
                        self.confirmed_at = self.sim.now
                except LogOwnerChanged:
                    self.be_superseded()
                    return
            self.sim.later(CONFIRM_EVERY_S, self.confirm)

    def tick(self) -> None:
        if self.alive and not self.leaving:
            if self.runs:
                self.apply(Tick(self.now))
            self.sim.later(0.5, self.tick)

    # The end

    def decide(self, keep: bool) -> None:
        """Move the outputs once the decision is in the log; a master that may have been replaced must get it there
        first."""
        if not self.when_running(lambda: self.decide(keep)) or self.state.handed_over:
            return
        try:
            written = self.log.confirm()
        except LogOwnerChanged:
            self.be_superseded()
            return
        if written:
            sim = self.sim
            sim.invariants.commit_begun(self, keep)
            seconds = sim.commit_seconds()
            sim.tempt_to_cancel(self, seconds)
            sim.later(seconds * sim.links.random(), lambda: self.move_outputs(keep))
            sim.later(seconds, lambda: self.committed(keep))
        else:
            self.sim.later(1.0, lambda: self.decide(keep))

    def move_outputs(self, keep: bool) -> None:
        """A helper process does it; it ends with the master."""
        if self.alive and not self.state.handed_over:
            self.sim.invariants.outputs_moved(keep)

    def committed(self, keep: bool) -> None:
        if self.alive:
            self.apply(CommitDone(self.now, ("out",) if keep else ()))

    def leave(self, outcome: Outcome, until: float) -> None:
        """Write the end to the log, then report it to the engine."""
        if not self.when_running(lambda: self.leave(outcome, until)):
            return
        if not self.write() and self.alive and self.sim.now < until:
            self.sim.later(1.0, lambda: self.leave(outcome, until))
        elif self.alive and self.sim.manager.hears(self):
            self.sim.manager.unregister(self, outcome)
        elif self.alive:
            self.sim.later(1.0, lambda: self.leave(outcome, until))

    def terminate(self) -> None:
        """Send SIGTERM, and SIGKILL a moment later. A process that has not begun ends at once."""
        if not self.alive:
            return
        self.sim.seen["ended politely"] += 1
        if not self.ready:
            self.die("terminated")
            return
        if self.sim.without == "attempt":
            self.apply(CancelRequested(self.now, "signal SIGTERM"))
        else:
            self.lose("signal SIGTERM", within_s=KILL_AFTER_S)
        if self.sim.without != "attempt":
            self.sim.later(KILL_AFTER_S, lambda: self.die("killed"))

    def lose(self, cause: str, within_s: float = 0.0) -> None:
        """The engine says that this attempt is over."""
        self.apply(AllocationLost(self.now, cause, within_s=within_s))

    def hand_over(self) -> None:
        """Leave the job as it is, and the log as complete as possible."""
        self.sim.invariants.handed_over(self)
        if not self.leaving:
            self.leaving = True
            self.finish_log(self.sim.now + HAND_OVER_S)

    def finish_log(self, until: float) -> None:
        if self.when_running(lambda: self.finish_log(until)):
            if self.write() or self.sim.now >= until:
                self.die("handed over")
            else:
                self.sim.later(0.2, lambda: self.finish_log(until))

    def fail(self, problem: str) -> None:
        """The engine refuses a request, which ends the master, and the job with it."""
        if not self.runs or self.leaving or self.state.stage in (Stage.COMMITTING, Stage.DONE):
            return
        self.sim.seen["refusals"] += 1
        self.leaving = True
        outcome = Outcome(State.FAILED, f"the master failed: {problem}")
        self.log.write(JobFinished(self.now, outcome))
        if self.write() or self.alive:
            self.sim.manager.unregister(self, outcome)

    def die(self, _: str) -> None:
        """The process dies, perhaps while it writes."""
        if self.alive:
            self.alive = False
            if self.log.pending and self.sim.clock.random() < 0.5:
                self.log.tear(self.sim.clock.randrange(len(self.log.pending)), self.sim.clock.random())
