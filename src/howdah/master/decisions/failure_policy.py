"""Decides what follows when a task has ended: the job goes on, something restarts, or the job is over.

How ends are judged is here; `restart_policy` chooses what restarts after a failure.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import replace

from howdah.master.decisions import restart_policy
from howdah.master.decisions.actions import Action, NoteNodeFailures, NotifyExecutors, RecordEvent
from howdah.master.decisions.gang_formation import (
    MAX_PENALTIES,
    bad_nodes,
    begin_stages,
    deadline_passed,
    form_together,
    give_up_container,
    remove_from_formation,
)
from howdah.master.decisions.job_completion import commit_if_all_ended, fail, release_container, stop
from howdah.master.decisions.success_policy import end_if_decided, end_sentence
from howdah.master.state import GangState, RestartCause, Stage, TaskState
from howdah.spec import Exit, Outcome, State, TaskId
from howdah.spec.events import ContainerEnded, Ended, GangRestarted, Noted
from howdah.spec.message import Message, message
from howdah.spec.tracebacks import is_lost_connection
from howdah.wire.messages import NOT_HEARD, Status

LATE_EXIT_S = 5.0
"""An end that is reported within this time after a failure may be the failure's cause."""
MAX_FAILED_PREFLIGHTS = 3
"""The number of nodes on which a task's containers may fail pre-flight; then the task gets no other container."""

# A failure that explains others beats one that may be their consequence: a peer's "connection reset" is an `exit`.
_WEIGHT = {
    "preflight": 4,
    "memory": 4,
    "gpu": 4,
    "image": 4,
    "lost": 3,
    "preempted": 3,
    "withdrawn": 3,
    "silent": 2,
    "signal": 2,
    "start": 2,
    "localise": 2,
}
_CLASSES = {
    "memory": "memory",
    "lost": "node",
    "preflight": "node",
    "gpu": "node",
    "preempted": "preempted",
    "withdrawn": "withdrawn",
    "image": "user",  # another try would meet the same cluster
}
_CONTAINER_GONE = ("lost", "preempted", "withdrawn")
_NO_ROOM = re.compile("no space left on device", re.IGNORECASE)  # strerror(ENOSPC)
# The cluster reports such an end before the node has ended the program, or only silence shows it.
_UNCERTAIN = (*_CONTAINER_GONE, "silent", "localise", "start")


def task_ended(
    state: GangState, task: TaskState, exit: Exit, now: float, actions: list[Action], lost: bool = False
) -> None:
    """Record that the task's program, or its container (`lost`), ended in this epoch, and decide what follows."""
    task.exit, task.ended_at = exit, now
    is_inactive = not state.takes_part(task.id)
    fails = not exit.ok and state.open and not task.stopped and not is_inactive
    ended = Ended(
        now,
        task=task.id,
        attempt=task.attempt,
        epoch=task.epoch,
        exit=exit,
        node=task.node or task.host,
        counts=fails,
        lost=lost,
        uploaded=task.uploaded,
        fenced_until=task.fenced_until,
    )
    actions.append(RecordEvent(ended))
    if not state.open:
        _replace_first_cause(state, task, exit)
        commit_if_all_ended(state, now, actions)
    elif is_inactive:
        give_up_container(state, task, now, actions)
        task.leave()
        state.spares_lost += 1
    elif fails and exit.cause == "preflight" and not state.done_at:
        _failed_preflight(state, task, exit, now, actions)
    elif not fails or restart_policy.is_ignored(state, task):
        remove_from_formation(state, task, now, actions)
        if not state.job.gang:
            give_up_container(state, task, now, actions)  # other tasks wait for its resources
        _end_or_begin_stages(state, now, actions)
    else:
        _restart_or_fail(state, task, exit, now, actions)


def container_lost(state: GangState, task: TaskState, event: ContainerEnded, actions: list[Action]) -> None:
    """Handle the loss of a container before the end of its program was reported. The task keeps no container, so a
    restart asks for another one."""
    exit, container = event.exit, task.container
    task.container, task.joined = None, 0
    if exit.cause in _UNCERTAIN and not event.certain:
        task.fence(task.heard_at)
    if exit.ok or exit.cause == "exit":
        detail = message("its container ended ({reason}) before the end of its program was reported", reason=exit)
        exit = Exit("silent", code=exit.code, signal=exit.signal, detail=exit.detail or detail, lines=exit.lines)
    task.host = container.node if container else task.host
    task_ended(state, task, exit, event.time, actions, lost=True)


def replay_end(state: GangState, event: Ended, actions: list[Action]) -> None:
    """Repeat the end that `event` recorded, for a master that takes over."""
    task = state.tasks[event.task]
    task.uploaded, task.fenced_until = event.uploaded, event.fenced_until
    if event.lost and task.container is not None:
        state.containers.pop(task.container.id, None)
        task.container, task.joined, task.host = None, 0, event.node
    task_ended(state, task, event.exit, event.time, actions, event.lost)


def on_container_ended(state: GangState, event: ContainerEnded, actions: list[Action]) -> None:
    """Handle the engine's report that a container is gone."""
    task_id = state.containers.pop(event.container_id, None)
    if task_id is None:
        return
    task = state.tasks[task_id]
    if task.exit is None:
        task.host = task.host or task.node
        container_lost(state, task, event, actions)
    elif task.container is not None and task.container.id == event.container_id:
        task.container = None
        if state.open:  # the next master must not rely on it
            actions.append(RecordEvent(event))
        commit_if_all_ended(state, event.time, actions)


def executor_unreachable(state: GangState, task: TaskState, exit: Exit, now: float, actions: list[Action]) -> None:
    """End the task of an executor that does not answer, and release its container."""
    container_lost(state, task, release_container(state, task, exit, now, actions), actions)


# Ends after which the job goes on


def _end_or_begin_stages(state: GangState, now: float, actions: list[Action]) -> None:
    if not end_if_decided(state, now, actions):
        begin_stages(state, now, actions)


# Restarts


def classify(state: GangState, task: TaskId, exit: Exit) -> str:
    """Return the class of a failure (`user`, `transient`, `memory`, `node`, `preempted`, `withdrawn`), by the role's
    `causes`, else by how the task ended."""
    text = "\n".join((*exit.lines, exit.detail))
    for sign, meaning in state.role(task).causes.items():
        if sign == str(exit.code) or (not sign.isdigit() and re.search(sign, text)):
            return meaning
    if exit.cause == "silent" and (exit.code == NOT_HEARD or (_exit_unknown(exit) and state.preflight.has_other_nodes)):
        return "node"  # or the network to the master failed, or there was no master
    return _CLASSES.get(exit.cause, "user" if exit.permanent else "transient")


def late_exit(state: GangState, task: TaskState, status: Status, now: float, actions: list[Action]) -> None:
    """Handle a program that had ended before its executor heard of the restart: this end may have made the others
    fail."""
    cause, exit = state.last_restart_cause, status.exit
    if cause is None or exit is None or now - cause.seen_at > LATE_EXIT_S:
        return
    if status.epoch == cause.epoch and _cause_weight(exit) > cause.weight:
        state.last_restart_cause = RestartCause(task.id, cause.epoch, _cause_weight(exit), cause.seen_at)
        actions.append(RecordEvent(Noted(now, _late_cause(task, exit, cause.task))))


def _restart_or_fail(state: GangState, task: TaskState, exit: Exit, now: float, actions: list[Action]) -> None:
    """Restart the task, its role or the gang after a failure; fail the job where nothing may start again."""
    state.last_restart_cause = RestartCause(task.id, task.epoch, _cause_weight(exit), now)
    node, kind = task.node, classify(state, task.id, exit)
    reason = end_sentence(task.id, node, exit)
    if exit.permanent and kind == "user" and (state.job.retries or restart_policy.restarts_alone(state.role(task.id))):
        reason = message("{reason}; not tried again, for it would fail again", reason=reason)
    # People take away a node that is decommissioned: the node is not to blame.
    announced = task.notice is not None and task.notice.kind == "decommission"
    if kind == "node" and exit.cause != "silent" and node and not announced:
        _count_node_failure(state, node, now, actions)
    if node and state.preflight.has_other_nodes:
        # Later jobs may use a node whose disk is full, and the failure counts: the program may fill every disk.
        if _NO_ROOM.search("\n".join((*exit.lines, exit.detail))):
            text = message("the disk of {node} is full: it gets no more tasks of this job", node=node)
            _avoid_node(state, node, text, now, actions)
            state.preflight.full_disk_nodes.add(node)
        if exit.cause == "gpu" and kind == "node":  # a defective device stays defective
            text = message("{node} has a GPU that failed: it gets no more tasks of this job", node=node)
            _avoid_node(state, node, text, now, actions)
    # The executor left early, its devices are defective, or its files are gone: release the container too.
    if exit.cause in ("preempted", "gpu", "withdrawn") and task.container is not None:
        give_up_container(state, task, now, actions)
        task.joined = 0
    gone = exit.cause in _CONTAINER_GONE or _only_this_container_silent(state, task, exit)
    choice = restart_policy.choose(state, task, exit, kind, gone, reason, now)
    if choice.tasks:
        _restart_gang(state, choice.tasks, choice.reason, now, actions, choice.wait_s)
    else:
        fail(state, choice.reason, now, actions, task.id, exit)


def _late_cause(task: TaskState, exit: Exit, consequence: TaskId) -> Message:
    if exit.cause == "stopped":  # by the master, because of the consequence: that is no part of the cause
        exit = replace(exit, detail=exit.exception)
    template = "{reason}; reported after the end of {task}, which may be a consequence"
    return message(template, reason=end_sentence(task.id, task.node, exit), task=consequence)


def _cause_weight(exit: Exit) -> int:
    """Return how well an end explains other failures. A lost connection explains nothing; neither does a stop, unless
    the program had printed an exception."""
    said: Sequence[str] = (exit.exception,)
    if exit.cause == "signal" and exit.signal == signal.SIGABRT:  # C++ libraries end a program by SIGABRT
        said = exit.lines
    if any(map(is_lost_connection, said)) or (exit.cause == "stopped" and not exit.exception):
        return 0
    return _WEIGHT.get(exit.cause, 1)


def _exit_unknown(exit: Exit) -> bool:
    """Return whether neither an exit code nor a signal of the program is known."""
    return exit.code is exit.signal is None


def _only_this_container_silent(state: GangState, task: TaskState, exit: Exit) -> bool:
    """Return whether only this container is silent while others are heard: the network to the master works for them."""
    unheard = task.container is None and exit.cause in ("silent", "start") and _exit_unknown(exit)
    return unheard and any(other.live and other.phase is not None for other in state.tasks.values())


def _failed_preflight(state: GangState, task: TaskState, exit: Exit, now: float, actions: list[Action]) -> None:
    """Ask for another container on another node, if there is one, in place of a container that failed pre-flight."""
    node, preflight = task.node, state.preflight
    reason = end_sentence(task.id, node, exit)
    again = node in preflight.readmitted_nodes & preflight.nodes
    tried = preflight.failed_nodes.setdefault(task.id, [])
    tried.append(node)
    preflight.check_seconds.pop(task.id, None)
    if preflight.has_other_nodes:
        _exclude_node(state, task, node, now, actions)
    if again or not preflight.has_other_nodes or len(tried) >= MAX_FAILED_PREFLIGHTS:
        nodes = list(dict.fromkeys(tried))
        final = reason
        if len(nodes) > 1:
            template = "{reason}; tried on {count} nodes: {nodes}"
            final = message(template, reason=reason, count=len(nodes), nodes=", ".join(nodes))
        stop(state, Outcome(State.FAILED, final, task.id, exit), reason, now, actions)
        return
    give_up_container(state, task, now, actions)
    task.leave()
    text = message("{reason} (not counted as a retry: {kind})", reason=reason, kind="node")
    _restart_gang(state, restart_policy.formed_with(state, task), text, now, actions)


def _exclude_node(state: GangState, task: TaskState, node: str, now: float, actions: list[Action]) -> None:
    """Avoid the node in this job at once; later jobs avoid it only where it is certainly to blame."""
    certain = task.container is None or task.container.id not in state.preflight.suspected_containers
    text = message("{node} did not pass pre-flight: it gets no more tasks", node=node)
    _avoid_node(state, node, text, now, actions)
    if certain and node not in dict(state.node_failures):  # the job's needs may be too large for any node
        state.node_failures.append((node, now))
        actions.append(NoteNodeFailures(tuple(state.node_failures)))


def _avoid_node(state: GangState, node: str, text: str, now: float, actions: list[Action]) -> None:
    if node not in bad_nodes(state):
        actions.append(RecordEvent(Noted(now, text)))
    state.node_penalties[node] = max(state.node_penalties.get(node, 0.0), MAX_PENALTIES + 0.5)


def _count_node_failure(state: GangState, node: str, now: float, actions: list[Action]) -> None:
    state.node_penalties[node] = state.node_penalties.get(node, 0.0) + 1
    state.node_failures.append((node, now))
    actions.append(NoteNodeFailures(tuple(state.node_failures)))
    if node in bad_nodes(state):
        text = message("{node} caused too many failures: it gets no more tasks", node=node)
        actions.append(RecordEvent(Noted(now, text)))


def _restart_gang(
    state: GangState, tasks: tuple[TaskId, ...], reason: str, now: float, actions: list[Action], wait: float = 0.0
) -> None:
    """Start these programs again in a new epoch; keep containers that live, and ask for the others anew."""
    peers = state.tasks[tasks[0]].peers
    for role in {id_.role for id_ in tasks}:
        state.restarted[role] = state.restarted.get(role, 0) + 1
    for other in [each for each in state.formations.values() if set(each.tasks) & set(tasks)]:
        del state.formations[other.epoch]  # tasks that were forming a world join this restart
        tasks = tuple(dict.fromkeys((*tasks, *other.tasks)))
    full = state.preflight.full_disk_nodes.intersection(bad_nodes(state))  # except nodes that had to be readmitted
    for id_ in tasks:
        # The next container must be larger, or on another disk: release this one.
        if state.role(id_).resources.growth or state.tasks[id_].node in full:
            give_up_container(state, state.tasks[id_], now, actions)
            state.tasks[id_].leave()
    whole = () if len(tasks) == state.job.task_count else tasks
    actions.append(RecordEvent(GangRestarted(now, state.epoch + 1, reason, whole)))
    form_together(state, [tasks], peers, now, actions, now + wait if wait else 0.0)
    actions.append(NotifyExecutors(tasks))
    if not any(task.formed and task.exit is None for task in state.tasks.values()):
        state.stage = Stage.FORMING


def restart_as_recorded(state: GangState, event: GangRestarted, actions: list[Action]) -> None:
    """Start programs again as an earlier master did, whatever this one would have decided."""
    _restart_gang(state, event.tasks or tuple(state.tasks), event.reason, event.time, actions)


def advance_epoch(state: GangState, task: TaskState, epoch: int, now: float, actions: list[Action]) -> None:
    """Start the gang together in an epoch newer than any known one. Some executor is in an epoch that the earlier
    master began and could not write down. Programs that must not start twice stay running, as that master left them."""
    state.epoch = max(state.epoch, epoch)
    if not state.open:  # nothing starts any more, and executors that stop ignore orders of an older epoch
        for peer in (state.tasks[id_] for id_ in task.peers):
            peer.epoch = peer.epoch if peer.exit else state.epoch
        return
    again = tuple(id_ for id_ in task.peers if id_ == task.id or restart_policy.may_start(state, state.tasks[id_]))
    reason = message("the master before this one had started the tasks again, with others")
    _restart_gang(state, again, reason, now, actions)


def peer_already_running(state: GangState, task: TaskState) -> bool:
    """Return whether a peer of the new `task` runs already, in a world that the earlier master formed without this
    task."""
    peers = (state.tasks[id_] for id_ in task.peers)
    return not task.adopted and any(peer.started == task.epoch and not peer.formed for peer in peers)


def _replace_first_cause(state: GangState, task: TaskState, exit: Exit) -> None:
    """Replace the first cause by a failure that is seen while the job stops and may have caused it: the end of a killed
    peer is reported late."""
    before = state.outcome
    if before is None or before.state is not State.FAILED or before.exit is None:
        return
    if exit.code == NOT_HEARD:  # the executor left while it was stopping
        return
    if _cause_weight(exit) > _cause_weight(before.exit):
        sentence = end_sentence(task.id, task.node, exit)
        if exit.cause == "stopped" and before.first is not None:
            sentence = _late_cause(task, exit, before.first)
        state.outcome = Outcome(State.FAILED, sentence, task.id, exit)


# Deadlines


def check_end_deadlines(state: GangState, now: float, actions: list[Action]) -> None:
    """Check the time that tasks may run after the chief is done, and the deadlines of tasks that are not needed any
    more."""
    if state.done_at and now - state.done_at >= state.job.timeouts.grace_s and state.open:
        reason = message("the chief ended well {seconds} s ago", seconds=f"{state.job.timeouts.grace_s:.0f}")
        stop(state, Outcome(State.SUCCEEDED), reason, now, actions, unrecorded=True)
    for name, role in state.job.roles.items():
        if role.deadline.within_s and role.deadline.after and state.open:
            _check_role_deadline(state, name, now, actions)


def _check_role_deadline(state: GangState, name: str, now: float, actions: list[Action]) -> None:
    deadline = state.job.roles[name].deadline
    before = list(state.of_role(*deadline.after))
    if any(task.exit is None for task in before):
        return
    late = [task for task in state.of_role(name) if task.exit is None and not task.stopped and not task.untracked]
    if not late or not deadline_passed(deadline.within_s, now - max(task.ended_at for task in before)):
        return
    values = {"task": late[0].id, "seconds": f"{deadline.within_s:.0f}", "roles": ", ".join(deadline.after)}
    if deadline.then == "fail":
        template = "{task} still runs {seconds} s after {roles} ended (roles.{role}.deadline)"
        outcome = Outcome(State.FAILED, message(template, **values, role=name), late[0].id)
        reason = message("{task} still runs {seconds} s after {roles} ended", **values)
        stop(state, outcome, reason, now, actions, unrecorded=True)
        return
    if deadline.then == "untrack":
        for task in late:
            task.untracked = True
        text = message("{task} still runs {seconds} s after {roles} ended: the job waits for it no more", **values)
        actions.append(RecordEvent(Noted(now, text, decided=True)))
        _end_or_begin_stages(state, now, actions)
        return
    for task in late:
        task.stopped = True
    text = message("{task} still runs {seconds} s after {roles} ended: stopped", **values)
    actions += [RecordEvent(Noted(now, text, decided=True)), NotifyExecutors(tuple(task.id for task in late))]
    for task in late:
        if task.container is None:
            task_ended(state, task, Exit("stopped", detail=message("stopped before it began")), now, actions)
