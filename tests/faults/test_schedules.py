"""Tests the invariants of the real `step` after each event of seeded random schedules."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from howdah.master.decisions.actions import Finish, LaunchTask, RecordEvent, ReleaseContainer
from howdah.spec import Exit, JobSpec, Resources, Role, State, Timeouts
from howdah.spec.events import CancelRequested, ContainerEnded, Ended, Joined, Started, WorldFormed
from howdah.testing import OK, Gang, job
from howdah.wire.messages import Phase

SEEDS = 1000
FAILURES = (
    Exit("exit", 1),
    Exit("memory", signal=9),
    Exit("lost", detail="node lost"),
    Exit("preempted"),
    Exit("port", 1),
)


def containers(gang: Gang) -> set[str]:
    """Granted, and neither given back nor gone."""
    released = {action.container_id for action in gang.actions_of(ReleaseContainer)}
    return {action.container.id for action in gang.actions_of(LaunchTask)} - released


def shapes(chance: random.Random) -> JobSpec:
    """Jobs of every kind: with stages, without a gang, with restarts of a part."""
    policy = chance.choice(("", "ignore", "restart", "restart-role"))
    worker = Role("w", replicas=2, on_failure=policy, restarts=2, resources=Resources(growth=chance.choice((0, 0.5))))
    spec = replace(
        job(),
        roles={"ps": Role("ps", tracked=False), "worker": worker},
        retries=chance.randrange(3),
        success=chance.choice(("all", "any", "chief", "50%")),
        gang=chance.random() < 0.8,
        timeouts=Timeouts(gang_s=900, run_s=2000, grace_s=chance.choice((0, 20))),
    )
    if chance.random() < 0.3:
        prepare = Role("p", on_failure=chance.choice(("", "ignore", "restart")))
        late = replace(worker, after=("prepare",))
        spec = replace(spec, roles={"prepare": prepare, "ps": spec.roles["ps"], "worker": late})
    return spec


def one_event(gang: Gang, chance: random.Random) -> None:
    tasks = list(gang.state.tasks.values())
    task = chance.choice(tasks)
    dice = chance.random()
    if dice < 0.30:
        gang.grant(chance.choice(list(gang.state.job.roles)))
    elif dice < 0.50 and task.container:
        gang.join(str(task.id))
    elif dice < 0.62 and task.container and gang.state.open and task.formed and task.joined == task.epoch:
        gang.run(str(task.id))
    elif dice < 0.74 and task.container and task.started == task.epoch:
        gang.end(str(task.id), OK if chance.random() < 0.8 else chance.choice(FAILURES))
    elif dice < 0.78 and task.container:
        gang.feed(ContainerEnded(gang.now, task.container.id, chance.choice(FAILURES)))
    elif dice < 0.80:
        gang.say(str(task.id), Phase.ENDED, epoch=max(0, task.epoch - 1), exit=Exit("exit", 9))
    elif dice < 0.805:
        gang.feed(CancelRequested(gang.now, "chance"))
    else:
        gang.wait(chance.choice((0.5, 1.0, 5.0, 30.0)))


def check(gang: Gang) -> None:
    state = gang.state
    held = [task.container.id for task in state.tasks.values() if task.container]
    assert len(held) == len(set(held)), "two tasks in one container"
    assert set(held) <= containers(gang), "a task in a container that was given back"
    assert len(gang.actions_of(Finish)) <= 1, "the end is final"
    wanted = {}
    for action in gang.actions_of(RecordEvent):
        if isinstance(action.event, Joined):
            wanted.setdefault(action.event.epoch, set()).add(action.event.task)
    for task in state.tasks.values():
        if task.formed and task.exit is None:
            assert task.id in wanted[task.epoch], "a world formed without a task that is in it"
        if task.live and task.epoch and task.started == task.epoch:
            assert task.joined == task.epoch, "started, not joined"
    epochs = [event.epoch for event in gang.recorded(WorldFormed)]
    assert len(epochs) == len(set(epochs)), "an epoch formed twice"
    started = [(event.task, event.epoch) for event in gang.recorded(Started)]
    assert len(started) == len(set(started)), "one epoch of a task started twice"


@pytest.mark.parametrize("block", range(10))
def test_whatever_happens_the_invariants_hold_and_the_job_ends(block: int):
    for seed in range(block * SEEDS // 10, (block + 1) * SEEDS // 10):
        chance = random.Random(seed)
        gang = Gang(shapes(chance))
        for _ in range(chance.randrange(20, 150)):
            one_event(gang, chance)
            check(gang)
        for _ in range(400):  # the faults end; nobody speaks any more, and every wait has its limit
            gang.wait(30.0)
        check(gang)
        assert gang.outcome is not None, f"seed {seed} never ends: {gang.state.stage}"
        if gang.outcome.state is State.SUCCEEDED:
            well = any(event.exit.ok for event in gang.recorded(Ended))
            assert well or gang.state.job.success == "50%", f"seed {seed}: success from nothing"
        leaked = containers(gang) - gang.gone - set(gang.state.containers)
        assert not leaked, f"seed {seed}: {leaked} are neither given back nor known at the end"
