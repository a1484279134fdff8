"""Builds the orders of an executor as a pure function of the state, so that asking twice gives the same answer."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import field, replace

from howdah.frameworks import Framework, command_of, files_of, key_variable, world_variables
from howdah.inputs.assignment import placeholder_uris, plan_fetches
from howdah.inputs.streaming.split_assignment import feeds
from howdah.master.decisions import failed_outputs, heartbeat_timeouts
from howdah.master.decisions.outputs import is_uploaded_by, part_directory, stdout_output
from howdah.master.preflight import preflight_policy
from howdah.master.snapshots import snapshot_policy
from howdah.master.state import GangState, TaskState
from howdah.outputs.commit import temporary_directory
from howdah.spec import JobSpec, StagedJob, TaskId, chief, preflight, uris
from howdah.spec.containers import requested_image, requested_mounts, runtime_variables
from howdah.wire.messages import (
    Assignment,
    CheckOrder,
    CheckpointSyncOrder,
    EventFileSyncOrder,
    Goal,
    ImageCheck,
    ImageOrder,
    LogRequest,
    Orders,
    Phase,
    Status,
    Upload,
)

_BEYOND_START = (Phase.RUNNING, Phase.UPLOADING, Phase.ENDED)


@dataclasses.dataclass(frozen=True)
class OrderBuilder:
    """Builds the orders of one job's executors."""

    job_id: str
    """The job's id."""
    staged: StagedJob
    """The staged job, with the spec that the framework has expanded."""
    framework: Framework
    """The framework of the job."""
    image_check: Callable[[JobSpec, str, str], ImageCheck | None] | None = None
    """Returns how an executor of this job, role and host finds out whether the engine runs it in the role's image; None
    if the executors themselves run the images."""
    _last: dict[str, StagedJob] = field(default_factory=dict, init=False, repr=False)
    """A cache with the one key "job": the staged job that `_with_present_sizes` returned last for changed sizes."""

    def orders(self, state: GangState, status: Status, logs: tuple[LogRequest, ...] = (), relay: int = 0) -> Orders:
        """Return the orders for the executor that sent `status`. `relay` is the number of the last request for a relay
        process."""
        task = state.tasks[TaskId.parse(status.task)]
        goal = _goal(state, task)
        starts = goal is Goal.RUN and not (status.epoch == task.epoch and status.phase in _BEYOND_START)
        return Orders(
            epoch=task.epoch,
            goal=goal,
            assignment=self.assignment(state, task, status.host)
            if status.phase is Phase.HELLO and task.epoch
            else None,
            environment=self.world_environment(state, task) if starts else {},
            files=files_of(self.framework, task.world, task.id) if starts and task.world else {},
            stop_s=state.job.timeouts.stop_s,
            lease_s=heartbeat_timeouts.lease_s(goal),
            log_requests=logs,
            snapshots=snapshot_policy.orders(state, task),
            keep=goal is Goal.STOP and failed_outputs.is_keeping(state),
            notice=task.notice,
            pairs=preflight_policy.pair_test_order(state, task) if goal is Goal.JOIN else None,
            relay=relay,
        )

    def assignment(self, state: GangState, task: TaskState, host: str = "") -> Assignment:
        """Return what the executor does in this container, which is on `host`."""
        job, staged = state.job, self._with_present_sizes(state.job)
        role = job.roles[task.id.role]
        spread = {file.name: file.into for file in staged.files_of(task.id.role) if file.kind == "spread"}
        return Assignment(
            command=command_of(self.framework, task.id, role.command),
            environment={**job.env, **role.env},
            extend=job.extend,
            fetches=plan_fetches(staged, task.id),
            directories=job.directories,
            feeds=feeds(staged, task.id),
            stdout_output=stdout_output(self.job_id, job, task),
            placeholder_uris=placeholder_uris(staged, task.id),
            uploads=tuple(
                Upload(
                    output.source,
                    posixpath.join(temporary_directory(self.job_id, number, output.path), part_directory(task)),
                    required=bool(output.tasks) and not output.optional,
                    keep_failed=output.keep_failed,
                )
                for number, output in enumerate(job.outputs)
                if output.strategy == "upload" and is_uploaded_by(job, output, task.id)
            ),
            ports=("main", *role.ports),
            hold_ports=self.framework.hold_ports,
            program_path=staged.program_path,
            secrets=(*job.secrets, *filter(None, [key_variable(self.framework)])),
            memory_mib=role.resources.memory_mib,
            gpus=role.resources.gpus,
            localise_s=job.timeouts.localise_s,
            stall_s=job.timeouts.stall_s,
            unpack_into_workdir=spread,
            yields=role.yields,
            checkpoint_sync=_checkpoint_sync(job, task.id),
            event_file_sync=_event_file_sync(job, task.id, self.job_id, self.staged.submission.time),
            checks=_checks(job, role.resources.gpus),
            port_range=job.port_range,
            image=self._image(job, task.id.role, host),
        )

    def _image(self, job: JobSpec, role: str, host: str) -> ImageOrder | None:
        variables = runtime_variables(job, role)
        image = requested_image(variables)
        if not image:
            return None
        if self.image_check is not None:
            check = self.image_check(job, role, host)
            return ImageOrder(image, check=check) if check is not None else None  # it is certain without a check
        tool = self.staged.settings.get("container_tool", "")
        return ImageOrder(image, requested_mounts(variables), tool)

    def _with_present_sizes(self, job: JobSpec) -> StagedJob:
        """Return the staged job with the present sizes of roles. While the sizes stay the same, this is the same
        object."""
        if job is self.staged.job:
            return self.staged
        if self._last.get("job") is None or self._last["job"].job is not job:
            self._last["job"] = replace(self.staged, job=job)
        return self._last["job"]

    def world_environment(self, state: GangState, task: TaskState) -> Mapping[str, str]:
        """Return variables that only the whole gang determines."""
        assert task.world is not None
        variables = world_variables(
            task.world,
            task.id,
            job_id=self.job_id,
            job_name=state.job.name,
            attempt=task.attempt,
            replicas=state.role(task.id).replicas,
        )
        directories = {**_checkpoint(state, task), **_event_file_directory(state.job)}
        environment = self.framework.environment(task.world, task.id)
        return {**_announced_values(state), **directories, **variables, **environment}


def _checkpoint(state: GangState, task: TaskState) -> dict[str, str]:
    """Return the variables with the directory of the programs' checkpoints and the checkpoint to resume from. Files of
    this machine are given as paths, all others as URIs."""
    found = {
        "HOWDAH_CHECKPOINT_DIR": state.job.checkpoint.path,
        "HOWDAH_RESUME_FROM": state.checkpoint_lookups.found.get(task.epoch, ""),
    }
    local = not state.job.checkpoint.local
    return {name: uris.path(uri) if local and uri.startswith("file:") else uri for name, uri in found.items() if uri}


def _event_file_directory(job: JobSpec) -> dict[str, str]:
    """Return the directory of event files; the executor sets it when the directory is local."""
    uri = job.board.path
    if not uri or job.board.local:
        return {}
    directory = uris.path(uri) if uri.startswith("file:") else uri
    return {"HOWDAH_BOARD_DIR": directory, "TENSORBOARD_LOGGING_DIR": directory}


def _checks(job: JobSpec, gpus: int) -> CheckOrder:
    """Return the pre-flight checks; without GPUs, GPU checks are made only if they are named."""
    spec = job.preflight
    left_out = () if gpus else {*preflight.OF_GPUS} - {*spec.checks}
    alone = tuple(name for name in preflight.checks_of_job(job) if name in preflight.LOCAL and name not in left_out)
    return CheckOrder(checks=alone, disk_mib=spec.disk_mib, limit_s=spec.limit_s, pairs=preflight.pairs_wanted(job))


def _event_file_sync(job: JobSpec, task: TaskId, job_id: str, submitted: float) -> EventFileSyncOrder | None:
    spec = job.board
    if not spec.local:
        return None
    if spec.tasks == "chief":
        writes, is_only_writer = task == chief(job), True
    else:
        writes = spec.tasks in ("", task.role, str(task))
        is_only_writer = ":" in spec.tasks or (job.roles[task.role].replicas if spec.tasks else job.task_count) == 1
    uri = spec.path if is_only_writer else uris.join(spec.path, task.slug)
    where = uri if writes else ""
    return EventFileSyncOrder(spec.local, where, every_s=spec.every_s, job=job_id, since_ms=int(submitted * 1000))


def _checkpoint_sync(job: JobSpec, task: TaskId) -> CheckpointSyncOrder | None:
    spec = job.checkpoint
    if not spec.path or not spec.local:
        return None
    is_chief = task == chief(job)
    writes = spec.tasks in ("all", task.role, str(task)) or (is_chief and spec.tasks == "chief")
    is_only = spec.tasks in ("chief", str(task))
    count = job.task_count if spec.tasks == "all" else job.roles[task.role].replicas
    return CheckpointSyncOrder(
        spec.local,
        uri=spec.path,
        every_s=spec.every_s,
        writes=writes,
        replaces=is_chief or spec.tasks == str(task),
        is_alone=is_only or count == 1,
        valid=spec.valid,
    )


def _announced_values(state: GangState) -> dict[str, str]:
    """Return the values that tasks have announced for later roles; the first task of a role that announces one
    decides."""
    if not any(role.yields for role in state.job.roles.values()):  # every task of a large gang asks for it
        return {}
    return {name: value for task in reversed(state.tasks.values()) for name, value in task.announced_values.items()}


def _goal(state: GangState, task: TaskState) -> Goal:
    # Executors stay to the end, because logs are read through them; releasing the container ends them.
    if not state.open or task.stopped:
        return Goal.STOP
    return Goal.RUN if task.formed and task.epoch not in state.unrecorded else Goal.JOIN


def is_up_to_date(orders: Orders, status: Status) -> bool:
    """Return whether the executor has these orders already, so that the answer can wait for a change."""
    news = orders.assignment is not None or orders.log_requests or orders.goal is Goal.LEAVE
    return not news and status.orders_digest == orders.digest
