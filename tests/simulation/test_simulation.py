"""Jobs on a simulated cluster on which everything goes wrong for a while; each seed is a run that can be repeated.

HOWDAH_SEEDS=100000 runs that many (`make simulate`). A seed that failed once stays in KEPT.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest
from cluster import Simulation
from executors import Broken, Node, Room

from howdah.spec import Checkpoint, Exit, JobSpec, Output, Preflight, Resources, Role, State, Timeouts
from howdah.spec import events as e

SEEDS = int(os.environ.get("HOWDAH_SEEDS", "1000"))
BLOCKS = 20
KEPT = (107, 109, 173, 376, 753, 1350, 1748, 1942, 2331, 2444, 2489, 2747, 2814, 2963, 1126, 1603, 1763, 5288,
        22904, 23460, 606, 668, 5800, 11168, 11422)  # fmt: skip
CLOCKS = ("", "clock")
CALM_S, LIMIT_S = 120.0, 8000.0


def job_of(chance: random.Random, more: random.Random) -> JobSpec:
    """Jobs of every kind."""
    policy = chance.choice(("", "", "ignore", "restart", "restart-role"))
    growth = chance.choice((0.0, 0.0, 0.5))
    worker = Role("w", replicas=chance.randrange(1, 5), on_failure=policy, resources=Resources(growth=growth))
    roles = {"ps": Role("p", tracked=False), "worker": worker}
    if chance.random() < 0.25:
        roles = {"prepare": Role("p"), **roles, "worker": replace(worker, after=("prepare",))}
    job = JobSpec(
        roles=roles,
        retries=chance.randrange(4),
        success=chance.choice(("all", "any", "chief", "50%")),
        gang=chance.random() < 0.8,
        outputs=(Output("/out"),) if chance.random() < 0.5 else (),
        timeouts=Timeouts(gang_s=600, hold_s=20, run_s=3000, grace_s=chance.choice((0, 10))),
    )
    return elastic(job, more) if job.gang and more.random() < 0.5 else job


def elastic(job: JobSpec, chance: random.Random) -> JobSpec:
    """With spares, or content with fewer workers; some grow back."""
    worker = job.roles["worker"]
    worker = replace(worker, replicas=worker.replicas + chance.randrange(3), spares=chance.randrange(3))
    worker = replace(worker, min_replicas=chance.randrange(worker.replicas))
    checkpoint = Checkpoint(path="/checkpoints" if chance.random() < 0.7 else "")
    return replace(job, roles={**job.roles, "worker": worker}, checkpoint=checkpoint)


def stalling(job: JobSpec, luck: random.Random) -> JobSpec:
    """The job, should its programs hang: then nothing but what its roles say ends them."""
    policy = luck.choice(("restart", "restart", "fail"))
    roles = {name: replace(role, on_stall=policy) for name, role in job.roles.items()}
    return replace(job, roles=roles, timeouts=replace(job.timeouts, stall_s=luck.choice((5, 40)), run_s=0))


def checked(simulation: Simulation, luck: random.Random) -> None:
    """On one node no container passes alone, on another none with others; when things are calm all do."""
    names = [node.name for node in simulation.nodes]
    simulation.unfit = {luck.choice(names)} if luck.random() < 0.6 else set()
    simulation.mute = {luck.choice(names)} if luck.random() < 0.6 else set()
    simulation.later(CALM_S, simulation.unfit.clear)
    simulation.later(CALM_S, simulation.mute.clear)


def announce(simulation: Simulation, luck: random.Random) -> None:
    """A container's loss is announced; mostly it is true."""
    running = [room for room in simulation.rooms.values() if room.exit is None and room.node.reachable]
    master = simulation.master
    if simulation.calm or not running or master is None or not (master.alive and master.ready):
        return
    room = luck.choice(running)
    master.apply(e.LossAnnounced(master.now, room.container.id, "preemption", 15.0, "will be preempted"))
    if luck.random() < 0.8:
        simulation.later(luck.uniform(0, 15), lambda: take(room))


def disturb(simulation: Simulation) -> None:
    """The master does not run for a while, or its clock is set; its process may die of it, as any."""
    master, clock = simulation.master, simulation.clock
    if simulation.calm or simulation.outcome is not None:
        return
    if master is not None and master.alive and master.ready:
        if clock.random() < 0.5:
            master.stopped_until = simulation.now + clock.uniform(1, 40)
        else:
            master.ahead += clock.choice((-1, 1)) * clock.uniform(2, 3600)
    simulation.later(clock.expovariate(1 / 30), lambda: disturb(simulation))


def stay_away(simulation: Simulation, slow: random.Random) -> None:
    """The ResourceManager is restarted: for a while nothing is granted, and nobody hears what has ended."""
    if not simulation.calm and simulation.outcome is None:
        simulation.away_until = simulation.now + slow.uniform(1, 60)
        simulation.later(slow.expovariate(1 / 60), lambda: stay_away(simulation, slow))


def take(room: Room) -> None:
    """It was preempted, if it had not ended."""
    room.exit = room.exit or Exit("preempted")
    if room.executor:
        room.executor.end(Exit("preempted"))


def trouble(simulation: Simulation, chance: random.Random) -> None:
    """One fault, and the next one later."""
    if simulation.calm or simulation.outcome is not None:
        return
    dice, node = chance.random(), chance.choice(simulation.nodes)
    if dice < 0.25:
        kill_master(simulation)
    elif dice < 0.45:
        kill_executor(simulation, chance)
    elif dice < 0.60:
        cut(simulation, node, chance.uniform(1, 90))
    elif dice < 0.70:
        switch_off(simulation, node, chance.uniform(5, 90))
    elif dice < 0.80:
        simulation.storage_down = True
        simulation.later(chance.uniform(1, 30), lambda: setattr(simulation, "storage_down", False))
    elif dice < 0.90:
        preempt(simulation, chance)
    simulation.later(chance.expovariate(1 / 12), lambda: trouble(simulation, chance))


def kill_master(simulation: Simulation) -> None:
    if simulation.master and simulation.attempts < 5:
        simulation.master.alive = False


def kill_executor(simulation: Simulation, chance: random.Random) -> None:
    living = [room.executor for room in simulation.rooms.values() if room.executor and room.executor.alive]
    if living:
        chance.choice(living).end(Exit("signal", signal=9))


def preempt(simulation: Simulation, chance: random.Random) -> None:
    running = [room for room in simulation.rooms.values() if room.exit is None and room.node.reachable]
    if running:
        room = chance.choice(running)
        room.exit = Exit("preempted")
        if room.executor:
            room.executor.end(Exit("preempted"))


def cut(simulation: Simulation, node: Node, seconds: float) -> None:
    node.cut = True
    simulation.later(seconds, lambda: setattr(node, "cut", False))


def switch_off(simulation: Simulation, node: Node, seconds: float) -> None:
    node.up = False
    for room in simulation.rooms.values():
        if room.node is node and room.executor:
            room.executor.end(Exit("lost"))
    if simulation.master and simulation.master.node is node:
        simulation.master.alive = False
    simulation.later(seconds, lambda: setattr(node, "up", True))


def rooms(simulation: Simulation, chance: random.Random, most: int) -> None:
    """A node's room, from now on."""
    for node in simulation.nodes:
        node.room = chance.randrange(most)
    simulation.nodes[0].room += 2


def simulate(
    seed: int, without: str = "", clocks: bool = True, faults: bool = True, slow: bool | None = None
) -> Simulation:
    """One run to its end. In half of them the master stands still at times, or its clock is set; in half all
    take their time, and in half of these the ResourceManager is away at times. Without `faults` that is all that goes
    wrong on the cluster."""
    slow = seed % 2 == 0 if slow is None else slow
    chance = random.Random(f"faults {seed}")
    more, luck = random.Random(f"spares {seed}"), random.Random(f"stalls {seed}")
    job, hanging = job_of(chance, more), luck.choice((0.0, 0.0, 0.3))
    fit = random.Random(f"preflight {seed}")
    job = replace(job, preflight=Preflight(("all",))) if fit.random() < 0.3 else job
    simulation = Simulation(seed, stalling(job, luck) if hanging else job, CALM_S, without, hanging, slow)
    if job.preflight.checks:
        checked(simulation, fit)
    simulation.later(luck.expovariate(1 / 30), lambda: announce(simulation, luck))
    if any(role.min_replicas for role in simulation.job.roles.values()):
        simulation.longest_s = 300.0
        simulation.later(0, lambda: rooms(simulation, more, 2))
        simulation.later(CALM_S, lambda: rooms(simulation, more, 5))
    if simulation.slow and faults and seed % 4 == 0:
        slow = random.Random(f"away {seed}")
        simulation.later(slow.expovariate(1 / 60), lambda: stay_away(simulation, slow))
    if clocks and simulation.clock.random() < 0.5:
        simulation.later(simulation.clock.expovariate(1 / 20), lambda: disturb(simulation))
    if slow and not faults:
        simulation.later(luck.uniform(10, 60), lambda: kill_master(simulation))
    if faults:
        simulation.later(chance.expovariate(1 / 8), lambda: trouble(simulation, chance))
    simulation.run(LIMIT_S)
    if simulation.outcome is None:
        raise Broken(f"no end after {LIMIT_S:.0f} s")
    if simulation.outcome.state is State.SUCCEEDED and simulation.job.outputs and not simulation.commits:
        raise Broken("success without its output")
    return simulation


@pytest.mark.parametrize("block", range(BLOCKS))
def test_whatever_happens(block: int) -> None:
    for seed in range(block * SEEDS // BLOCKS, (block + 1) * SEEDS // BLOCKS):
        try:
            simulate(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.parametrize("seed", KEPT)
def test_what_went_wrong_once(seed: int) -> None:
    simulate(seed, slow=False)
    simulate(seed, clocks=False, slow=False)
    simulate(seed, slow=True)


def test_containers_change_hands() -> None:
    logs = ["".join(simulate(seed, clocks=False).log) for seed in range(200)]
    assert sum('"kind":"Resized"' in log for log in logs) > 5
    assert sum('"giver":{' in log for log in logs) > 10
    assert any("there is room again" in log for log in logs)


def test_nobody_is_silent_because_the_master_stood_still_or_its_clock_was_set() -> None:
    seen, broken = (["".join(simulate(seed, without, faults=False).log) for seed in range(200)] for without in CLOCKS)
    assert sum('"kind":"TimeLost"' in log for log in seen) > 50
    assert not any("not heard for" in log for log in seen)
    assert sum("not heard for" in log for log in broken) > 5


def test_programs_hang() -> None:
    logs = ["".join(simulate(seed).log) for seed in range(300)]
    assert sum('"kind":"Stalled"' in log for log in logs) > 10
    assert sum('"cause":"stalled"' in log for log in logs) > 5
    assert sum('"kind":"LossAnnounced"' in log for log in logs) > 20


def test_nodes_do_not_pass() -> None:
    logs = ["".join(simulate(seed).log) for seed in range(200)]
    assert sum('"kind":"PreflightPassed"' in log for log in logs) > 20
    assert sum('"cause":"preflight"' in log for log in logs) > 15
    assert sum("pre-flight: all-reduce" in log for log in logs) > 3


def test_a_run_can_be_repeated() -> None:
    assert simulate(7).dump() == simulate(7).dump()


@pytest.mark.parametrize(
    ("without", "seen"),
    [
        ("lease", "runs twice"),
        ("fence", "runs twice"),
        ("release", "nobody gives back"),
        ("signs", "no end"),
        ("gang", "is formed without"),
        ("grace", "runs twice"),
        ("log", "starts a second time"),
    ],
)
def test_a_broken_rule_is_seen(without: str, seen: str) -> None:
    with pytest.raises(Broken, match=seen):
        _ = [simulate(seed, without) for seed in range(1000)]
