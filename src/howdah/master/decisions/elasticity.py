"""Reassigns containers: a spare takes the place of a lost container, and an elastic role goes on with fewer tasks, or
grows back.

The rule: nothing new is launched in such a container. The master orders its executor to become the executor of the
other task. The executor ends its work and starts anew, with a key that it derives from its present key
(`GangState.launch_attempt_of`), so that no key has to travel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from howdah.engines import ContainerPreferences
from howdah.master.decisions.actions import Action, NotifyExecutors, RecordEvent, RequestContainers
from howdah.master.state import GangState, TaskState
from howdah.spec import JobSpec, TaskId
from howdah.spec.events import Asked, Launched, Resized

GROW_AFTER_S = 60.0
"""Seconds for which a gang that formed anew runs at least before it grows, because growing restarts its programs."""
MAX_LOST = 10
"""How many lost spares are replaced."""


def find_spare(state: GangState, role: str) -> TaskState | None:
    """Return the spare whose container is taken, preferably one whose executor has reported."""
    return next(iter(_tasks_to_take_from(state, role)), None)


def reassign_container(state: GangState, giver: TaskState, taker: TaskState, now: float, actions: list[Action]) -> None:
    """Reassign the container of `giver`, which may be `taker` itself, to a new attempt of `taker`."""
    container, before = giver.container, giver.attempt_name
    assert container is not None
    giver.container = None
    giver.leave()
    taker.move_to(container, now)
    state.reassigned_to[before] = taker.attempt_name
    state.launch_attempt_of[taker.attempt_name] = state.launch_attempt_of.get(before, before)
    state.containers[container.id] = taker.id
    actions += [
        RecordEvent(Launched(now, task=taker.id, attempt=taker.attempt, container=container, giver=giver.id)),
        NotifyExecutors((giver.id,)),
    ]


# Requests for spares


def missing_spares(state: GangState, name: str) -> dict[TaskId, None]:
    """Return the inactive tasks that should hold a container: spares, and what an elastic role lacks. Growing starts
    programs again, so that only roles grow that can resume from a checkpoint."""
    role = state.job.roles[name]
    if state.spares_lost >= MAX_LOST or state.tasks[TaskId(name, 0)].epoch == 0:
        return {}
    grows = state.wanted[name] - role.replicas if state.job.checkpoint.path else 0
    held = sum(task.container is not None for task in state.inactive_tasks(name))
    free = (task.id for task in state.inactive_tasks(name) if task.container is None)
    return dict.fromkeys(id_ for id_, _ in zip(free, range(grows + role.spares - held), strict=False))


def request_spares(state: GangState, now: float, actions: list[Action]) -> None:
    """Ask for spares and missing tasks once the gang runs: they must not delay its start."""
    for name in state.job.roles:
        wanted = {} if state.formations else missing_spares(state, name)
        if wanted != state.spares.get(name, {}) and not state.pending_tasks[name]:
            state.spares[name] = wanted
            preferences = ContainerPreferences(avoid=state.job.roles[name].placement.avoid, spare=True)
            actions += [RequestContainers(name, len(wanted), preferences), RecordEvent(Asked(now, name, len(wanted)))]


# Sizes


def shrink_sizes(state: GangState) -> dict[str, int]:
    """Return the sizes with which the gang can go on without the containers that it lacks; empty when it cannot."""
    lacks = {name: len(tasks) for name, tasks in state.pending_tasks.items() if tasks}
    sizes = {name: state.job.roles[name].replicas - count for name, count in lacks.items()}
    enough = all(0 < state.job.roles[name].min_replicas <= size for name, size in sizes.items())
    return sizes if enough else {}


def grow_sizes(state: GangState, now: float) -> dict[str, int]:
    """Return the sizes to which the gang can grow now: once all missing containers have come, or no further container
    has come for a while."""
    sizes: dict[str, int] = {}
    if now - state.formed_at < GROW_AFTER_S:
        return sizes
    for name, role in state.job.roles.items():
        missing = state.wanted[name] - role.replicas
        ready = [task for task in _tasks_to_take_from(state, name) if task.phase is not None]
        late = bool(ready) and now - max(task.launched_at for task in ready) > state.job.timeouts.hold_s
        if missing > 0 and (len(ready) >= missing or late):
            sizes[name] = role.replicas + min(missing, len(ready))
    return sizes


def resize(
    state: GangState, sizes: Mapping[str, int], reason: str, now: float, actions: list[Action]
) -> tuple[TaskId, ...]:
    """Go on with these sizes, and return the tasks that start together. Every task changes: each executor becomes that
    of a new attempt, and executors of tasks whose indices are too high now fill the gaps."""
    names = {id_.role for name in sizes for id_ in state.tasks[TaskId(name, 0)].peers}
    state.job = with_replicas(state.job, sizes)
    for name, size in sizes.items():
        actions += [RecordEvent(Resized(now, name, size, reason)), RequestContainers(name, 0)]
    for name in state.job.roles:
        if name in names:
            _reassign_all(state, name, now, actions)
            state.pending_tasks[name].clear()
    return tuple(task.id for name in state.job.roles if name in names for task in state.of_role(name))


def with_replicas(job: JobSpec, sizes: Mapping[str, int]) -> JobSpec:
    """Return the job with other numbers of replicas."""
    roles = {name: replace(role, replicas=sizes.get(name, role.replicas)) for name, role in job.roles.items()}
    return replace(job, roles=roles)


def _reassign_all(state: GangState, name: str, now: float, actions: list[Action]) -> None:
    givers = iter(_tasks_to_take_from(state, name))
    for task in list(state.of_role(name)):
        giver = task if task.container is not None else next(givers, None)
        if giver is not None:
            reassign_container(state, giver, task, now, actions)
    for task in state.inactive_tasks(name):
        task.epoch, task.peers, task.world, task.exit, task.started = 0, (), None, None, 0


def _tasks_to_take_from(state: GangState, name: str) -> list[TaskState]:
    """Return the tasks whose containers can be taken, those first whose executors have reported."""
    holders = [task for task in state.inactive_tasks(name) if task.container is not None]
    return sorted(holders, key=lambda task: (task.phase is None, task.id.index))
