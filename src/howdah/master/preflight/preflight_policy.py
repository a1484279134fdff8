"""Orders pair tests: before programs start for the first time in a container, it exchanges data with two others.

The rule: only containers that have not passed, and their neighbours, take part; a restart in the same containers does
not wait.
"""

from __future__ import annotations

from howdah.master.decisions.actions import Action, NotifyExecutors, RecordEvent
from howdah.master.preflight.pair_tests import pair_rounds, ring_across_nodes
from howdah.master.preflight.state import PairTest, Partners
from howdah.master.state import Formation, GangState, TaskState
from howdah.spec import TaskId
from howdah.spec.events import PreflightPassed
from howdah.spec.preflight import pairs_wanted
from howdah.wire.messages import PairOrder, Partner


def begin_if_needed(state: GangState, formation: Formation, now: float, actions: list[Action]) -> bool:
    """Return whether the programs of a complete formation have to wait for a pair test, which is begun if necessary."""
    if not pairs_wanted(state.job):
        return False
    tests = state.preflight.pair_tests
    if formation.epoch not in tests:
        partners = _partners(state, formation)
        if not partners:
            return False
        for epoch in [epoch for epoch in tests if epoch not in state.formations]:
            del tests[epoch]
        tests[formation.epoch] = PairTest(partners, set(partners), began=now)
        actions.append(NotifyExecutors(tuple(partners)))
    tests[formation.epoch].awaited &= set(formation.tasks)
    return bool(tests[formation.epoch].awaited)


def _partners(state: GangState, formation: Formation) -> dict[TaskId, Partners]:
    tasks = [state.tasks[id_] for id_ in formation.tasks if state.tasks[id_].pair_port]
    fresh = {task.id for task in tasks if task.container is not None and task.paired != task.container.id}
    order = ring_across_nodes({task.id: task.node for task in tasks}) if fresh else []
    found: dict[TaskId, list[tuple[TaskId, bool] | None]] = {}
    for number, pairs in enumerate(pair_rounds(order, fresh)):
        for caller, listener in pairs:
            found.setdefault(caller, [None, None])[number] = (listener, True)
            found.setdefault(listener, [None, None])[number] = (caller, False)
    return {id_: tuple(partners) for id_, partners in found.items()}


def pair_test_order(state: GangState, task: TaskState) -> PairOrder | None:
    """Return the pair-test order for this task, or None."""
    test = state.preflight.pair_tests.get(task.epoch)
    if test is None or task.formed or task.id not in test.awaited:
        return None
    partners = tuple(_find_partner(state, partner) for partner in test.partners[task.id])
    return PairOrder(epoch=task.epoch, rounds=partners, limit_s=state.job.preflight.limit_s)


def _find_partner(state: GangState, partner: tuple[TaskId, bool] | None) -> Partner | None:
    if partner is None:
        return None
    other = state.tasks[partner[0]]
    return Partner(task=str(other.id), host=other.host, port=other.pair_port, listens=partner[1])


def record_preflight_passed(state: GangState, formation: Formation, now: float, actions: list[Action]) -> None:
    """Record how long the checks took, if there were any: the programs start."""
    seconds = state.preflight.check_seconds
    took = {task: seconds.pop(task) for task in formation.tasks if task in seconds}
    if took:
        slowest = max(took, key=lambda id_: took[id_])
        nodes = {state.tasks[id_].node for id_ in took}
        passed = PreflightPassed(
            now,
            epoch=formation.epoch,
            tasks=len(took),
            nodes=len(nodes),
            seconds=took[slowest],
            slowest=slowest,
            node=state.tasks[slowest].node,
            left_out=tuple(state.preflight.left_out),
        )
        actions.append(RecordEvent(passed))
        state.preflight.left_out.clear()
