"""A whole cluster in one thread: a clock, a network that delays and cuts, nodes, a ResourceManager, a file system, and
executors — around the real `step`, the real orders and the real recovery. A seed is a run; the same seed is the same
run.

What is simulated is only what is not ours: when messages arrive, what is lost, who dies. An executor keeps the rules of
the real one: it obeys no older epoch, ends when its lease is over, and looks for a master that took over.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from executors import Broken, Executor, Node, Room

from howdah.frameworks import find
from howdah.master import actions as a
from howdah.master.orders import Director
from howdah.master.replay import replay
from howdah.master.state import FENCE_S, GangState
from howdah.master.step import step
from howdah.spec import Container, Exit, JobSpec, Outcome, StagedJob, State, TaskId, event_lines
from howdah.spec import events as e
from howdah.wire.messages import Goal, Orders, Status

HEARTBEAT_S, EXPIRY_S = 1.0, 60.0
MASTER_ATTEMPTS = 6
EPOCH = 1e6


@dataclass(eq=False)
class Master:
    """One attempt of the master: what it knows in memory, and what has reached the file system. Its clock is `ahead` of
    the others'; until `stopped_until` its process does not run."""

    sim: Simulation
    number: int
    node: Node
    state: GangState
    pending: list[str] = field(default_factory=list)
    alive: bool = True
    ready: bool = False
    ahead: float = EPOCH
    stopped_until: float = 0.0
    looked_at: tuple[float, float] = (0.0, 0.0)

    @property
    def now(self) -> float:
        """By its own clock."""
        return self.sim.now + self.ahead

    @property
    def runs(self) -> bool:
        """It takes what comes."""
        return self.alive and self.ready and self.sim.now >= self.stopped_until

    def begin(self) -> None:
        if not self.alive:
            return
        if self.sim.storage_down:  # it waits for the log
            self.sim.later(1.0, self.begin)
            return
        log = list(event_lines.read_lines(self.sim.log))
        left: list[a.Action] = []
        if log:
            left = replay(self.state, log, self.now)
            self.record(e.TookOver(self.now, self.number))
        held = [task.container for task in self.state.tasks.values() if task.container is not None]
        living = self.sim.adopt({container.id for container in held}, self.number)
        self.ready, self.looked_at = True, (self.sim.now, self.now)
        for action in left:
            self.perform(action)
        if not log:
            fence = self.now + FENCE_S if self.number > 1 else 0.0
            self.apply(e.JobStarted(self.now, "job-1", "sim", "u", self.state.job, fenced_until=fence))
        for container in held:
            if container.id not in living:
                self.apply(e.ContainerEnded(self.now, container.id, Exit("lost", detail="gone")))
        if log and self.sim.slow:
            self.ready = False
            self.sim.later(self.sim.slow.uniform(0, 15), self.announce)
        else:
            self.announce()

    def announce(self) -> None:
        """Executors may find it; it was long in coming if the file system was slow."""
        if self.alive:
            self.sim.announced, self.ready = self.number, True
            self.tick()
            self.flush()

    def apply(self, event: e.Event) -> None:
        """What comes while it is stopped waits."""
        if self.alive and self.sim.now < self.stopped_until:
            self.sim.later(self.stopped_until - self.sim.now, lambda: self.apply(replace(event, time=self.now)))
        elif self.alive:
            self.watch_clock()
            decided = not self.state.open
            for action in step(self.state, event):
                self.perform(action)
            if decided and self.state.open:
                raise Broken(f"a job that was ending goes on after {type(event).__name__}")
            if self.sim.without == "gang":
                for formation in self.state.formations.values():
                    formation.waiting.clear()
            if self.sim.without == "fence":
                for task in self.state.tasks.values():
                    task.fenced_until = 0.0

    def watch_clock(self) -> None:
        """As the real one: how long it stood still, and how far its clock was set."""
        steady, wall = self.looked_at
        self.looked_at = self.sim.now, self.now
        ran, passed = self.sim.now - steady, self.now - wall
        lost = (ran - 0.5 if ran > 2.5 else 0.0) + (passed - ran if abs(passed - ran) > 1 else 0.0)
        if lost and self.sim.without != "clock":
            for action in step(self.state, e.TimeLost(self.now, lost)):
                self.perform(action)

    def perform(self, action: a.Action) -> None:
        if isinstance(action, a.Record):
            self.record(action.event)
        elif isinstance(action, a.Ask):
            self.sim.wanted[action.role], self.sim.avoid[action.role] = action.count, action.wish.avoid
        elif isinstance(action, a.Release) and self.sim.without == "release":
            return
        elif isinstance(action, a.Release):
            self.sim.release(action.container_id)
        elif isinstance(action, a.Launch):
            self.sim.later(self.sim.delay(), lambda: self.sim.launch(self, action))
        elif isinstance(action, a.Notify):
            for task in action.tasks:
                self.sim.notify(self, task)
        elif isinstance(action, a.Commit):
            self.sim.later(self.sim.chance.uniform(0, 2), lambda: self.committed(action.keep))
        elif isinstance(action, a.TakeStacks):
            self.sim.look_into(self, action)
        elif isinstance(action, a.FindCheckpoint):
            found = e.CheckpointFound(self.now, action.epochs)
            self.sim.later(self.sim.chance.uniform(0, 1), lambda: self.apply(replace(found, time=self.now)))
        elif not isinstance(action, a.NoteStrikes):
            self.finish(action.outcome)

    def committed(self, keep: bool) -> None:
        if self.alive:
            if keep:
                self.sim.commit()
            self.apply(a.CommitDone(self.now, ("out",) if keep else ()))

    def record(self, event: e.Event) -> None:
        if isinstance(event, e.WorldFormed):
            self.sim.world_formed(self, event.epoch)
            if event.epoch in self.state.unrecorded:
                self.sim.later(0.03, lambda: self.record_start(event.epoch))
        self.pending.append(event_lines.to_line(event))

    def record_start(self, epoch: int) -> None:
        """The programs of the epoch wait until the file system has the line."""
        if self.alive and (self.sim.storage_down or not self.runs) and self.sim.without != "log":
            self.sim.later(1.0, lambda: self.record_start(epoch))
        elif self.alive:
            if self.sim.without != "log":
                self.write()
            self.apply(a.StartRecorded(self.now, epoch))

    def flush(self) -> None:
        if self.alive:
            if self.runs:
                self.write()
            late = 10 if self.sim.without == "log" else 1
            self.sim.later(late * self.sim.chance.uniform(0.2, 2.0), self.flush)

    def tear(self) -> None:
        """It dies while it writes: some whole lines are there, and a part of the next."""
        if self.pending and not self.sim.storage_down and self.sim.clock.random() < 0.5:
            whole = self.sim.clock.randrange(len(self.pending))
            line = self.pending[whole]
            self.sim.log += [*self.pending[:whole], line[: self.sim.clock.randrange(len(line))] + "\n"]

    def write(self) -> None:
        if self.pending and not self.sim.storage_down:
            self.sim.log += self.pending
            self.pending = []

    def tick(self) -> None:
        if self.alive:
            if self.runs:
                self.apply(a.Tick(self.now))
            self.sim.later(0.5, self.tick)

    def finish(self, outcome: Outcome) -> None:
        self.write()
        self.sim.finished(self, outcome)

    def orders(self, status: Status) -> Orders:
        return self.sim.director.orders(self.state, status)


def record(line: str) -> dict[str, Any]:
    """One that was torn has nothing to tell."""
    try:
        return dict(json.loads(line))
    except ValueError:
        return {"time": 0.0, "kind": "torn"}


class Simulation:
    """A job on a cluster, with faults until `calm_at` (seconds), after which nothing goes wrong any more.

    `without` breaks one rule on purpose, for the tests of these tests: `lease`, `release`, `fence`, `signs`, `gang`,
    `clock`, `grace`, `log`. Of the programs that start before the calm, a share (`hanging`) never end by themselves.
    With `slow` those that are told to end take their time, and so does a master that takes over.
    """

    def __init__(
        self,
        seed: int,
        job: JobSpec,
        calm_at: float = 120.0,
        without: str = "",
        hanging: float = 0.0,
        slow: bool = False,
    ) -> None:
        self.hanging, self.luck = hanging, random.Random(f"hangs {seed}")  # its own: other runs stay what they were
        self.chance, self.job, self.calm_at, self.without = random.Random(seed), job, calm_at, without
        self.now, self._numbers = 0.0, itertools.count(1)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self.nodes = [Node(f"node{number}", 4) for number in range(1, 6)]
        self.rooms: dict[str, Room] = {}
        self.wanted: dict[str, int] = {}
        self.avoid: dict[str, tuple[str, ...]] = {}
        self.fitness = random.Random(f"fitness {seed}")
        self.clock = random.Random(f"clock {seed}")
        self.slow = random.Random(f"slow {seed}") if slow else None
        self.joined: set[tuple[TaskId, int]] = set()
        self.formed: set[int] = set()
        self.started: set[TaskId] = set()
        self.unfit: set[str] = set()
        self.mute: set[str] = set()
        self.log: list[str] = []
        self.announced = 0
        self.storage_down, self.away_until = False, 0.0
        self.commits = 0
        self.longest_s = 60.0
        self.outcome: Outcome | None = None
        self.attempts = 0
        self.master: Master | None = None
        staged = StagedJob(job, "file:///sim")
        self.director = Director("job-1", staged, find("generic"))
        self.next_master()
        self.later(HEARTBEAT_S, self.manage)

    # The clock

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now + seconds, next(self._numbers), act))

    def run(self, until: float) -> None:
        while self._agenda and self._agenda[0][0] <= until and self.outcome is None:
            self.now, _, act = heapq.heappop(self._agenda)
            act()
            self.check()

    def delay(self) -> float:
        return self.chance.choice((0.001, 0.005, 0.02, 0.2))

    @property
    def calm(self) -> bool:
        return self.now >= self.calm_at

    # What programs do

    def duration(self) -> float:
        return self.chance.uniform(1, self.longest_s)

    def hangs(self) -> bool:
        return bool(self.hanging) and not self.calm and self.luck.random() < self.hanging

    def look_into(self, master: Master, action: a.TakeStacks) -> None:
        """The stacks come, or do not; whom they point to may be right."""
        whom = tuple(self.luck.sample(action.tasks, self.luck.randrange(len(action.tasks) + 1)))
        if self.luck.random() < 0.7:
            taken = lambda: master.apply(e.StacksTaken(master.now, uri="stacks", suspects=whom))  # noqa: E731
            self.later(self.luck.uniform(0.1, 90), taken)

    def verdict(self) -> Exit:
        if not self.calm and self.chance.random() < 0.15:
            return self.chance.choice((Exit("exit", 1), Exit("memory", signal=9), Exit("port", 1)))
        return Exit("exit", 0)

    # The network between executors and the master

    def send(self, node: Node, master: int, status: Status, executor: Executor) -> None:
        if node.reachable:
            sent_at = self.now
            self.later(self.delay(), lambda: self.heard(node, master, status, executor, sent_at))

    def heard(self, node: Node, number: int, status: Status, executor: Executor, sent_at: float) -> None:
        master = self.master
        if not (master and master.alive and master.ready and master.number == number and master.node.reachable):
            return
        if not master.runs:  # it lies in the socket
            self.later(master.stopped_until - self.now, lambda: self.heard(node, number, status, executor, sent_at))
            return
        become = master.state.moves.get(f"{status.task}/{status.attempt}")
        if become is not None:
            self.answer(executor, Orders(0, Goal.BECOME, become=become), sent_at)
            return
        task = master.state.tasks[TaskId.parse(status.task)]
        fits = task.container is not None and task.container.id == status.container and task.attempt == status.attempt
        if not fits:
            self.later(self.delay(), lambda: executor.leave(Exit("exit", 76)) if node.reachable else None)
            return
        executor.received_at = sent_at
        master.apply(a.Heard(master.now, status))
        if master.alive and self.outcome is None:
            self.answer(executor, master.orders(status), sent_at)

    def answer(self, executor: Executor, orders: Orders, asked_at: float) -> None:
        node = executor.room.node
        if node.reachable:
            self.later(self.delay(), lambda: executor.obey(orders, asked_at) if node.reachable else None)

    def notify(self, master: Master, id_: TaskId) -> None:
        """The answer to a poll that waits."""
        task = master.state.tasks[id_]
        room = self.rooms.get(task.container.id) if task.container else None
        executor = room.executor if room else None
        if executor and executor.alive and executor.master == master.number and task.phase is not None:
            self.answer(executor, master.orders(executor.status()), executor.received_at)

    # The ResourceManager and the nodes

    def manage(self) -> None:
        """A heartbeat of all nodes, and of the master. A ResourceManager that is away hears none, and when it is back
        it waits for all nodes anew."""
        if self.now < self.away_until:
            for node in self.nodes:
                node.seen_at = self.now
            self.later(HEARTBEAT_S, self.manage)
            return
        for node in self.nodes:
            if node.reachable:
                node.seen_at, node.lost = self.now, False
            elif self.now - node.seen_at > EXPIRY_S:
                node.lost = True
        for room in list(self.rooms.values()):
            self.look_at(room)
        master = self.master
        if master and master.runs and master.node.reachable:
            self.grant(master)
            for room in [room for room in self.rooms.values() if room.exit and not room.told and self.known(room)]:
                room.told = True
                master.apply(e.ContainerEnded(master.now, room.container.id, room.exit))
        if master and (not master.alive or master.node.lost):
            self.replace(master)
        if self.outcome is None:
            self.later(HEARTBEAT_S, self.manage)

    def look_at(self, room: Room) -> None:
        if room.node.lost and room.exit is None:
            room.exit = Exit("lost", detail="node lost")
        if room.node.reachable and (room.released or (room.exit and room.executor and room.executor.alive)):
            if room.executor:
                room.executor.end(Exit("stopped"))
            room.exit = room.exit or Exit("stopped")

    def known(self, room: Room) -> bool:
        """A node that does not answer tells nothing of its containers, until it is given up."""
        return room.node.reachable or room.node.lost

    def grant(self, master: Master) -> None:
        for role, count in list(self.wanted.items()):
            for _ in range(count):
                node = next((node for node in self.nodes if self.offers(node, role)), None)
                if node is None or self.chance.random() < 0.3:
                    break
                self.wanted[role] -= 1
                container = Container(f"c{next(self._numbers)}", node.name, role)
                self.rooms[container.id] = Room(container, node, master.number)
                master.apply(e.Allocated(master.now, container))

    def offers(self, node: Node, role: str) -> bool:
        """Only jobs with pre-flight count on being heard: others must do with what they get."""
        avoided = bool(self.job.preflight.checks) and node.name in self.avoid.get(role, ())
        return node.reachable and self.free(node) > 0 and not avoided

    def free(self, node: Node) -> int:
        return node.room - sum(room.node is node and room.exit is None for room in self.rooms.values())

    def release(self, container: str) -> None:
        if container in self.rooms:
            self.rooms[container].released = True

    def adopt(self, held: set[str], master: int) -> set[str]:
        """The containers that the cluster still knows, and gives the new master; all others it takes back."""
        self.wanted = {}
        living = {id_ for id_, room in self.rooms.items() if not room.exit and not room.released}
        for id_ in living - held:
            self.release(id_)
        return living & held

    def launch(self, master: Master, action: a.Launch) -> None:
        room = self.rooms[action.container.id]
        if master.alive and not master.runs:
            self.later(master.stopped_until - self.now, lambda: self.launch(master, action))
            return
        if not master.alive or room.exit or room.released or not room.node.reachable:
            if master.alive:
                self.release(action.container.id)
                master.apply(e.ContainerEnded(master.now, action.container.id, Exit("start", detail="not started")))
            return
        executor = Executor(
            self, action.task, action.attempt, room, master.number, heard_at=self.now, leased_at=self.now
        )
        room.executor = executor
        self.later(self.chance.uniform(0.1, 2), executor.live)

    def next_master(self) -> None:
        self.attempts += 1
        node = self.chance.choice([node for node in self.nodes if node.reachable] or self.nodes)
        self.master = Master(self, self.attempts, node, GangState.of("job-1", self.job))
        self.later(self.chance.uniform(0.3, 3), self.master.begin)

    def replace(self, master: Master) -> None:
        master.alive = False
        master.tear()
        if self.attempts < MASTER_ATTEMPTS:
            self.next_master()
        else:  # the cluster gives up
            self.outcome = Outcome(State.FAILED, "no attempt of the master is left")

    def commit(self) -> None:
        self.commits = 1

    def finished(self, master: Master, outcome: Outcome) -> None:
        if self.outcome is not None:
            raise Broken("a second end")
        self.outcome = outcome
        master.alive = False
        leaked = [id_ for id_, room in self.rooms.items() if not (room.exit or room.released)]
        if set(leaked) - master.state.containers.keys():
            raise Broken(f"nobody gives back {leaked}")
        for room in self.rooms.values():
            room.released = True

    # Invariants

    def world_formed(self, master: Master, epoch: int) -> None:
        """All or none: nobody's program may start before the last has joined."""
        self.formed.add(epoch)
        members = [task.id for task in master.state.tasks.values() if task.epoch == epoch and task.exit is None]
        if missing := [task for task in members if (task, epoch) not in self.joined]:
            raise Broken(f"epoch {epoch} is formed without {missing}")

    def program_started(self, executor: Executor) -> None:
        if executor.program not in self.formed:
            raise Broken(f"{executor.task} starts in epoch {executor.program}, which was never formed")
        others = [room.executor for room in self.rooms.values() if room.executor and room.executor is not executor]
        for other in others:
            if other.task == executor.task and other.program:
                raise Broken(f"{executor.task} runs twice, epochs {other.program} and {executor.program}")
        if executor.task in self.started and not self._may_start_again(executor.task):
            raise Broken(f"{executor.task} starts a second time, and nobody asked for it")
        self.started.add(executor.task)

    def _may_start_again(self, task: TaskId) -> bool:
        """What the job file promises: one start, but for these words."""
        role = self.job.roles[task.role]
        several = any(each.spares or each.min_replicas for each in self.job.roles.values())
        return bool(self.job.retries) or several or role.on_failure in ("restart", "restart-role")

    def check(self) -> None:
        master = self.master
        if master is None or not master.ready:
            return
        held = [task.container.id for task in master.state.tasks.values() if task.container is not None]
        if len(held) != len(set(held)):
            raise Broken("two tasks in one container")
        if self.outcome is not None:
            events = list(event_lines.read_lines(self.log))
            ends = [event for event in events if isinstance(event, e.JobFinished)]
            told = self.outcome.diagnostics != "no attempt of the master is left" and not self.storage_down
            if told and [end.outcome for end in ends] != [self.outcome]:
                raise Broken(f"the log tells {len(ends)} ends")

    def dump(self) -> str:
        """The log, for people who look for the reason."""
        lines = [record(line) for line in [*self.log, *(self.master.pending if self.master else [])]]
        return "\n".join(f"{line.pop('time'):8.2f} {line.pop('kind'):14} {json.dumps(line)[:150]}" for line in lines)
