"""Copies of outputs while the programs run: when one is made, by whom, and when it counts.

One copy of an output is made at a time. Whoever wants one meanwhile gets the next: what is there when somebody asks is
in the copy that answers. A copy is of all tasks that run when it begins, or there is none; nothing that goes wrong with
one does the job any harm.
"""

from __future__ import annotations

import time

from howdah.master.decisions.actions import Action, DiscardSave, Notify, PublishSave, Record, SavePublished
from howdah.master.decisions.outputs import is_flat, takers
from howdah.master.snapshots.state import SaveRun, SaveWish
from howdah.master.state import GangState, TaskState
from howdah.outputs.snapshots import snapshot
from howdah.outputs.snapshots.snapshot import place
from howdah.spec import TaskId, uris
from howdah.spec import events as e
from howdah.wire.messages import SaveOrder, SaveReport, Status

GATHER_S = 1.0
"""Tasks of a gang ask at nearly the same time: one copy answers them all."""
TELL_S = 2.0
"""How far a copy is, is recorded this often at most."""
MARGIN_S = 60.0
"""An executor keeps a copy's limit itself; the master's is for one that does not tell."""
ASIDE = (e.SaveRequested, e.SaveStarted, e.SaveAdvanced, e.SaveDone, e.SaveFailed)
"""Events that decide nothing about the job itself."""


# Who wants one


def on_requested(state: GangState, event: e.SaveRequested, actions: list[Action]) -> None:
    """Somebody wants a copy: as soon as may be."""
    actions.append(Record(event))
    gather = GATHER_S if _is_task(state, event.by) else 0.0
    for number in wanted_outputs(state, event.output):
        _want(state, number, event.by, event.time, gather)
    _begin_wanted(state, event.time, actions)


def _is_task(state: GangState, by: str) -> bool:
    try:
        return TaskId.parse(by) in state.tasks
    except ValueError:
        return False


def wanted_outputs(state: GangState, output: int) -> list[int]:
    """The numbers of the outputs that are meant: one, or all (-1), of those that a directory is uploaded for."""
    found = [number for number, each in enumerate(state.job.outputs) if each.strategy == "upload"]
    return [number for number in found if output in (-1, number)]


def number_of(state: GangState, output: int) -> int:
    """The copy that answers who asked last: the one that waits, else the one just begun."""
    if output in state.saves.wanted:
        return state.saves.wanted[output].number
    return state.saves.running[output].number if output in state.saves.running else state.saves.number


def refusal(state: GangState, output: int) -> str:
    """Why there can't be a copy now; "" when there can."""
    if not wanted_outputs(state, output):
        there = f"outputs.{output}" if output >= 0 else "any output"
        return f"the job has no directory to copy for {there}"
    if not state.open:
        return "the job is ending: its programs do not run any more"
    if not any(_makes(task) for number in wanted_outputs(state, output) for task in _parts(state, number)):
        return "no program runs yet that writes it"
    return ""


def on_heard(state: GangState, task: TaskState, status: Status, now: float, actions: list[Action]) -> None:
    """An executor says how far its copies are, and how often its programs asked for one."""
    known = state.saves.asked.get(task.id, (0, 0))
    seen = known[1] if known[0] == task.attempt else 0
    state.saves.asked[task.id] = (task.attempt, status.asked_saves)
    if status.asked_saves > seen and state.open:
        actions.append(Record(e.SaveRequested(now, str(task.id))))
        for number in wanted_outputs(state, -1):
            _want(state, number, str(task.id), now, GATHER_S)
    for report in status.saves:
        run = next((run for run in state.saves.running.values() if run.number == report.number), None)
        if run is not None and run.parts.get(task.id) == (task.attempt, task.epoch):
            run.reports[task.id] = report
            _advance(state, run, now, actions)


def _want(state: GangState, output: int, by: str, now: float, wait_s: float = 0.0) -> None:
    if output not in state.saves.wanted:
        state.saves.number += 1
        state.saves.wanted[output] = SaveWish(state.saves.number, by, now + wait_s)
    else:
        wish = state.saves.wanted[output]
        wish.not_before = min(wish.not_before, now + wait_s)


def on_tick(state: GangState, now: float, actions: list[Action]) -> None:
    """Copies come due, take too long, or lose a task."""
    for run in list(state.saves.running.values()):
        _watch(state, run, now, actions)
    if not state.open:
        return
    for number in wanted_outputs(state, -1):
        every = state.job.outputs[number].save.every_s
        if every and state.running_since and number not in state.saves.running:
            due = state.saves.due.setdefault(number, state.running_since + every)
            if now >= due:
                state.saves.due[number] = now + every
                _want(state, number, "interval", now)
    _begin_wanted(state, now, actions)


# Making one


def _begin_wanted(state: GangState, now: float, actions: list[Action]) -> None:
    for number, wish in list(state.saves.wanted.items()):
        name = time.strftime("%Y_%m_%d_%H_%M_%S", time.localtime(now))
        if number in state.saves.running or now < wish.not_before or name == state.saves.names.get(number):
            continue
        del state.saves.wanted[number]
        _begin(state, number, wish, name, now, actions)


def _begin(state: GangState, number: int, wish: SaveWish, name: str, now: float, actions: list[Action]) -> None:
    output, saves = state.job.outputs[number], state.saves
    parts = {task.id: (task.attempt, task.epoch) for task in _parts(state, number) if _makes(task)}
    uri = uris.normal(place(output) + name)
    saves.names[number] = name
    actions.append(Record(e.SaveStarted(now, wish.number, number, uri, len(parts), wish.by)))
    if not parts:
        actions.append(Record(e.SaveFailed(now, wish.number, "no program runs that writes it")))
        return
    grown = uris.join(snapshot.temporary(state.id, number, output), name)
    previous = saves.last.get(number, "") if output.save.incremental else ""
    saves.due[number] = now + output.save.every_s
    saves.running[number] = SaveRun(wish.number, number, name, uri, grown, now, parts, previous, told_at=now)
    actions.append(Notify(tuple(parts)))


def _parts(state: GangState, number: int) -> list[TaskState]:
    return takers(state, state.job.outputs[number])


def _makes(task: TaskState) -> bool:
    """Its program runs, or has run, in a container that is still there."""
    return task.container is not None and task.epoch > 0 and task.started == task.epoch


def orders(state: GangState, task: TaskState) -> tuple[SaveOrder, ...]:
    """The copies that this task is to make now."""
    return tuple(
        _order(state, run, task.id)
        for run in state.saves.running.values()
        if run.parts.get(task.id) == (task.attempt, task.epoch) and not run.publishing
    )


def _order(state: GangState, run: SaveRun, task: TaskId) -> SaveOrder:
    output = state.job.outputs[run.output]
    flat = is_flat(output, len(_parts(state, run.output)))

    def part(uri: str) -> str:
        return uri if flat or not uri else uris.join(uri, task.slug)

    return SaveOrder(
        run.number, output.source, part(run.temporary), part(run.uri), part(run.previous), output.save.limit_s
    )


def _advance(state: GangState, run: SaveRun, now: float, actions: list[Action]) -> None:
    if run.publishing:
        return
    broken = next(((task, report) for task, report in run.reports.items() if report.problem), None)
    if broken is not None:
        _give_up(state, run, f"{broken[0]}: {broken[1].problem} ({_count(run)})", now, actions)
    elif run.done == len(run.parts):
        run.publishing = True
        output = state.job.outputs[run.output]
        actions.append(PublishSave(run.output, run.temporary, run.uri, place(output), output.save.keep))
        actions.append(Notify(tuple(run.parts)))
    elif run.done > run.told and now - run.told_at >= TELL_S:
        run.told, run.told_at = run.done, now
        actions.append(Record(e.SaveAdvanced(now, run.number, run.done)))


def _count(run: SaveRun) -> str:
    return f"{run.done} of {len(run.parts)} tasks had made their part"


def on_published(state: GangState, event: SavePublished, actions: list[Action]) -> None:
    """The copy is in its place, or not."""
    run = state.saves.running.pop(event.output, None)
    if run is None:
        return
    if event.error or event.empty:
        source = state.job.outputs[event.output].source
        reason = event.error or f"nothing to copy: no task has a finished file in {source!r}"
        actions.append(Record(e.SaveFailed(event.time, run.number, reason)))
        if event.error:
            actions.append(DiscardSave(run.temporary))
        return
    state.saves.last[run.output] = run.uri
    reports = run.reports.values()
    sums = (sum(one.files for one in reports), sum(one.bytes for one in reports), sum(one.total for one in reports))
    actions.append(Record(e.SaveDone(event.time, run.number, *sums, _skipped(run.reports), event.removed)))
    if event.problem:
        actions.append(Record(e.Noted(event.time, event.problem)))
    _begin_wanted(state, event.time, actions)


def _skipped(reports: dict[TaskId, SaveReport]) -> tuple[str, ...]:
    """At most 20 sentences: an event is no list of files."""
    lines = [f"{task}: {line}" for task, report in reports.items() for line in report.skipped]
    return (*lines[:20], f"and {len(lines) - 20} more") if len(lines) > 20 else tuple(lines)


# What goes wrong


def _watch(state: GangState, run: SaveRun, now: float, actions: list[Action]) -> None:
    if run.publishing:
        return
    limit = state.job.outputs[run.output].save.limit_s
    gone = next((id_ for id_, part in run.parts.items() if not _still(state.tasks[id_], part)), None)
    if gone is not None:
        _give_up(state, run, f"{gone} was started again, or is gone ({_count(run)})", now, actions)
    elif now - run.started_at > limit + MARGIN_S:
        late = [str(id_) for id_ in run.parts if id_ not in run.reports or not run.reports[id_].done]
        reason = f"not done after {now - run.started_at:.0f} s: {', '.join(late[:5])} ({_count(run)})"
        _give_up(state, run, reason, now, actions)


def _still(task: TaskState, part: tuple[int, int]) -> bool:
    return task.container is not None and (task.attempt, task.epoch) == part


def _give_up(state: GangState, run: SaveRun, reason: str, now: float, actions: list[Action]) -> None:
    del state.saves.running[run.output]
    actions += [Record(e.SaveFailed(now, run.number, reason)), DiscardSave(run.temporary), Notify(tuple(run.parts))]


def end(state: GangState, now: float, actions: list[Action]) -> bool:
    """The job ends: what is not complete is given up. Whether one is being published, which is let finish."""
    state.saves.wanted.clear()
    for run in list(state.saves.running.values()):
        if not run.publishing:
            _give_up(state, run, f"the job ended ({_count(run)})", now, actions)
    return bool(state.saves.running)


def remember(state: GangState, event: e.Event) -> None:
    """For a master that takes over: what the one before it did. A copy that was being made is nobody's."""
    saves = state.saves
    if isinstance(event, e.SaveDone) and event.number in saves.started:
        output, uri = saves.started[event.number]
        saves.last[output] = uri
    elif isinstance(event, e.SaveStarted):
        saves.number = max(saves.number, event.number)
        saves.started[event.number] = (event.output, event.uri)
        saves.names[event.output] = event.uri[-19:]
        saves.due[event.output] = event.time + state.job.outputs[event.output].save.every_s
