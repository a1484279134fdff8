"""Chooses what follows from a failure: it is ignored, the task, its role or the gang starts again, or the job fails.

The role's `on_failure` chooses first, then budgets: `retries` of the gang, `restarts` of a role. A failure for which
only the cluster is to blame uses up neither, and has a limit of its own. A mistake of the user's is never tried again.
`failure_policy` judges how a task ended, asks this module, and carries the choice out.
"""

from __future__ import annotations

from howdah.master.state import GangState, TaskState
from howdah.spec import Exit, JobSpec, Role, TaskId, chief
from howdah.spec.message import Message, message
from howdah.spec.values import dataclass

FREE_CAUSES = ("node", "preempted", "withdrawn")
"""Causes of failures that use up no retry (see `Role.causes`): only the cluster is to blame for them."""
MAX_REPLACEMENTS = 5
"""How many containers that are lost or preempted before the gang has formed are replaced."""
MAX_PORT_RETRIES = 3
"""How often the gang forms anew because another program took a reserved port; that uses up no retry."""
MAX_FREE_RESTARTS, FREE_RESTARTS_S, INCIDENT_S = 20, 86400.0, 30.0
"""A restart for which only the cluster is to blame uses up no retry. There are at most 20 of them in a day; those
within 30 s count as one."""
QUICK_FAILURE_S = 10.0
"""A gang that fails within this time of its start has failed quickly."""
MAX_BACKOFF_S = 300.0
"""The longest wait of a restart, in seconds."""


@dataclass(frozen=True)
class RestartDecision:
    """Tasks that start again after a failure; the job fails if there are none."""

    reason: str
    """Why the programs start again, or why the job fails."""
    tasks: tuple[TaskId, ...] = ()
    """The tasks."""
    wait_s: float = 0.0
    """How long the programs wait before they start."""


# Which programs may start twice


def may_start_again(job: JobSpec, role_name: str) -> bool:
    """Return whether a program of this role may be started again after it has started once. A job allows it by
    `retries`, by a role with `spares` or `min_replicas`, or by `causes` that use up no retry; a role allows it for its
    own tasks by `on_failure`. Without any of these a program starts once, whatever happens to its node."""
    if job.retries or restarts_alone(job.roles[role_name]):
        return True
    return any(
        role.spares or role.min_replicas or not set(role.causes.values()).isdisjoint(FREE_CAUSES)
        for role in job.roles.values()
    )


def may_start(state: GangState, task: TaskState) -> bool:
    """Return whether the task's program may be started now: it never was, or may be started again."""
    return not task.worlds or may_start_again(state.job, task.id.role)


def restarts_alone(role: Role) -> bool:
    """Return whether a task of the role, or the role, restarts while the other roles go on."""
    return role.on_failure in ("restart", "restart-role") and role.restarts > 0


# What follows from a failure


def is_ignored(state: GangState, task: TaskState) -> bool:
    """Return whether the task's failure does not matter: a role may allow all of its tasks, or a few of them, to fail.
    A failure of the chief that decides the job always matters. Once that chief has ended well no failure matters: a
    restart would start the chief again, and other tasks often fail because it has left."""
    if state.done_at:
        return True
    if task.untracked:
        return False
    if state.job.success == "chief" and task.id == chief(state.job):
        return False
    if state.job.success.endswith("%") and state.tracked(task.id):
        return True
    return state.role(task.id).on_failure == "ignore"


def choose(
    state: GangState, task: TaskState, exit: Exit, kind: str, is_gone: bool, reason: str, now: float
) -> RestartDecision:
    """Choose which tasks restart after a failure of the class `kind` that matters, and count the restart.

    `kind` comes from `failure_policy.classify`, `is_gone` says that the task's container is gone or out of reach, and
    `reason` is the failure in words.
    """
    safe = all(may_start(state, state.tasks[peer]) for peer in task.peers)
    if is_gone and not task.formed and state.replacements < MAX_REPLACEMENTS:
        state.replacements += 1
        return RestartDecision(reason, formed_with(state, task))
    if exit.cause == "port" and safe and state.port_retries < MAX_PORT_RETRIES:
        state.port_retries += 1
        return RestartDecision(reason, task.peers)
    if kind != "user" and (choice := _restart_alone(state, task, kind, reason, now)):
        return choice
    if (kind in FREE_CAUSES or exit.cause == "port") and not safe:
        return RestartDecision(message("{reason}; nothing starts again, because the job has no retries", reason=reason))
    if kind != "user" and _within_budget(state, kind, state.retries_used, state.job.retries, now):
        state.retries_used += kind not in FREE_CAUSES
        return RestartDecision(_describe_restart(state, kind, reason), task.peers, _backoff_s(state, now))
    if kind in FREE_CAUSES:
        template = "{reason}; nothing starts again: {count} restarts a day may be for such causes"
        return RestartDecision(message(template, reason=reason, count=MAX_FREE_RESTARTS))
    return RestartDecision(reason)


def formed_with(state: GangState, task: TaskState) -> tuple[TaskId, ...]:
    """Return the tasks that were to start together with this task, and whose programs have not started."""
    formation = state.formations.get(task.epoch)
    return formation.tasks if formation is not None else task.peers


def _restart_alone(state: GangState, task: TaskState, kind: str, reason: str, now: float) -> RestartDecision | None:
    """Choose the task or its role alone, if the role allows it and has restarts left."""
    role = state.role(task.id)
    if not (restarts_alone(role) and _within_budget(state, kind, task.restarts, role.restarts, now)):
        return None
    alone = role.on_failure == "restart"
    again = (task.id,) if alone else tuple(peer for peer in task.peers if peer.role == task.id.role)
    for id_ in again:
        state.tasks[id_].restarts += kind not in FREE_CAUSES
    wait = min(role.backoff_s * 2 ** max(0, task.restarts - 1), MAX_BACKOFF_S)
    if kind in FREE_CAUSES:
        text = message("{reason} (not counted: {kind})", reason=reason, kind=kind)
    else:
        template = "{reason} (restart {number} of {all})"
        text = message(template, reason=reason, number=task.restarts, all=role.restarts)
    return RestartDecision(text, again, wait)


def _within_budget(state: GangState, kind: str, used: int, limit: int, now: float) -> bool:
    if kind in FREE_CAUSES:
        state.free_restarts = [moment for moment in state.free_restarts if now - moment < FREE_RESTARTS_S]
        if not state.free_restarts or now - state.free_restarts[-1] > INCIDENT_S:  # a lost node ends many tasks at once
            state.free_restarts.append(now)
        return len(state.free_restarts) <= MAX_FREE_RESTARTS
    return used < limit


def _describe_restart(state: GangState, kind: str, reason: str) -> Message:
    if kind in FREE_CAUSES:
        return message("{reason} (not counted as a retry: {kind})", reason=reason, kind=kind)
    template = "{reason} (retry {number} of {all})"
    return message(template, reason=reason, number=state.retries_used, all=state.job.retries)


def _backoff_s(state: GangState, now: float) -> float:
    """Return how long a restart waits. The first does not wait; a gang that fails again soon after its start waits
    longer each time."""
    soon = bool(state.formed_at) and now - state.formed_at < QUICK_FAILURE_S
    state.quick_failures = state.quick_failures + 1 if soon else 0
    return min(2.0 ** (state.quick_failures - 2), MAX_BACKOFF_S) if state.quick_failures > 1 else 0.0
