"""Simulates containers on the nodes of the cluster, with executors and their programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from howdah.spec import Container, Exit, TaskId
from howdah.wire.messages import CheckReport, Goal, Orders, PairOrder, Phase, Status

if TYPE_CHECKING:
    from cluster import Simulation

BEAT_S, LOOK_AFTER_S = 2.0, 3.0
UNHEARD_GRACE_S = 2.0
"""Seconds between the order to a program to end, given because nobody hears its executor, and its kill."""


class Broken(AssertionError):
    """An invariant does not hold."""


@dataclass
class Node:
    """`up` is false when it is off; `cut` when no message passes, `unheard` when none passes to the ResourceManager
    alone. Its own clock runs on."""

    name: str
    room: int
    up: bool = True
    cut: bool = False
    unheard: bool = False
    seen_at: float = 0.0
    lost: bool = False

    @property
    def reachable(self) -> bool:
        return self.up and not self.cut

    @property
    def heard(self) -> bool:
        """Return whether the ResourceManager hears the node."""
        return self.reachable and not self.unheard


@dataclass
class Room:
    """A granted container. `told` means that the ResourceManager knows of its end."""

    container: Container
    node: Node
    attempt: int
    executor: Executor | None = None
    exit: Exit | None = None
    told: bool = False
    released: bool = False


@dataclass(eq=False)
class Executor:
    """One attempt of one task; `program` is the epoch that its program runs in, 0 while none does."""

    sim: Simulation
    task: TaskId
    attempt: int
    room: Room
    master: int
    program: int = 0
    epoch: int = 0
    phase: Phase = Phase.HELLO
    exit: Exit | None = None
    alive: bool = True
    sequence: int = 0
    heard_at: float = 0.0
    leased_at: float = 0.0
    received_at: float = 0.0
    lease_s: float = 30.0
    goal: Goal = Goal.JOIN
    wanted: int = 0
    port: int = 0
    run: int = 0
    hung_at: float = 0.0
    noticed: int = 0
    checks: tuple[CheckReport, ...] = ()
    tries: int = 0
    leaving: bool = False
    halting: str = ""
    uploaded: tuple[str, ...] = ()

    def status(self) -> Status:
        self.sequence += 1
        return Status(
            task=str(self.task),
            attempt=self.attempt,
            epoch=self.epoch,
            sequence=self.sequence,
            phase=self.phase,
            host=self.room.node.name,
            pid=1,
            ports={"main": self.port} if self.port else {},
            program_pid=self.run if self.phase in (Phase.RUNNING, Phase.ENDED) else 0,
            exit=self.exit,
            container=self.room.container.id,
            idle_s=self.sim.now - self.hung_at if self.hung_at and self.sim.without != "signs" else 0.0,
            pair_port=self.port if self.sim.job.preflight.checks else 0,
            checks=self.checks,
            uploaded=self.uploaded if self.phase is Phase.ENDED else (),
        )

    def live(self) -> None:
        """Send a heartbeat, and give up when nobody answers for as long as the lease."""
        if not self.alive or self.leaving:
            return
        left = self.leased_at + self.lease_s - self.sim.now
        if left < 0 and self.sim.without != "lease":
            self.leave(Exit("exit", 75))
            return
        if self.sim.now - self.heard_at > LOOK_AFTER_S:
            self.master = self.sim.announced or self.master
        self.tell()
        # The real one looks at its lease when that ends; so does this one where a moment counts.
        self.sim.later(min(BEAT_S, max(left, 0.0) + 0.01) if self.sim.slow else BEAT_S, self.live)

    def leave(self, exit: Exit) -> None:
        """The executor sends no more; a program that does not end is killed a little later."""
        if self.alive and not self.leaving:
            self.leaving = self.sim.slow is not None
            grace = self.sim.slow.uniform(0, UNHEARD_GRACE_S) if self.sim.slow and self.program else 0.0
            if self.sim.without == "grace":
                grace *= 10
            if grace:
                self.sim.later(grace, lambda: self.end(exit))
            else:
                self.end(exit)

    def tell(self) -> None:
        if self.alive and not self.leaving:
            self.sim.send(self.room.node, self.master, self.status(), self)

    def obey(self, orders: Orders, requested_at: float) -> None:
        """The lease begins when the executor sent the status that this answers."""
        if self.leaving:
            return
        if self.alive and orders.goal is Goal.REASSIGN:
            self.become(orders.reassign_to)
            return
        if not self.alive or orders.epoch < self.wanted:
            return
        self.heard_at, self.leased_at, self.lease_s = self.sim.now, max(self.leased_at, requested_at), orders.lease_s
        self.sim.invariants.obeyed(self)
        if orders.notice and orders.notice.number > self.noticed and self.phase is Phase.RUNNING and self.program:
            self.noticed = orders.notice.number
            run, saved = self.run, lambda: self.finished(run, Exit("preempted", 75))
            if self.sim.luck.random() < 0.5:
                self.sim.later(self.sim.luck.uniform(0, 20), saved)
        self.wanted, self.goal = orders.epoch, orders.goal
        self.move()
        if orders.pairs and self.phase is Phase.JOINED and orders.pairs.epoch == self.epoch != self.tries:
            self.tries, pairs = self.epoch, orders.pairs
            self.sim.later(self.sim.fitness.uniform(0.1, 5), lambda: self.tried(pairs))

    def tried(self, order: PairOrder) -> None:
        """Every exchange with a node that is cut off from the others fails."""
        if self.alive and self.phase is Phase.JOINED and self.epoch == order.epoch:
            others = [one for one in order.rounds if one is not None]
            failed = {one.task: "bad" for one in others if self.sim.mute & {one.host, self.room.node.name}}
            passed = tuple(one.task for one in others if one.task not in failed)
            report = CheckReport(epoch=order.epoch, seconds=1.0, passed=passed, failed=failed)
            self.checks = (*(one for one in self.checks if not one.epoch), report)
            self.tell()

    def become(self, attempt: str) -> None:
        """End the running program, and start anew as another task's executor."""
        if self.sim.slow and self.program:
            self.leaving = True
            self.sim.later(self.sim.slow.uniform(0, self.sim.job.timeouts.stop_s), lambda: self.succeed(attempt))
        else:
            self.succeed(attempt)

    def succeed(self, attempt: str) -> None:
        if not self.alive:
            return
        task, _, number = attempt.rpartition("/")
        successor = Executor(
            self.sim,
            TaskId.parse(task),
            int(number),
            self.room,
            self.master,
            heard_at=self.sim.now,
            leased_at=self.sim.now,
        )
        self.alive, self.program, self.room.executor = False, 0, successor
        self.sim.later(self.sim.chance.uniform(0.1, 1), successor.live)

    def move(self) -> None:
        if self.goal is Goal.STOP:
            self.halt("stopped")
        elif self.wanted > self.epoch:
            if self.phase is Phase.RUNNING:
                self.halt("again")
            elif self.phase is not Phase.LOCALISING:
                fetch = self.sim.chance.uniform(0, 3) if self.phase is Phase.HELLO else 0.05
                self.enter(Phase.LOCALISING)
                self.sim.later(fetch, self.ready)
        elif self.goal is Goal.RUN and self.phase is Phase.JOINED:
            self.start()

    def ready(self) -> None:
        if self.alive and self.phase is Phase.LOCALISING and self.room.node.name in self.sim.unfit:
            self.epoch, self.exit = self.wanted, Exit("preflight", detail="disk: none")
            self.enter(Phase.ENDED)
        elif self.alive and self.phase is Phase.LOCALISING:
            self.checks = self.checks or ((CheckReport(seconds=1.0),) if self.sim.job.preflight.checks else ())
            self.epoch, self.exit, self.port = self.wanted, None, self.sim.chance.randrange(2000, 60000)
            self.sim.invariants.joined.add((self.task, self.epoch))
            self.enter(Phase.JOINED)

    def start(self) -> None:
        self.run += 1
        self.program, self.hung_at, self.uploaded = self.epoch, 0.0, ()
        self.enter(Phase.RUNNING)
        self.sim.invariants.program_started(self)
        self.sim.on_start(self)
        run = self.run
        duration = self.sim.duration()
        if self.sim.hangs():
            self.hung_at = self.sim.now
        else:
            self.sim.later(duration, lambda: self.finished(run, self.sim.verdict()))

    def finished(self, run: int, exit: Exit) -> None:
        if self.alive and self.run == run and self.phase is Phase.RUNNING:
            if self.halting:
                self.halted()
                return
            self.program, self.exit = 0, exit
            self.uploaded = self.sim.uploads(self.task, self.attempt) if exit.ok else ()
            self.enter(Phase.ENDED)

    def halt(self, why: str) -> None:
        if self.halting or self.phase is Phase.ENDED or (self.phase is Phase.RUNNING and not self.program):
            return
        self.halting = why
        if self.sim.slow and self.program:
            self.sim.later(self.sim.slow.uniform(0, self.sim.job.timeouts.stop_s), self.halted)
        else:
            self.halted()

    def halted(self) -> None:
        """The program that was told to end has ended."""
        why, self.halting = self.halting, ""
        if not self.alive or not why:
            return
        running, self.program, self.hung_at = self.program, 0, 0.0
        self.run += 1
        if why == "stopped" or running:
            self.exit = Exit("stopped", detail=why)
            self.epoch = self.wanted if why == "stopped" and not running else self.epoch
            self.enter(Phase.ENDED)
            if why == "again":
                self.move()

    def enter(self, phase: Phase) -> None:
        self.phase = phase
        self.tell()

    def end(self, exit: Exit) -> None:
        """The process is gone, and its program with it."""
        if self.alive:
            self.alive, self.program = False, 0
            self.room.exit = self.room.exit or exit
