"""What an executor should do now: a pure function of the state, so that asking twice gives the same answer."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from howdah.data.commit import temporary
from howdah.data.deal import fetches
from howdah.frameworks import Framework, world_variables
from howdah.master.outputs import part, uploads
from howdah.master.state import GangState, Stage, TaskState
from howdah.spec import StagedJob, TaskId
from howdah.wire.messages import Assignment, Goal, LogRequest, Orders, Phase, Status, Upload

LEASE_S, STOPPED_LEASE_S = 30.0, 5.0
"""An executor without word from its master ends after this; one that was told to stop has less to wait for."""
_GOALS = {
    Stage.FORMING: Goal.JOIN,
    Stage.RUNNING: Goal.RUN,
    Stage.STOPPING: Goal.STOP,
    # Executors stay to the last, for their logs are read through them; releasing the container ends them.
    Stage.COMMITTING: Goal.STOP,
    Stage.DONE: Goal.STOP,
}
_BEYOND_START = (Phase.RUNNING, Phase.UPLOADING, Phase.ENDED)


@dataclass(frozen=True)
class Director:
    """Gives orders for one job. `staged.job` is the spec as its framework expanded it."""

    job_id: str
    staged: StagedJob
    framework: Framework

    def orders(self, state: GangState, status: Status, logs: tuple[LogRequest, ...] = ()) -> Orders:
        """The orders for the executor that sent `status`."""
        task = state.tasks[TaskId.parse(status.task)]
        goal = _GOALS[state.stage]
        starts = goal is Goal.RUN and not (status.epoch == state.epoch and status.phase in _BEYOND_START)
        return Orders(
            epoch=state.epoch,
            goal=goal,
            assignment=self.assignment(task) if status.phase is Phase.HELLO else None,
            environment=self.world_environment(state, task) if starts else {},
            stop_s=state.job.timeouts.stop_s,
            lease_s=STOPPED_LEASE_S if goal is Goal.STOP else LEASE_S,
            log_requests=logs,
        )

    def assignment(self, task: TaskState) -> Assignment:
        """What this container is for."""
        job, staged = self.staged.job, self.staged
        role = job.roles[task.id.role]
        return Assignment(
            command=role.command,
            environment={**job.env, **role.env},
            fetches=fetches(staged, task.id),
            uploads=tuple(
                Upload(
                    output.source,
                    posixpath.join(temporary(self.job_id, number, output.path), part(task)),
                    required=bool(output.tasks),
                )
                for number, output in enumerate(job.outputs)
                if uploads(job, output, task.id)
            ),
            ports=("main", *role.ports),
            hold_ports=self.framework.hold_ports,
            program_path=staged.program_path,
            secrets=tuple(job.secrets),
            memory_mib=role.resources.memory_mib,
            gpus=role.resources.gpus,
            localise_s=job.timeouts.localise_s,
            stop_s=job.timeouts.stop_s,
        )

    def world_environment(self, state: GangState, task: TaskState) -> Mapping[str, str]:
        """Variables that only the whole gang determines."""
        world = state.formed or state.world()
        ours = world_variables(world, task.id, job_id=self.job_id, job_name=state.job.name, attempt=task.attempt)
        return {**ours, **self.framework.environment(world, task.id)}


def satisfied(orders: Orders, status: Status) -> bool:
    """Whether the executor has these orders already, so that the answer can wait for news."""
    news = orders.assignment is not None or orders.log_requests or orders.goal is Goal.LEAVE
    return not news and status.told == orders.mark
