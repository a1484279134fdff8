"""`step(state, event) -> actions`: every decision of the master, and nothing else.

It touches no socket, clock, file or thread; time arrives with the event. The state passed in is changed in place
(docs/adr/0003): the result depends on state and event alone, so that a run can be replayed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from howdah.master.actions import (
    Action,
    Ask,
    Commit,
    CommitDone,
    Finish,
    Heard,
    Launch,
    Notify,
    Record,
    Release,
    Tick,
)
from howdah.master.outputs import empty_outputs
from howdah.master.state import GangState, Stage, TaskState
from howdah.spec import Exit, Outcome, State, TaskId, chief
from howdah.spec import events as e
from howdah.wire.messages import Phase, Status

GREET_S = 120.0
"""An executor must speak within this after its container was started (a node may have to fetch the runtime first)."""
SILENT_S = 20.0
"""An executor not heard for this long is taken for dead; it beats every 2 s."""
MAX_REPLACEMENTS = 5
"""Containers lost or preempted before the gang has formed are replaced this often."""
MAX_PORT_RETRIES = 3
"""The gang is formed anew this often because somebody else took a reserved port; not counted as a retry."""
STOP_MARGIN_S = 5.0

# A failure that explains others beats one that may be their consequence: a peer's "connection reset" is an `exit`.
_WEIGHT = {"memory": 4, "lost": 3, "preempted": 3, "silent": 2, "signal": 2, "start": 2, "localise": 2}


def step(state: GangState, event: e.Event) -> list[Action]:
    """Apply `event` to `state`; what is to be done, in order."""
    actions: list[Action] = []
    if state.stage is Stage.DONE:
        return actions
    _HANDLERS[type(event)](state, event, actions)
    return actions


# Forming the gang


def _on_started(state: GangState, event: e.JobStarted, actions: list[Action]) -> None:
    actions.append(Record(event))
    state.asked_at = event.time
    _ask(state, event.time, actions)


def _missing(state: GangState) -> dict[str, int]:
    """Containers wanted and not granted, by role."""
    counts = dict.fromkeys(state.job.roles, 0)
    for task in state.tasks.values():
        counts[task.id.role] += task.container is None
    return counts


def _ask(state: GangState, now: float, actions: list[Action]) -> None:
    state.granted_at, state.ask_again_at = now, 0.0
    for role, count in _missing(state).items():
        if count:
            actions += [Ask(role, count), Record(e.Asked(now, role, count))]


def _on_allocated(state: GangState, event: e.Allocated, actions: list[Action]) -> None:
    container = event.container
    task = next((t for t in state.tasks.values() if t.id.role == container.role and t.container is None), None)
    if task is None or state.stage is not Stage.FORMING or state.ask_again_at:
        actions.append(Release(container.id))
        return
    state.granted_at = event.time
    state.containers[container.id] = task.id
    state.tasks[task.id] = TaskState(
        task.id, task.attempt + 1, container, launched_at=event.time, heard_at=event.time, usage=task.usage
    )
    attempt = task.attempt + 1
    actions += [
        Record(event),
        Record(e.Launched(event.time, task.id, attempt, container)),
        Launch(task.id, attempt, container),
    ]


def _give_back(state: GangState, now: float, actions: list[Action]) -> None:
    """Two half-granted gangs must not wait for each other: let go, wait a while that differs by job, ask again."""
    state.releases += 1
    base = min(5.0 * 2 ** (state.releases - 1), 120.0)
    jitter = zlib.crc32(f"{state.id}/{state.releases}".encode()) % 1000 / 1000
    wait = base * (1.0 + jitter)
    reason = f"only part of the gang was granted within {state.job.timeouts.hold_s:.0f} s ({_shortage(state)})"
    actions.append(Record(e.GangReleased(now, reason, wait)))
    for role in state.job.roles:
        actions.append(Ask(role, 0))
    for task in state.tasks.values():
        if task.container is not None:
            actions.append(Release(task.container.id))
            state.containers.pop(task.container.id, None)
        state.tasks[task.id] = TaskState(task.id, task.attempt)
    state.ask_again_at = now + wait


def _shortage(state: GangState) -> str:
    return ", ".join(
        f"{role}: {state.job.roles[role].replicas - count} of {state.job.roles[role].replicas}"
        for role, count in _missing(state).items()
    )


def _form(state: GangState, now: float, actions: list[Action]) -> None:
    state.stage, state.formed = Stage.RUNNING, state.world()
    state.running_since = state.running_since or now
    actions += [Record(e.WorldFormed(now, state.epoch)), Notify(tuple(state.tasks))]


# What executors say


def _on_heard(state: GangState, event: Heard, actions: list[Action]) -> None:
    status = event.status
    task = state.tasks[TaskId.parse(status.task)]
    task.heard_at = max(task.heard_at, event.time)
    if status.sequence <= task.sequence:
        return
    task.sequence = status.sequence
    if task.phase is None:
        actions.append(Record(e.Greeted(event.time, task.id, status.attempt, status.host, status.pid, status.python)))
    task.phase = status.phase
    _note_usage(task, status, event.time, actions)
    if status.epoch != state.epoch or task.exit is not None:
        return
    if status.phase not in (Phase.HELLO, Phase.LOCALISING) and task.joined != state.epoch and status.ports:
        _join(state, task, status, event.time, actions)
    if status.program_pid and task.started != state.epoch:
        task.started = state.epoch
        actions.append(
            Record(e.Started(event.time, task.id, task.attempt, state.epoch, status.program_pid, status.program_python))
        )
    if status.phase is Phase.ENDED and status.exit is not None:
        task.uploaded = status.uploaded
        _end(state, task, status.exit, event.time, actions)


def _note_usage(task: TaskState, status: Status, now: float, actions: list[Action]) -> None:
    """Samples grow sparser as a task grows older (about a hundred a factor of e), so that logs stay small."""
    telling = status.usage.progress != task.usage.progress or (status.exit is not None and task.exit is None)
    task.usage = status.usage
    if task.started and (telling or now - task.used_at >= max(5.0, (now - task.launched_at) / 100)):
        task.used_at = now
        usage = status.usage
        actions.append(Record(e.Used(now, task.id, usage.memory_mib, usage.peak_mib, usage.cpu, usage.progress)))


def _join(state: GangState, task: TaskState, status: Status, now: float, actions: list[Action]) -> None:
    task.joined, task.host, task.ports = state.epoch, status.host, status.ports
    data = (status.data_files, status.data_bytes, status.data_seconds)
    actions.append(Record(e.Joined(now, task.id, task.attempt, state.epoch, status.host, dict(status.ports), *data)))
    everyone = all(other.joined == state.epoch for other in state.tasks.values())
    if state.stage is Stage.FORMING and everyone:
        _form(state, now, actions)


# How tasks end


def _end(state: GangState, task: TaskState, exit: Exit, now: float, actions: list[Action]) -> None:
    """The task's program, or its container, ended for this epoch; decide what follows."""
    task.exit = exit
    node = task.container.node if task.container else task.host
    counts = state.stage in (Stage.FORMING, Stage.RUNNING)
    actions.append(
        Record(e.Ended(now, task.id, task.attempt, state.epoch, exit, node or task.host, counts and not exit.ok))
    )
    if not counts:
        _reconsider(state, task, exit, node)
        _conclude_if_ended(state, now, actions)
    elif exit.ok or state.job.roles[task.id.role].on_failure == "ignore":
        _check_success(state, now, actions)
    else:
        _fail(state, task, exit, node, now, actions)


def _check_success(state: GangState, now: float, actions: list[Action]) -> None:
    tracked = list(state.tracked_tasks())
    ended_well = [task for task in tracked if task.exit is not None and task.exit.ok]
    if state.job.success == "any":
        done = bool(ended_well)
    elif state.job.success == "chief":
        deciding = state.tasks[chief(state.job)]
        done = deciding.exit is not None and deciding.exit.ok
    else:
        done = all(task.exit is not None for task in tracked) and bool(ended_well)
    if done:
        _stop(state, Outcome(State.SUCCEEDED), "the job is done", now, actions)
    elif all(task.exit is not None for task in tracked):
        _stop(state, Outcome(State.FAILED, _nobody(state)), "no task is left to wait for", now, actions)


def _nobody(state: GangState) -> str:
    wanted = str(chief(state.job)) if state.job.success == "chief" else "any task"
    return f"all tasks ended, and {wanted} had not ended well (success: {state.job.success})"


def _fail(state: GangState, task: TaskState, exit: Exit, node: str, now: float, actions: list[Action]) -> None:
    reason = f"{task.id}{_on(node)}: {exit}"
    if exit.cause in ("lost", "preempted") and state.stage is Stage.FORMING and state.replacements < MAX_REPLACEMENTS:
        state.replacements += 1
        _restart(state, reason, now, actions)
    elif exit.cause == "port" and state.port_retries < MAX_PORT_RETRIES:
        state.port_retries += 1
        _restart(state, reason, now, actions)
    elif state.retries_used < state.job.retries:
        state.retries_used += 1
        _restart(state, f"{reason} (retry {state.retries_used} of {state.job.retries})", now, actions)
    else:
        _stop(state, Outcome(State.FAILED, reason, task.id, exit), reason, now, actions)


def _on(node: str) -> str:
    return f" on {node}" if node else ""


def _restart(state: GangState, reason: str, now: float, actions: list[Action]) -> None:
    """Every program starts again in a new epoch; containers that live are kept, the others asked for anew."""
    state.epoch += 1
    state.stage, state.asked_at = Stage.FORMING, now
    for task in state.tasks.values():
        task.exit, task.uploaded, task.heard_at, task.launched_at = None, (), now, now
    actions += [Record(e.GangRestarted(now, state.epoch, reason)), Notify(tuple(state.tasks))]
    _ask(state, now, actions)


def _reconsider(state: GangState, task: TaskState, exit: Exit, node: str) -> None:
    """A failure seen while stopping may be the one that caused the first: a killed peer is heard of late."""
    before = state.outcome
    if before is None or before.state is not State.FAILED or before.exit is None:
        return
    if exit.cause != "stopped" and _WEIGHT.get(exit.cause, 1) > _WEIGHT.get(before.exit.cause, 1):
        state.outcome = Outcome(State.FAILED, f"{task.id}{_on(node)}: {exit}", task.id, exit)


def _on_container_ended(state: GangState, event: e.ContainerEnded, actions: list[Action]) -> None:
    task_id = state.containers.pop(event.container_id, None)
    if task_id is None:
        return
    task = state.tasks[task_id]
    ended = task.exit is not None
    node = task.container.node if task.container else ""
    if not ended:
        task.host = task.host or node
        _end_lost(state, task, event, actions)
    elif task.container is not None and task.container.id == event.container_id:
        task.container = None
        _conclude_if_ended(state, event.time, actions)


def _end_lost(state: GangState, task: TaskState, event: e.ContainerEnded, actions: list[Action]) -> None:
    """The container went before its program's end was told. The task keeps no container, so a restart asks for one."""
    container, task.container = task.container, None
    task.joined = 0
    exit = event.exit
    if exit.ok or exit.cause == "exit":
        detail = f"its container ended ({exit}) before its program's end was told"
        exit = Exit("silent", exit.code, exit.signal, exit.detail or detail, exit.lines)
    task.host = container.node if container else task.host
    _end(state, task, exit, event.time, actions)


# Ending the job


def _stop(state: GangState, outcome: Outcome, reason: str, now: float, actions: list[Action]) -> None:
    state.stage, state.outcome = Stage.STOPPING, outcome
    state.stop_by = now + state.job.timeouts.stop_s + STOP_MARGIN_S
    actions += [Ask(role, 0) for role, count in _missing(state).items() if count]
    for task in state.tasks.values():
        if task.live and task.phase is None:
            _drop(state, task, Exit("stopped"), now, actions)
            task.container = None
    if any(task.live for task in state.tasks.values()):
        actions += [Record(e.Stopping(now, reason)), Notify(tuple(state.tasks))]
    _conclude_if_ended(state, now, actions)


def _conclude_if_ended(state: GangState, now: float, actions: list[Action]) -> None:
    if state.stage is Stage.STOPPING and not any(task.live for task in state.tasks.values()):
        _conclude(state, now, actions)


def _conclude(state: GangState, now: float, actions: list[Action]) -> None:
    assert state.outcome is not None
    state.stage = Stage.COMMITTING
    actions.append(Notify(tuple(state.tasks)))
    if state.job.outputs:
        actions.append(Commit(keep=state.outcome.state is State.SUCCEEDED))
    else:
        _finish(state, now, actions)


def _on_committed(state: GangState, event: CommitDone, actions: list[Action]) -> None:
    assert state.outcome is not None
    actions += [Record(e.Committed(event.time, uri)) for uri in event.uris]
    if state.outcome.state is State.SUCCEEDED:
        actions += [Record(e.Noted(event.time, text)) for text in empty_outputs(state)]
    if event.error and state.outcome.state is State.SUCCEEDED:
        state.outcome = Outcome(State.FAILED, f"the programs ended well, but the outputs were not kept: {event.error}")
    elif event.error:
        actions.append(Record(e.Noted(event.time, f"outputs of this job were not removed: {event.error}")))
    _finish(state, event.time, actions)


def _finish(state: GangState, now: float, actions: list[Action]) -> None:
    assert state.outcome is not None
    state.stage = Stage.DONE
    actions += [Record(e.JobFinished(now, state.outcome)), Finish(state.outcome)]


def _on_cancel(state: GangState, event: e.CancelRequested, actions: list[Action]) -> None:
    actions.append(Record(event))
    if state.stage in (Stage.FORMING, Stage.RUNNING):
        outcome = Outcome(State.CANCELLED, f"cancelled by {event.by}")
        _stop(state, outcome, outcome.diagnostics, event.time, actions)


def _on_noted(_: GangState, event: e.Noted, actions: list[Action]) -> None:
    actions.append(Record(event))


# Deadlines


def _on_tick(state: GangState, event: Tick, actions: list[Action]) -> None:
    now = event.time
    if state.stage is Stage.FORMING:
        _watch_forming(state, now, actions)
    elif state.stage is Stage.RUNNING and _over(state.job.timeouts.run_s, now - state.running_since):
        diagnostics = f"still running after {state.job.timeouts.run_s:.0f} s (timeouts.run)"
        _stop(state, Outcome(State.FAILED, diagnostics), diagnostics, now, actions)
    elif state.stage is Stage.STOPPING and now > state.stop_by:
        _conclude(state, now, actions)
    if state.stage in (Stage.FORMING, Stage.RUNNING):
        _watch_silence(state, now, actions)


def _over(limit_s: float, elapsed_s: float) -> bool:
    return 0 < limit_s < elapsed_s


def _watch_forming(state: GangState, now: float, actions: list[Action]) -> None:
    limits = state.job.timeouts
    missing = sum(_missing(state).values())
    if _over(limits.gang_s, now - state.asked_at):
        what = f"granted: {_shortage(state)}" if missing else f"not joined: {_laggards(state)}"
        diagnostics = f"the gang was not complete after {limits.gang_s:.0f} s (timeouts.gang); {what}"
        _stop(state, Outcome(State.FAILED, diagnostics), diagnostics, now, actions)
    elif state.ask_again_at:
        if now >= state.ask_again_at:
            _ask(state, now, actions)
    elif 0 < missing < len(state.tasks) and _over(limits.hold_s, now - state.granted_at):
        _give_back(state, now, actions)


def _laggards(state: GangState) -> str:
    late = [task for task in state.tasks.values() if task.joined != state.epoch]
    return ", ".join(f"{task.id} ({task.phase.value if task.phase else 'not started'})" for task in late[:5])


def _watch_silence(state: GangState, now: float, actions: list[Action]) -> None:
    for task in list(state.tasks.values()):
        if not task.live or state.stage not in (Stage.FORMING, Stage.RUNNING):
            continue
        late = _lateness(state, task, now)
        if late is not None and task.container is not None:
            _end_lost(state, task, _drop(state, task, late, now, actions), actions)


def _drop(state: GangState, task: TaskState, exit: Exit, now: float, actions: list[Action]) -> e.ContainerEnded:
    """Give back the container of a task that will not speak any more."""
    assert task.container is not None
    actions.append(Release(task.container.id))
    state.containers.pop(task.container.id, None)
    return e.ContainerEnded(now, task.container.id, exit)


def _lateness(state: GangState, task: TaskState, now: float) -> Exit | None:
    limits = state.job.timeouts
    if task.phase is None:
        if now - task.launched_at > GREET_S:
            return Exit("start", detail=f"its executor did not report within {GREET_S:.0f} s of its container's start")
    elif now - task.heard_at > SILENT_S:
        return Exit("silent", detail=f"not heard for {now - task.heard_at:.0f} s")
    elif task.joined != state.epoch and _over(limits.localise_s, now - task.launched_at):
        detail = f"files and data not in place after {limits.localise_s:.0f} s (timeouts.localise)"
        return Exit("localise", detail=detail)
    return None


_HANDLERS: dict[type[e.Event], Callable[[GangState, Any, list[Action]], None]] = {
    e.JobStarted: _on_started,
    e.Allocated: _on_allocated,
    e.ContainerEnded: _on_container_ended,
    e.CancelRequested: _on_cancel,
    e.Noted: _on_noted,
    Heard: _on_heard,
    Tick: _on_tick,
    CommitDone: _on_committed,
}
