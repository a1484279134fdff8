"""Evaluates what pre-flight finds: which pairs exchanged data, and which container is to blame for a failure.

A failure is the node's: another container is asked for elsewhere (`failure_policy`). A container that failed with a
single partner, while both passed with others, is not to blame.
"""

from __future__ import annotations

from howdah.master.decisions import failure_policy
from howdah.master.decisions.actions import Action, RecordEvent
from howdah.master.decisions.gang_formation import deadline_passed, start_if_all_joined
from howdah.master.decisions.job_completion import stop
from howdah.master.preflight.pair_tests import find_bad_containers
from howdah.master.preflight.state import PairTest
from howdah.master.state import GangState, TaskState
from howdah.spec import Exit, Outcome, State, TaskId
from howdah.spec.events import Checked, Noted
from howdah.spec.message import message
from howdah.wire.messages import Status

MARGIN_S = 30.0
"""Executors keep the limit themselves; the master's limit is for executors that report nothing."""
MAX_ALONE = 3
"""The number of failed pairs from which no single node is to blame, if no pair passed."""


def on_status(state: GangState, task: TaskState, status: Status, now: float, actions: list[Action]) -> None:
    """Evaluate the new reports of an executor."""
    for report in status.checks:
        test = state.preflight.pair_tests.get(report.epoch)
        if report.epoch == 0:
            fresh = task.checked != status.attempt
        else:
            fresh = report.epoch == task.epoch and test is not None and task.id in test.awaited
        if fresh:
            checked = Checked(
                now,
                task=task.id,
                attempt=status.attempt,
                epoch=status.epoch,
                seconds=report.seconds,
                found=report.found,
                left_out=report.left_out,
                pairs=report.epoch > 0,
                passed=report.passed,
                failed=report.failed,
            )
            on_checked(state, checked, actions)


def on_checked(state: GangState, event: Checked, actions: list[Action]) -> None:
    """Note that a container has passed the checks that it makes alone, or that its exchange with others is over."""
    actions.append(RecordEvent(event))
    found, task = state.preflight, state.tasks[event.task]
    found.check_seconds[task.id] = round(found.check_seconds.get(task.id, 0.0) + event.seconds, 3)
    found.left_out.update(dict.fromkeys(event.left_out))
    if not event.pairs:
        task.checked = event.attempt
        return
    test = found.pair_tests.get(event.epoch)
    if test is None or task.id not in test.awaited:
        return
    test.awaited.discard(task.id)
    test.passed |= {(task.id, TaskId.parse(other)) for other in event.passed}
    test.failed.update({(task.id, TaskId.parse(other)): why for other, why in event.failed.items()})
    if not test.awaited and state.open:
        _end_pair_test(state, event.epoch, test, event.time, actions)


def _end_pair_test(state: GangState, epoch: int, test: PairTest, now: float, actions: list[Action]) -> None:
    found = state.preflight
    failed = {_pair(state, pair): why for pair, why in test.failed.items()}
    passed = [pair for pair in (_pair(state, pair) for pair in sorted(test.passed)) if pair not in failed]
    if len(failed) >= MAX_ALONE and not passed:
        _blame_nobody(state, test, now, actions)
        return
    found.failed += [pair for pair in failed if pair not in found.failed]
    found.passed.update(passed)
    bad, doubtful, between = find_bad_containers(found.failed, found.passed)
    found.failed = [pair for pair in doubtful if not set(pair) & set(bad)]
    passed_once = {one for pair in passed for one in pair} - set(bad)
    for id_ in test.partners:
        container = state.tasks[id_].container
        if container is not None and container.id in passed_once:
            state.tasks[id_].paired = container.id
    for pair in between:
        names = [str(state.containers.get(container, container)) for container in pair]
        template = "pre-flight: {pair} can't exchange data: both get on with others"
        actions.append(RecordEvent(Noted(now, message(template, pair=f"{names[0]} and {names[1]}"))))
    suspects = [pair[1] if pair[1] in state.containers else pair[0] for pair in found.failed]
    found.suspected_containers.update(suspects)
    _replace(state, [*bad, *suspects], failed, now, actions)
    if state.open and epoch in state.formations:
        start_if_all_joined(state, state.formations[epoch], now, actions)


def _pair(state: GangState, pair: tuple[TaskId, TaskId]) -> tuple[str, str]:
    """Return the containers of the pair, in the order of their tasks."""
    one, other = (state.tasks[id_].container for id_ in sorted(pair))
    return (one.id if one else "", other.id if other else "")


def _replace(
    state: GangState, containers: list[str], failed: dict[tuple[str, str], str], now: float, actions: list[Action]
) -> None:
    """Replace these containers, all at once."""
    ends: dict[TaskId, Exit] = {}
    for container in dict.fromkeys(containers):
        pairs = [(pair, why) for pair, why in failed.items() if container in pair]
        if container in state.containers and pairs:
            ends[state.containers[container]] = _exit(state, container, pairs)
    for id_, exit in ends.items():
        if state.open:
            failure_policy.task_ended(state, state.tasks[id_], exit, now, actions)


def _exit(state: GangState, container: str, failed: list[tuple[tuple[str, str], str]]) -> Exit:
    others = [str(state.containers.get(one, one)) for pair, _ in failed for one in pair if one != container]
    template = "pre-flight: all-reduce with {others}: {reason}"
    if container in state.preflight.suspected_containers:
        template = "pre-flight: all-reduce with {others}: {reason}; it is not known which of the two is at fault"
    return Exit("preflight", detail=message(template, others=" and with ".join(others), reason=failed[0][1]))


def _blame_nobody(state: GangState, test: PairTest, now: float, actions: list[Action]) -> None:
    (one, other), why = next(iter(test.failed.items()))
    template = "pre-flight: all-reduce: no two of {count} tasks can exchange data; {one} with {other}: {reason}"
    reason = message(template, count=len(test.partners), one=one, other=other, reason=why)
    outcome = Outcome(State.FAILED, reason, one, Exit("preflight", detail=why))
    stop(state, outcome, reason, now, actions, unrecorded=True)


def check_deadlines(state: GangState, now: float, actions: list[Action]) -> None:
    """End the pair tests of which some task reports nothing in time. Nobody waits for that of an epoch in which no
    tasks start any more, and its tasks are ordered to do something else."""
    limit = state.job.preflight.limit_s + MARGIN_S
    for epoch, test in list(state.preflight.pair_tests.items()):
        is_over = epoch in state.formations and deadline_passed(limit, now - test.began)
        late = [id_ for id_ in sorted(test.awaited) if is_over and state.tasks[id_].live]
        for id_ in late[:1]:
            if state.open:
                template = "pre-flight: all-reduce: nothing heard of it within {seconds} s"
                detail = message(template, seconds=f"{limit:.0f}")
                failure_policy.task_ended(state, state.tasks[id_], Exit("preflight", detail=detail), now, actions)
