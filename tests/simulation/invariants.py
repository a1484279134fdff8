"""Checks what must hold in every run, after each event and wherever it could break."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from executors import UNHEARD_GRACE_S, Broken, Executor
from masters import LOST_ATTEMPTS, Master

from howdah.master.app import CLAIM_S
from howdah.master.decisions.heartbeat_timeouts import FENCE_S, TAKEOVER_S
from howdah.master.state import Stage
from howdah.spec import Outcome, State, TaskId, event_lines
from howdah.spec.events import CancelRequested, Event, JobFinished
from howdah.wire.messages import Status

if TYPE_CHECKING:
    from cluster import Simulation

DECIDED = (Stage.COMMITTING, Stage.DONE)


class Invariants:
    """The invariants of one run. `seen` counts events of the run, for people and for the tests of these tests."""

    def __init__(self, sim: Simulation) -> None:
        self.sim, self.seen = sim, Counter[str]()
        self.joined: set[tuple[TaskId, int]] = set()
        self.formed: set[int] = set()
        self.started: set[TaskId] = set()
        self.decided: Outcome | None = None
        """The outcome with which outputs began to be published or removed."""
        self.committed_by: Counter[int] = Counter()
        self.published = self.discarded = False

    # Programs

    def world_formed(self, master: Master, epoch: int) -> None:
        """All or none: no program may start before the last task has joined."""
        self.formed.add(epoch)
        members = [task.id for task in master.state.tasks.values() if task.epoch == epoch and task.exit is None]
        if missing := [task for task in members if (task, epoch) not in self.joined]:
            raise Broken(f"epoch {epoch} is formed without {missing}")

    def program_started(self, executor: Executor) -> None:
        if executor.program not in self.formed:
            raise Broken(f"{executor.task} starts in epoch {executor.program}, which was never formed")
        others = [room.executor for room in self.sim.rooms.values() if room.executor and room.executor is not executor]
        for other in others:
            if other.task == executor.task and other.program:
                raise Broken(f"{executor.task} runs twice, epochs {other.program} and {executor.program}")
        if executor.task in self.started and not self._may_start_again(executor.task):
            raise Broken(f"{executor.task} starts a second time, and nobody asked for it")
        self.started.add(executor.task)

    def _may_start_again(self, task: TaskId) -> bool:
        """Return whether the job file permits a second start; otherwise it promises that there is only one."""
        job = self.sim.job
        several = any(each.spares or each.min_replicas for each in job.roles.values())
        return bool(job.retries) or several or job.roles[task.role].on_failure in ("restart", "restart-role")

    # What a master takes, and whom it answers

    def heard(self, master: Master, status: Status, sequence: int, before: tuple[object, ...]) -> None:
        """A status counts if it comes from the executor of the task's container, and is newer than the last; otherwise
        it changes nothing."""
        task = master.state.tasks[TaskId.parse(status.task)]
        if status.sequence <= sequence and self.knowledge(master, task.id) != before:
            raise Broken(f"an older status of {task.id} is accepted")

    def knowledge(self, master: Master, id_: TaskId) -> tuple[object, ...]:
        """Return the state that a status can change."""
        task = master.state.tasks[id_]
        at = (task.attempt, task.epoch, task.phase, task.sequence, task.joined, task.started)
        return (*at, task.exit, task.idle_s, task.ports, task.uploaded)

    def admitted(self, master: Master, executor: Executor) -> None:
        """An answer keeps an executor alive. So only the executor of the task's container gets one, and only while no
        other master can have begun to count on its end."""
        task = master.state.tasks[executor.task]
        if task.container is not None and task.container.id != executor.room.container.id:
            raise Broken(f"a status of {executor.task} from another container is accepted")
        writer = self.sim.files.writer
        if writer > master.number:
            self.seen["answers of a master that was replaced"] += 1

    def obeyed(self, executor: Executor) -> None:
        """A lease that a replaced master has renewed ends before another program of the task may start."""
        files = self.sim.files
        if files.writer > executor.master and executor.program:
            ends = executor.leased_at + executor.lease_s + UNHEARD_GRACE_S
            fence = self.sim.masters[files.writer - 1].claiming_since + TAKEOVER_S + FENCE_S
            if ends > max(fence, files.replaced_at - CLAIM_S + TAKEOVER_S + FENCE_S):
                raise Broken(f"the lease of {executor.task} outlasts the fence by {ends - fence:.1f} s")

    # The end

    def cancelled(self, master: Master, before: tuple[Stage, Outcome | None]) -> None:
        """A cancel counts while nothing is decided, and changes nothing after that."""
        stage = before[0]
        is_open = stage in (Stage.FORMING, Stage.RUNNING)
        if is_open and (master.state.outcome is None or master.state.outcome.state is not State.CANCELLED):
            raise Broken("a cancel is not heard")
        if not is_open and (master.state.stage, master.state.outcome) != before:
            raise Broken(f"a cancel changes the outcome while the job is {stage.value}")
        self.seen[f"cancel while {'open' if is_open else stage.value}"] += 1

    def commit_begun(self, master: Master, keep: bool) -> None:
        """Once in each master's life, and by all of them in the same way."""
        outcome = master.state.outcome
        assert outcome is not None
        self.committed_by[master.number] += 1
        self.seen["commits"] += 1
        self.seen["commits by a second master"] += len(self.committed_by) > 1
        if self.committed_by[master.number] > 1:
            raise Broken(f"master {master.number} commits twice")
        if keep != (outcome.state is State.SUCCEEDED):
            raise Broken(f"outputs of a job that {outcome.state.value} are {'published' if keep else 'removed'}")
        if self.decided is not None and self.decided.state is not outcome.state:
            raise Broken(
                f"the outcome was {self.decided.state.value} when outputs moved, now it is {outcome.state.value}"
            )
        self.decided = outcome

    def outputs_moved(self, keep: bool) -> None:
        self.published, self.discarded = self.published or keep, self.discarded or not keep
        if self.published and self.discarded:
            raise Broken("outputs are published and removed")

    def stepped(self, master: Master, before: tuple[Stage, Outcome | None], event: Event) -> None:
        """A decision stays; only another failure may turn out to be the first."""
        stage, outcome = before
        if stage not in (Stage.FORMING, Stage.RUNNING) and master.state.open:
            raise Broken(f"a job that was ending goes on after {type(event).__name__}")
        after = master.state.outcome
        if stage in DECIDED and outcome is not None and (after is None or after.state is not outcome.state):
            raise Broken(f"{type(event).__name__} changes the outcome while outputs are committed")

    def taken_over(self, master: Master, log: list[Event]) -> None:
        """A job that was cancelled before anything else was decided does not go on."""
        if master.state.open and any(isinstance(event, CancelRequested) for event in log):
            raise Broken("a job that was cancelled goes on with the next master")

    def handed_over(self, master: Master) -> None:
        """The job is the next master's to decide."""
        if not master.state.handed_over:
            raise Broken(f"master {master.number} goes on deciding, though its attempt is over")

    def refused(self, master: Master) -> None:
        """The engine does not know this attempt any more: the attempt is over."""
        self.seen["heartbeats refused"] += 1
        if master.alive and not (master.state.handed_over or master.leaving):
            raise Broken(f"master {master.number} goes on though it is refused")

    def finished(self, master: Master, outcome: Outcome) -> None:
        """The engine is told the outcome."""
        sim = self.sim
        if outcome.state is State.CANCELLED and not self.seen["cancels"]:
            raise Broken(f"nobody cancelled a job that only lost its master: {outcome.diagnostics}")
        if sim.outcome is not None:
            raise Broken("a second end")
        if self.decided is not None and self.decided.state is not outcome.state:
            raise Broken(
                f"the job {outcome.state.value}, and its outputs are those of one that {self.decided.state.value}"
            )
        leaked = [id_ for id_, room in sim.rooms.items() if not (room.exit or room.released)]
        if set(leaked) - master.state.containers.keys():
            raise Broken(f"nobody gives back {leaked}")

    def check(self) -> None:
        """After every event."""
        sim = self.sim
        for master in sim.masters:
            if master.alive and master.ready:
                held = [task.container.id for task in master.state.tasks.values() if task.container is not None]
                if len(held) != len(set(held)):
                    raise Broken("two tasks in one container")
        if sim.outcome is not None:
            self._check_end(sim.outcome)

    def _check_end(self, outcome: Outcome) -> None:
        """The log records the end that the engine was told; the outputs exist if and only if the job succeeded."""
        lines = [line for line in self.sim.log if JobFinished.__name__ in line]  # decoding all of them takes long
        ends = [event for event in event_lines.read_lines(lines) if isinstance(event, JobFinished)]
        files = self.sim.files
        lost = outcome.diagnostics == LOST_ATTEMPTS or files.away or files.failed_at == self.sim.now
        if not lost and [end.outcome for end in ends] != [outcome]:
            raise Broken(f"the log tells {len(ends)} ends")
        if not lost and self.sim.job.outputs and self.published != (outcome.state is State.SUCCEEDED):
            raise Broken(f"the job {outcome.state.value}, and its output is {'' if self.published else 'not '}there")
