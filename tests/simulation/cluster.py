"""Simulates a whole cluster in one thread, around the real `step`, orders, admission, log ownership and recovery.

Only the surroundings of howdah are simulated: the clock, nodes, a ResourceManager, a file system, and a network that
delays, repeats and drops messages. Each seed determines a run: the same seed gives the same run. An executor keeps the
rules of the real one: it obeys no older epoch, ends when its lease is over, and looks for a master that took over.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
from collections.abc import Callable
from typing import Any

from executors import Executor, Node, Room
from invariants import Invariants
from masters import Master
from object_store import files_of
from resource_manager import HEARTBEAT_S, ResourceManager

from howdah.frameworks import find
from howdah.master.decisions.actions import CollectStacks, LaunchTask, ReleaseContainer
from howdah.master.decisions.executor_orders import OrderBuilder
from howdah.master.decisions.outputs import is_uploaded_by
from howdah.outputs.commit import temporary_directory
from howdah.spec import Exit, JobSpec, Outcome, StagedJob, TaskId
from howdah.spec.events import CancelRequested, ContainerEnded, StacksTaken
from howdah.wire.messages import Orders, Status

EXPIRY_S = 60.0
LATE_SHARE, LATE_S = 0.02, 30.0
"""The share of statuses that arrive a second time, and the longest delay of these in seconds."""


def record(line: str) -> dict[str, Any]:
    """A torn record has no content."""
    try:
        return dict(json.loads(line))
    except ValueError:
        return {"time": 0.0, "kind": "torn"}


class Simulation:
    """A job on a cluster, with faults until `calm_at` (seconds), after which nothing goes wrong any more.

    `without` breaks one rule on purpose, for the tests of these tests (WRONG in test_wrong_masters.py). Of the programs
    that start before the calm, a share (`hanging`) never end by themselves. With `slow` those that are told to end take
    their time, and so does a master that takes over. A `rough` world repeats statuses late, takes long to replace the
    log, and cancels while outputs are committed; masters are taken for dead after `expiry_s`. The job's directory is on
    an object store with `objects`.
    """

    def __init__(
        self,
        seed: int,
        job: JobSpec,
        calm_at: float = 120.0,
        without: str = "",
        hanging: float = 0.0,
        slow: bool = False,
        rough: bool = False,
        objects: bool = False,
    ) -> None:
        self.seed = seed
        self.hanging, self.luck = hanging, random.Random(f"hangs {seed}")  # its own: other runs stay what they were
        self.chance, self.job, self.calm_at, self.without = random.Random(seed), job, calm_at, without
        self.links, self.rough = random.Random(f"links {seed}"), rough
        self.now, self._numbers = 0.0, itertools.count(1)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self.nodes = [Node(f"node{number}", 4) for number in range(1, 6)]
        self.rooms: dict[str, Room] = {}
        self.fitness = random.Random(f"fitness {seed}")
        self.clock = random.Random(f"clock {seed}")
        self.slow = random.Random(f"slow {seed}") if slow else None
        self.expiry_s = EXPIRY_S
        self.unfit: set[str] = set()
        self.mute: set[str] = set()
        self.files, self.invariants, self.manager = files_of(self, objects), Invariants(self), ResourceManager(self)
        self.masters: list[Master] = []
        self.announced = 0
        self.longest_s = 60.0
        self.outcome: Outcome | None = None
        self.on_launch: Callable[[LaunchTask], None] = lambda _: None
        self.on_start: Callable[[Executor], None] = lambda _: None
        self.director = OrderBuilder("job-1", StagedJob(job, "file:///sim"), find("generic"))
        self.manager.start_master()
        self.later(HEARTBEAT_S, self.manager.manage)

    @property
    def master(self) -> Master | None:
        """Return the attempt that the ResourceManager regards as the master."""
        return self.manager.current

    @property
    def log(self) -> list[str]:
        return self.files.lines

    @property
    def seen(self) -> Any:
        """Return how often each thing happened."""
        return self.invariants.seen

    # The clock

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now + seconds, next(self._numbers), act))

    def number(self) -> int:
        return next(self._numbers)

    def run(self, until: float) -> None:
        while self._agenda and self._agenda[0][0] <= until and self.outcome is None:
            self.now, _, act = heapq.heappop(self._agenda)
            act()
            self.invariants.check()

    def delay(self) -> float:
        return self.chance.choice((0.001, 0.005, 0.02, 0.2))

    @property
    def calm(self) -> bool:
        return self.now >= self.calm_at

    # How long things take

    def claim_delay(self) -> float:
        """Between the beginning of a takeover's line and the log with it in its place."""
        return self.links.uniform(0, 5) if self.rough and self.links.random() < 0.5 else self.links.uniform(0, 0.2)

    def announce_delay(self) -> float:
        return self.slow.uniform(0, 15) if self.slow else 0.0

    def commit_seconds(self) -> float:
        return self.links.uniform(0, 20) if self.rough else self.links.uniform(0, 2)

    # What programs do

    def duration(self) -> float:
        return self.chance.uniform(1, self.longest_s)

    def hangs(self) -> bool:
        return bool(self.hanging) and not self.calm and self.luck.random() < self.hanging

    def look_into(self, master: Master, action: CollectStacks) -> None:
        """The stacks arrive, or do not; the tasks that they point to may be the right ones."""
        whom = tuple(self.luck.sample(action.tasks, self.luck.randrange(len(action.tasks) + 1)))
        if self.luck.random() < 0.7:
            taken = lambda: master.apply(StacksTaken(master.now, uri="stacks", suspects=whom))  # noqa: E731
            self.later(self.luck.uniform(0.1, 90), taken)

    def verdict(self) -> Exit:
        if not self.calm and self.chance.random() < 0.15:
            return self.chance.choice((Exit("exit", 1), Exit("memory", signal=9), Exit("port", 1)))
        return Exit("exit", 0)

    def uploads(self, id_: TaskId, attempt: int) -> tuple[str, ...]:
        """Return the uploads of a program that ended well; sometimes there are none."""
        if self.links.random() < 0.05:
            return ()
        made = [
            (number, output) for number, output in enumerate(self.job.outputs) if is_uploaded_by(self.job, output, id_)
        ]
        return tuple(
            f"{temporary_directory('job-1', number, output.path)}/{id_.slug}.{attempt}" for number, output in made
        )

    # The network between executors and the master

    def send(self, node: Node, number: int, status: Status, executor: Executor) -> None:
        if node.reachable:
            sent_at = self.now
            self.later(self.delay(), lambda: self.heard(node, number, status, executor, sent_at))
            if self.rough and not self.calm and self.links.random() < LATE_SHARE:
                self.seen["statuses repeated"] += 1
                again = self.links.uniform(0.2, LATE_S)
                self.later(again, lambda: self.heard(node, number, status, executor, sent_at, answer=False))

    def heard(
        self, node: Node, number: int, status: Status, executor: Executor, sent_at: float, answer: bool = True
    ) -> None:
        master = self.masters[number - 1]
        if not (master.alive and master.ready and master.node.reachable):
            return
        if not master.runs:  # it lies in the socket
            again = lambda: self.heard(node, number, status, executor, sent_at, answer)  # noqa: E731
            self.later(master.stopped_until - self.now, again)
            return
        master.hear(status, executor, sent_at, answer)

    def answer(self, executor: Executor, orders: Orders, requested_at: float) -> None:
        node = executor.room.node
        if node.reachable:
            self.later(self.delay(), lambda: executor.obey(orders, requested_at) if node.reachable else None)

    def refuse(self, executor: Executor) -> None:
        """The master does not want this attempt."""
        node = executor.room.node
        self.later(self.delay(), lambda: executor.leave(Exit("exit", 76)) if node.reachable else None)

    def notify(self, master: Master, id_: TaskId) -> None:
        """The answer to a poll that waits."""
        task = master.state.tasks[id_]
        room = self.rooms.get(task.container.id) if task.container else None
        executor = room.executor if room else None
        if executor and executor.alive and executor.master == master.number and task.phase is not None:
            self.answer(executor, master.orders(executor.status()), executor.received_at)

    def launch(self, master: Master, action: LaunchTask) -> None:
        """A NodeManager starts an executor, or refuses to."""
        room = self.rooms[action.container.id]
        if not master.when_running(lambda: self.launch(master, action)):
            return
        self.on_launch(action)
        refused = self.rough and not self.calm and self.links.random() < 0.03
        self.seen["launches refused"] += refused
        if refused or room.exit or room.released or not room.node.reachable:
            master.perform(ReleaseContainer(action.container.id))
            master.apply(ContainerEnded(master.now, action.container.id, Exit("start", detail="not started")))
            return
        room.executor = Executor(
            self, action.task, action.attempt, room, master.number, heard_at=self.now, leased_at=self.now
        )
        self.later(self.chance.uniform(0.1, 2), room.executor.live)

    # The user

    def cancel(self) -> None:
        """Asked of the master that was announced last, which answers if it can."""
        master = self.masters[self.announced - 1] if self.announced else None
        if master and master.runs and not master.state.handed_over and master.node.reachable:
            self.seen["cancels"] += 1
            master.apply(CancelRequested(master.now, "u"))

    def tempt_to_cancel(self, master: Master, seconds: float) -> None:
        """Somebody loses patience while outputs are committed."""
        if self.rough and self.links.random() < 0.5:
            self.later(seconds * self.links.random(), self.cancel)

    def finish(self, master: Master, outcome: Outcome) -> None:
        """The engine hears the job's end, and takes all containers back."""
        self.invariants.finished(master, outcome)
        self.outcome = outcome
        for room in self.rooms.values():
            room.released = True

    def dump(self) -> str:
        """The log, for people who look for the reason."""
        lines = [record(line) for line in [*self.log, *(self.master.log.pending if self.master else [])]]
        return "\n".join(f"{line.pop('time'):8.2f} {line.pop('kind'):14} {json.dumps(line)[:150]}" for line in lines)
