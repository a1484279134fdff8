"""Forms the gang: it begins stages, asks for containers, and starts tasks together when all have joined.

The rule is all or none. An incomplete gang gives its containers back after a while, so that two of them cannot wait for
each other for ever. Without a gang (`gang: false`) each task is a formation of its own.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Iterable

from howdah.engines import NO_PREFERENCES, ContainerPreferences
from howdah.master.decisions import elasticity
from howdah.master.decisions.actions import (
    Action,
    LaunchTask,
    NotifyExecutors,
    RecordEvent,
    ReleaseContainer,
    RequestContainers,
    StartRecorded,
)
from howdah.master.decisions.job_completion import fail
from howdah.master.decisions.restart_policy import may_start_again
from howdah.master.preflight import preflight_policy
from howdah.master.state import Formation, GangState, Stage, TaskState
from howdah.spec import TaskId, events
from howdah.spec.message import join_messages, message

MIN_ANNOUNCED_WAIT_S = 2.0
"""A shorter wait for the start of programs is not announced."""
MAX_PENALTIES = 1.5
"""A node with a larger penalty gets no task: one that caused two failures within two hours and a half."""

# Stages


def begin_stages(state: GangState, now: float, actions: list[Action]) -> None:
    """Ask for containers for the roles whose predecessors have ended well."""
    waiting = [name for name in state.job.roles if next(state.of_role(name)).epoch == 0]
    begun = [name for name in waiting if all(task.exit for task in state.of_role(*state.job.roles[name].after))]
    if not begun:
        return
    before = {other for name in begun for other in state.job.roles[name].after}
    if before:
        names = {"before": ", ".join(sorted(before)), "roles": ", ".join(begun)}
        actions.append(RecordEvent(events.Noted(now, message("{before} ended: {roles} can begin", **names))))
        for task in [*state.of_role(*before), *(task for name in before for task in state.inactive_tasks(name))]:
            give_up_container(state, task, now, actions)
    tasks = tuple(task.id for task in state.of_role(*begun))
    form_together(state, [tasks] if state.job.gang else [(task,) for task in tasks], tasks, now, actions)


def form_together(
    state: GangState,
    groups: Iterable[tuple[TaskId, ...]],
    peers: tuple[TaskId, ...],
    now: float,
    actions: list[Action],
    not_before: float = 0.0,
) -> None:
    """Give each of `groups` a new epoch in which its tasks start together. Their world consists of `peers`: a group is
    the whole gang, or a part of it that restarts; without a gang each task is alone in its world."""
    for group in groups:
        state.epoch += 1
        for task in (state.tasks[id_] for id_ in group):
            task.epoch, task.peers = state.epoch, peers if state.job.gang else group
            task.exit, task.uploaded, task.launched_at = None, (), now
            if task.container is None:
                task.heard_at = now
                _replace(state, task, now, actions)
        state.formations[state.epoch] = Formation(state.epoch, tasks=group, waiting=set(group), not_before=not_before)
    state.requested_at = now
    request_containers(state, now, actions)


def _replace(state: GangState, task: TaskState, now: float, actions: list[Action]) -> None:
    """Replace the task's container by a spare, or by a container still to come."""
    spare = elasticity.find_spare(state, task.id.role)
    if spare is None:
        state.pending_tasks[task.id.role][task.id] = None
    else:
        elasticity.reassign_container(state, spare, task, now, actions)


def give_up_container(state: GangState, task: TaskState, now: float, actions: list[Action]) -> None:
    """Release a container that its task does not need any more."""
    if task.container is not None:
        if task.started == task.epoch and (task.exit is None or task.exit.cause == "stalled"):
            task.fence(now)  # its program is not known to have ended
        actions.append(ReleaseContainer(task.container.id))
        state.containers.pop(task.container.id, None)
        task.container = None


# Containers


def request_containers(state: GangState, now: float, actions: list[Action]) -> None:
    """Ask for all containers that are missing."""
    state.granted_at, state.request_again_at = now, 0.0
    for role, tasks in state.pending_tasks.items():
        if tasks or state.spares.get(role):
            actions += [
                RequestContainers(role, len(tasks), _container_preferences(state, role)),
                RecordEvent(events.Asked(now, role, len(tasks))),
            ]
    state.spares.clear()


def _container_preferences(state: GangState, name: str) -> ContainerPreferences:
    role = state.job.roles[name]
    grown = role.grown(state.restarted.get(name, 0))
    pending = state.pending_tasks[name]
    prefer = Counter(host for id_ in pending for host in state.preferred_hosts.get(id_, ()))
    prefer.update(dict.fromkeys(role.placement.prefer, len(pending)))
    memory_mib = 0 if grown is role else grown.resources.memory_mib
    preferences = ContainerPreferences(memory_mib, prefer, _avoided_nodes(state, name))
    return NO_PREFERENCES if preferences == NO_PREFERENCES else preferences


def _avoided_nodes(state: GangState, name: str) -> tuple[str, ...]:
    placement = state.job.roles[name].placement
    taken = [task.node for task in state.of_role(name) if task.container] if placement.spread else []
    return tuple(dict.fromkeys((*placement.avoid, *bad_nodes(state), *taken)))


def bad_nodes(state: GangState) -> list[str]:
    """Return the nodes that caused too many failures."""
    return [node for node, penalty in state.node_penalties.items() if penalty > MAX_PENALTIES]


def on_allocated(state: GangState, event: events.Allocated, actions: list[Action]) -> None:
    """Give a granted container to the first task that wants one."""
    container = event.container
    wanting = state.pending_tasks.get(container.role, {}) or state.spares.get(container.role, {})
    if not wanting or not state.open or state.request_again_at:
        actions.append(ReleaseContainer(container.id))
        return
    if container.node in _avoided_nodes(state, container.role):
        actions += [
            ReleaseContainer(container.id),
            RequestContainers(container.role, len(wanting), _container_preferences(state, container.role)),
        ]
        return
    id_ = _closest_task(state, container.node, wanting)
    del wanting[id_]
    task = state.tasks[id_]
    state.granted_at = event.time
    state.containers[container.id] = id_
    task.move_to(container, event.time)
    actions += [
        RecordEvent(event),
        RecordEvent(events.Launched(event.time, task=id_, attempt=task.attempt, container=container)),
        LaunchTask(id_, task.attempt, container),
    ]


def _closest_task(state: GangState, node: str, wanting: Collection[TaskId]) -> TaskId:
    """Return the task that has most of its data on the node, else the next task that has no data anywhere, else the
    next task."""
    if state.preferred_hosts:
        at_node = [id_ for id_ in wanting if node in state.preferred_hosts.get(id_, ())]
        closest = min(at_node, key=lambda id_: state.preferred_hosts[id_].index(node), default=None)
        closest = closest or next((id_ for id_ in wanting if not state.preferred_hosts.get(id_)), None)
        if closest is not None:
            return closest
    return next(iter(wanting))


def _release_partial_gang(state: GangState, now: float, actions: list[Action]) -> None:
    """Release the containers of an incomplete gang, and ask again after a wait that differs by job: two half-granted
    gangs must not wait for each other."""
    state.releases += 1
    base = min(5.0 * 2 ** (state.releases - 1), 120.0)
    jitter = zlib.crc32(f"{state.id}/{state.releases}".encode()) % 1000 / 1000
    wait = base * (1.0 + jitter)
    reason = message(
        "only part of the gang was granted within {seconds} s ({what})",
        seconds=f"{state.job.timeouts.hold_s:.0f}",
        what=_describe_shortage(state),
    )
    actions.append(RecordEvent(events.GangReleased(now, reason, wait)))
    for role in state.job.roles:
        actions.append(RequestContainers(role, 0))
    for task in list(state.forming()):
        give_up_container(state, task, now, actions)
        task.leave()
        state.pending_tasks[task.id.role][task.id] = None
    for formation in state.formations.values():
        formation.waiting = set(formation.tasks)
    state.request_again_at = now + wait


def _describe_shortage(state: GangState) -> str:
    return ", ".join(
        f"{role}: {state.job.roles[role].replicas - len(tasks)} of {state.job.roles[role].replicas}"
        for role, tasks in state.pending_tasks.items()
    )


# Joining


def on_joined(state: GangState, task: TaskState, now: float, actions: list[Action]) -> None:
    """Note that the task is ready; start the programs with the last task of its formation."""
    formation = state.formations.get(task.epoch)
    if formation is not None:
        formation.waiting.discard(task.id)
        start_if_all_joined(state, formation, now, actions)


def remove_from_formation(state: GangState, task: TaskState, now: float, actions: list[Action]) -> None:
    """Remove a task that ended before its gang formed, where its end does not matter: the others form without it."""
    state.pending_tasks[task.id.role].pop(task.id, None)
    formation = state.formations.get(task.epoch)
    if formation is not None:
        formation.waiting.discard(task.id)
        formation.tasks = tuple(id_ for id_ in formation.tasks if id_ != task.id)
        start_if_all_joined(state, formation, now, actions)


def start_if_all_joined(state: GangState, formation: Formation, now: float, actions: list[Action]) -> None:
    """Start the programs if all tasks have joined and the time has come."""
    if formation.waiting or not state.open:  # runs at each join: do no work for all tasks before this line
        return
    not_before = max((formation.not_before, *(state.tasks[id_].fenced_until for id_ in formation.tasks)))
    if now < not_before:
        _announce_wait(state, formation, not_before - now, now, actions)
        return
    if state.job.checkpoint.path and state.checkpoint_lookups.needed(formation.epoch, actions):
        return
    if preflight_policy.begin_if_needed(state, formation, now, actions):
        return
    if not formation.tasks or not state.replaying:  # the log says whether and when the earlier master decided it
        form_world(state, formation, now, actions)


def form_world(state: GangState, formation: Formation, now: float, actions: list[Action]) -> None:
    """Form the world of these tasks: their programs may start."""
    del state.formations[formation.epoch]
    if not formation.tasks:
        return
    preflight_policy.record_preflight_passed(state, formation, now, actions)
    peers = [id_ for id_ in state.tasks[formation.tasks[0]].peers if state.tasks[id_].ports]
    restarts = max(state.tasks[id_].worlds for id_ in formation.tasks)
    world = state.world(peers, formation.epoch, restarts)
    for id_ in formation.tasks:
        state.tasks[id_].world = world
        state.tasks[id_].worlds += 1
    if not all(may_start_again(state.job, id_.role) for id_ in formation.tasks):
        state.unrecorded.add(formation.epoch)
    state.stage, state.formed_at = Stage.RUNNING, now
    state.running_since = state.running_since or now
    actions += [RecordEvent(events.WorldFormed(now, formation.epoch)), NotifyExecutors(formation.tasks)]


def _announce_wait(state: GangState, formation: Formation, wait_s: float, now: float, actions: list[Action]) -> None:
    """Record once why programs do not start yet, though all tasks have joined."""
    if formation.wait_announced or wait_s < MIN_ANNOUNCED_WAIT_S:
        return
    formation.wait_announced = True
    fenced = max((state.tasks[id_] for id_ in formation.tasks), key=lambda task: task.fenced_until)
    text = message("all have joined; the programs start in {seconds} s", seconds=f"{wait_s:.0f}")
    if fenced.fenced_until > max(now, formation.not_before):
        template = "{sentence}: until then an earlier program of {task} may still run: its end was not reported"
        text = message(template, sentence=text, task=fenced.id)
    actions.append(RecordEvent(events.Noted(now, text, decided=True)))


def on_start_recorded(state: GangState, event: StartRecorded, actions: list[Action]) -> None:
    """Start the programs that waited for the event log."""
    state.unrecorded.discard(event.epoch)
    if event.problem and state.open:
        template = "the start of the programs can't be written to the event log: {problem}"
        reason = message(template, problem=event.problem)
        fail(state, reason, event.time, actions, unrecorded=True)
    elif state.open:
        actions.append(NotifyExecutors(tuple(task.id for task in state.tasks.values() if task.epoch == event.epoch)))


def on_checkpoint_found(state: GangState, event: events.CheckpointFound, actions: list[Action]) -> None:
    """Start the programs that waited for their checkpoint. Where the lookup failed they must not begin anew, because
    they would overwrite what is there."""
    actions.append(RecordEvent(event))
    state.checkpoint_lookups.end(event.epochs, event.uri, actions)
    if event.error and state.open:
        template = "the checkpoints in {uri} can't be read: {reason}"
        reason = message(template, uri=state.job.checkpoint.path, reason=event.error)
        fail(state, reason, event.time, actions)
    for formation in [state.formations[epoch] for epoch in event.epochs if epoch in state.formations]:
        start_if_all_joined(state, formation, event.time, actions)


# Deadlines


def check_formation_deadlines(state: GangState, now: float, actions: list[Action]) -> None:
    """Check that the gang is complete in time, and does not hold a part of its containers for long."""
    for formation in list(state.formations.values()):
        if not formation.waiting:
            start_if_all_joined(state, formation, now, actions)
    limits, missing = state.job.timeouts, state.missing
    part = 0 < missing < sum(len(formation.tasks) for formation in state.formations.values())
    if state.request_again_at:
        if now >= state.request_again_at:
            request_containers(state, now, actions)
    elif not state.formations:
        return
    elif deadline_passed(limits.gang_s, now - state.requested_at) and _is_awaited(state, now):
        not_granted = "the gang was not complete after {seconds} s (timeouts.gang); granted: {what}"
        not_joined = "the gang was not complete after {seconds} s (timeouts.gang); not joined: {what}"
        template = not_granted if missing else not_joined
        what = _describe_shortage(state) if missing else _late_tasks_text(state)
        reason = message(template, seconds=f"{limits.gang_s:.0f}", what=what)
        fail(state, reason, now, actions, unrecorded=True)
    elif missing and deadline_passed(limits.hold_s, now - state.granted_at):
        bad, sizes = bad_nodes(state), elasticity.shrink_sizes(state) if state.job.gang and part else {}
        if bad and not (sizes and state.preflight.nodes):
            _readmit_nodes(state, bad, now, actions)
        elif not (state.job.gang and part):
            return
        elif sizes:
            template = "no container came within {seconds} s (timeouts.hold)"
            _resize(state, sizes, message(template, seconds=f"{limits.hold_s:.0f}"), now, actions)
        else:
            _release_partial_gang(state, now, actions)


def _readmit_nodes(state: GangState, bad: list[str], now: float, actions: list[Action]) -> None:
    """Allow excluded nodes again, when no other node had room within `timeouts.hold`."""
    template = "no other node had room within {seconds} s: {nodes} may have tasks again"
    text = message(template, seconds=f"{state.job.timeouts.hold_s:.0f}", nodes=", ".join(bad))
    actions.append(RecordEvent(events.Noted(now, text, decided=True)))
    state.preflight.readmitted_nodes.update(bad)
    state.node_penalties.clear()
    request_containers(state, now, actions)


def check_spares(state: GangState, now: float, actions: list[Action]) -> None:
    """Ask for the spares and the missing tasks of a gang that runs, and grow the gang when they have come."""
    if state.job.gang and state.stage is Stage.RUNNING and not state.formations and not state.done_at:
        sizes = elasticity.grow_sizes(state, now)
        if sizes:
            _resize(state, sizes, message("there is room again"), now, actions)
        elasticity.request_spares(state, now, actions)


def _resize(state: GangState, sizes: dict[str, int], reason: str, now: float, actions: list[Action]) -> None:
    tasks = elasticity.resize(state, sizes, reason, now, actions)
    state.formations = {epoch: each for epoch, each in state.formations.items() if not set(each.tasks) & set(tasks)}
    *others, last = sizes
    template = "{role} goes on with {count} of {all}"
    texts = [message(template, role=name, count=sizes[name], all=state.wanted[name]) for name in others]
    template = "{role} goes on with {count} of {all}: {reason}"
    texts.append(message(template, role=last, count=sizes[last], all=state.wanted[last], reason=reason))
    whole = () if len(tasks) == state.job.task_count else tasks
    actions.append(RecordEvent(events.GangRestarted(now, state.epoch + 1, join_messages(texts, ", "), whole)))
    form_together(state, [tasks], tasks, now, actions)
    actions.append(NotifyExecutors(tasks))
    state.stage = Stage.FORMING


def _is_awaited(state: GangState, now: float) -> bool:
    """Return whether the job waits for tasks to join, not for what it has decided itself: the pause of a restart."""
    incomplete = any(formation.waiting for formation in state.formations.values())
    return incomplete and (state.job.gang or not _anything_runs(state, now))


def _anything_runs(state: GangState, now: float) -> bool:
    """Return whether a program runs. Tasks without a gang may wait for containers that other tasks hold, but not for
    ever while nothing runs."""
    granted_lately = now - state.granted_at <= state.job.timeouts.gang_s
    return granted_lately or any(task.live for task in state.tasks.values())


def deadline_passed(limit_s: float, elapsed_s: float) -> bool:
    """Return whether a limit is passed; 0 is no limit."""
    return 0 < limit_s < elapsed_s


def _late_tasks_text(state: GangState) -> str:
    late = [state.tasks[id_] for formation in state.formations.values() for id_ in sorted(formation.waiting)]
    return ", ".join(f"{task.id} ({task.phase.value if task.phase else 'not started'})" for task in late[:5])
