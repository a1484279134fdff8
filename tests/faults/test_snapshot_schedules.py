"""Tests in seeded random schedules that snapshots never harm a job, and that each one's end is recorded."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from test_schedules import check, one_event, shapes

from howdah.master.decisions.actions import CommitDone, FindCheckpoint, PublishSnapshot, SnapshotPublished
from howdah.master.snapshots import snapshot_policy
from howdah.spec import Checkpoint, Output, Save
from howdah.spec.events import CheckpointFound, SaveDone, SaveFailed, SaveRequested, SaveStarted, WorldFormed
from howdah.testing import Gang
from howdah.wire.messages import Phase, SnapshotReport

SEEDS = 400
OUTPUTS = (
    Output("hdfs://n/a", save=Save(every_s=20.0, incremental=True, limit_s=30.0)),
    Output("hdfs://n/b", tasks="worker:0", save=Save(to="hdfs://n/b/interResult_", keep=2)),
)


def answer(gang: Gang, chance: random.Random, seen: set[int]) -> None:
    """What the master's helpers were asked to do is done, or fails; `seen` are the actions dealt with."""
    for number, action in enumerate(list(gang.did)):
        if number in seen or chance.random() < 0.5:
            continue
        if isinstance(action, PublishSnapshot):
            seen.add(number)
            error = "no space" if chance.random() < 0.2 else ""
            gang.feed(SnapshotPublished(gang.now, action.output, error, chance.random() < 0.1))
        elif isinstance(action, FindCheckpoint):
            seen.add(number)
            gang.feed(CheckpointFound(gang.now, action.epochs, chance.choice(("", "hdfs://n/ck/1"))))


def copying(gang: Gang, chance: random.Random) -> None:
    dice = chance.random()
    if dice < 0.3:
        gang.feed(SaveRequested(gang.now, "chance", chance.choice((-1, 0, 1, 7))))
        return
    task = chance.choice(list(gang.state.tasks.values()))
    if task.container is None or task.started != task.epoch or not task.epoch:
        return
    problem = "broken" if chance.random() < 0.1 else ""
    reports = tuple(
        SnapshotReport(number=order.number, done=chance.random() < 0.7, problem=problem, files=1, bytes=1, total=1)
        for order in snapshot_policy.orders(gang.state, task)
    )
    asked = 1 if dice > 0.9 else 0
    fields = {"ports": {"main": 4000}, "program_pid": 7, "snapshots": reports, "requested_snapshots": asked}
    if task.exit is None:
        gang.say(str(task.id), Phase.RUNNING, **fields)
    else:
        gang.say(str(task.id), Phase.ENDED, exit=task.exit, **fields)


def check_copies(gang: Gang, over: bool = False) -> None:
    started = [event.number for event in gang.recorded(SaveStarted)]
    ended = [event.number for event in (*gang.recorded(SaveDone), *gang.recorded(SaveFailed))]
    assert len(started) == len(set(started)), "a snapshot begun twice"
    assert len(ended) == len(set(ended)), "a snapshot ended twice"
    assert set(ended) <= set(started)
    open_ = set(started) - set(ended)
    assert open_ == {run.number for run in gang.state.snapshots.running.values()}
    assert not (over and open_), "a snapshot that nobody told the end of"
    uris = [event.uri for event in gang.recorded(SaveStarted)]
    assert len(uris) == len(set(uris)), "two snapshots in one place"
    formed = {event.epoch for event in gang.recorded(WorldFormed)}
    found = {epoch for event in gang.recorded(CheckpointFound) for epoch in event.epochs}
    assert formed <= found, "programs began before anybody had looked what they go on from"


@pytest.mark.parametrize("block", range(4))
def test_copies_do_no_harm_and_all_of_them_end(block: int) -> None:
    for seed in range(block * SEEDS // 4, (block + 1) * SEEDS // 4):
        chance = random.Random(seed)
        spec = replace(shapes(chance), outputs=OUTPUTS, checkpoint=Checkpoint("hdfs://n/ck"))
        gang, seen = Gang(spec), set[int]()
        for _ in range(chance.randrange(20, 150)):
            one_event(gang, chance)
            copying(gang, chance)
            answer(gang, chance, seen)
            check(gang)
            check_copies(gang)
        for _ in range(400):
            gang.wait(30.0)
            answer(gang, chance, seen)
        if not gang.outcome:
            gang.feed(CommitDone(gang.now))
        check_copies(gang, over=True)
        assert gang.outcome is not None, f"seed {seed} never ends: {gang.state.stage}"
