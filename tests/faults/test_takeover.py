"""Tests that a master killed at any moment costs only time, because the next one takes over."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest
from test_schedules import check, containers, one_event, shapes

from howdah.master.decisions.actions import RecordEvent
from howdah.master.recovery import replay
from howdah.master.state import GangState
from howdah.spec.events import Asked
from howdah.testing import Gang

SEEDS = 1000
# What is not remembered: when somebody spoke last, and what is told again with every message.
FORGOTTEN = {"sequence", "heard_at", "launched_at", "phase", "usage", "used_at", "world", "adopted", "fenced_until"}


def known(state: GangState) -> dict[str, Any]:
    """What a master knows, but for moments."""
    tasks = {
        str(task.id): {f.name: getattr(task, f.name) for f in dataclasses.fields(task) if f.name not in FORGOTTEN}
        | {"formed": task.formed, "spoken": task.phase is not None}
        for task in state.tasks.values()
    }
    moments = {"requested_at", "granted_at", "tasks", "job", "taken_over"}
    whole = {f.name: getattr(state, f.name) for f in dataclasses.fields(state) if f.name not in moments}
    return {**whole, "tasks": tasks}


@pytest.mark.parametrize("block", range(10))
def test_the_log_tells_the_next_master_all_that_the_last_one_knew(block: int):
    for seed in range(block * SEEDS // 10, (block + 1) * SEEDS // 10):
        chance = random.Random(seed)
        gang = Gang(shapes(chance))
        for _ in range(chance.randrange(5, 120)):
            one_event(gang, chance)
            if not gang.state.open or gang.state.request_again_at:
                break
        before = gang.state
        if any(task.live and task.phase is None for task in before.tasks.values()):
            continue  # such containers are given back: see the next test
        again = GangState.for_job("job-1", before.job)
        left = replay(again, [action.event for action in gang.actions_of(RecordEvent)], gang.now)
        assert known(again) == known(before), f"seed {seed}"
        undone = [action for action in left if isinstance(action, RecordEvent) and not isinstance(action.event, Asked)]
        assert not undone, f"seed {seed}: {undone}"


@pytest.mark.parametrize("block", range(10))
def test_killed_at_any_moment_the_job_comes_to_its_end(block: int):
    for seed in range(block * SEEDS // 10, (block + 1) * SEEDS // 10):
        chance = random.Random(seed)
        gang = Gang(shapes(chance))
        for _ in range(chance.randrange(20, 150)):
            one_event(gang, chance)
            if gang.state.open and chance.random() < 0.05:
                recorded = len(gang.actions_of(RecordEvent))
                gang.take_over(lost=min(recorded - 1, chance.choice((0, 0, 1, 2, 5))))
            check(gang)
        for _ in range(400):
            gang.wait(30.0)
        check(gang)
        assert gang.outcome is not None, f"seed {seed} never ends: {gang.state.stage}"
        leaked = containers(gang) - gang.gone - set(gang.state.containers)
        assert not leaked, f"seed {seed}: {leaked} are neither given back nor known at the end"
