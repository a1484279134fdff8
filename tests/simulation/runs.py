"""Runs one job on the simulated cluster to its end."""

from __future__ import annotations

import random
from dataclasses import replace

import faults
from cluster import Simulation
from executors import Broken
from faults import CALM_S
from jobs import job_of, stalling

from howdah.spec import Preflight

LIMIT_S = 8000.0
ROUGH_EXPIRY_S = 30.0
OBJECTS = 0.3
"""The share of jobs whose directory is on an object store."""


def simulate(
    seed: int,
    without: str = "",
    clocks: bool = True,
    troubled: bool = True,
    slow: bool | None = None,
    rough: bool | None = None,
    objects: bool | None = None,
) -> Simulation:
    """Simulate one run to its end. In half of the runs the master stands still at times, or its clock is set; in half
    everything is slow, and in half of these the ResourceManager is away at times; half are `rough`: masters are ended
    or replaced while they live, and messages come twice. Users cancel some jobs. In a run that is not `troubled`, only
    clocks go wrong.

    Raises:
        Broken: something does not hold.
    """
    slow = seed % 2 == 0 if slow is None else slow
    rough = troubled and random.Random(f"rough {seed}").random() < 0.5 if rough is None else rough
    objects = random.Random(f"objects {seed}").random() < OBJECTS if objects is None else objects
    chance = random.Random(f"faults {seed}")
    more, luck = random.Random(f"spares {seed}"), random.Random(f"stalls {seed}")
    job, hanging = job_of(chance, more), luck.choice((0.0, 0.0, 0.3))
    fit = random.Random(f"preflight {seed}")
    job = replace(job, preflight=Preflight(("all",))) if fit.random() < 0.3 else job
    simulation = Simulation(
        seed, stalling(job, luck) if hanging else job, CALM_S, without, hanging, slow, rough, objects
    )
    if job.preflight.checks:
        faults.checked(simulation, fit)
    simulation.later(luck.expovariate(1 / 30), lambda: faults.announce(simulation, luck))
    if any(role.min_replicas for role in simulation.job.roles.values()):
        simulation.longest_s = 300.0
        simulation.later(0, lambda: faults.rooms(simulation, more, 2))
        simulation.later(CALM_S, lambda: faults.rooms(simulation, more, 5))
    if simulation.slow and troubled and seed % 4 == 0:
        away = random.Random(f"away {seed}")
        simulation.later(away.expovariate(1 / 60), lambda: faults.stay_away(simulation, away))
    if clocks and simulation.clock.random() < 0.5:
        simulation.later(simulation.clock.expovariate(1 / 20), lambda: faults.disturb(simulation))
    if slow and not troubled:
        simulation.later(luck.uniform(10, 60), lambda: faults.kill_master(simulation))
    if troubled:
        simulation.later(chance.expovariate(1 / 8), lambda: faults.trouble(simulation, chance))
    if rough:
        simulation.expiry_s = ROUGH_EXPIRY_S
        if simulation.links.random() < 0.3:
            faults.hide_a_container(simulation)
        else:
            simulation.later(simulation.links.expovariate(1 / 10), lambda: faults.trouble_masters(simulation))
        faults.cancel_some_time(simulation, seed)
    simulation.run(LIMIT_S)
    if simulation.outcome is None:
        raise Broken(f"no end after {LIMIT_S:.0f} s")
    return simulation
