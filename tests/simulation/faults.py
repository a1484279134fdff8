"""Injects faults into the simulated cluster until its calm phase."""

from __future__ import annotations

import random

from cluster import Simulation
from executors import Executor, Node, Room
from resource_manager import MASTER_ATTEMPTS

from howdah.master.decisions.actions import LaunchTask
from howdah.spec import Exit
from howdah.spec.events import LossAnnounced

CALM_S = 120.0
LONGEST_ISOLATION_S = 100.0


def checked(simulation: Simulation, luck: random.Random) -> None:
    """On one node containers fail their own checks, on another their checks with others; in the calm phase all pass."""
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
    master.apply(LossAnnounced(master.now, room.container.id, "preemption", 15.0, "will be preempted"))
    if luck.random() < 0.8:
        simulation.later(luck.uniform(0, 15), lambda: take(room))


def trouble_masters(simulation: Simulation) -> None:
    """The engine disturbs attempts of the master that have not failed: it ends them, regards them as dead while they
    live, or refuses their requests."""
    links, master = simulation.links, simulation.master
    if simulation.calm or simulation.outcome is not None:
        return
    if master is not None and master.alive and simulation.manager.attempts < MASTER_ATTEMPTS - 2:
        dice, long = links.random(), simulation.expiry_s + links.uniform(0, 40)
        if dice < 0.3:
            master.terminate()
        elif dice < 0.45:
            simulation.manager.fail_attempt()
        elif dice < 0.8:
            isolate(simulation, master.node, long)
        elif dice < 0.95:
            master.stopped_until = simulation.now + long
        else:
            master.fail("an ask is refused")
    simulation.later(links.expovariate(1 / 40), lambda: trouble_masters(simulation))


def isolate(simulation: Simulation, node: Node, seconds: float) -> None:
    """Nothing passes between the node and the ResourceManager; executors and files are reached."""
    node.unheard = True
    simulation.later(min(seconds, LONGEST_ISOLATION_S), lambda: setattr(node, "unheard", False))


def hide_a_container(simulation: Simulation) -> None:
    """A master dies before it has recorded a container that it started, and the container's node is cut off. The
    program runs on, and the next master does not know of it."""
    links = simulation.links

    def launched(_: LaunchTask) -> None:
        if not simulation.files.away and simulation.files.content and not simulation.calm:
            simulation.files.away = True
            simulation.on_launch = lambda _: None
            simulation.later(links.uniform(10, 25), strike)

    def started(executor: Executor) -> None:
        if simulation.files.away and not simulation.calm:
            simulation.on_start = lambda _: None
            simulation.later(links.uniform(0, 1), lambda: cut(simulation, executor.room.node, links.uniform(30, 50)))
            simulation.later(1.0, strike)

    def strike() -> None:
        if simulation.files.away:
            if simulation.master and simulation.manager.attempts < MASTER_ATTEMPTS - 2:
                simulation.master.die("killed")
            simulation.files.away = False

    simulation.on_launch, simulation.on_start = launched, started


def cancel_some_time(simulation: Simulation, seed: int) -> None:
    """The user cancels the job, perhaps twice."""
    people = random.Random(f"cancels {seed}")
    if people.random() < 0.12:
        for _ in range(people.choice((1, 1, 2))):
            simulation.later(people.expovariate(1 / 40), simulation.cancel)


def disturb(simulation: Simulation) -> None:
    """The master does not run for a while, or its clock is set; its process may also die."""
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
    """The ResourceManager is restarted: for a while nothing is granted, and ends are not reported."""
    if not simulation.calm and simulation.outcome is None:
        simulation.manager.away_until = simulation.now + slow.uniform(1, 60)
        simulation.later(slow.expovariate(1 / 60), lambda: stay_away(simulation, slow))


def take(room: Room) -> None:
    """The container was preempted, if it had not ended."""
    room.exit = room.exit or Exit("preempted")
    if room.executor:
        room.executor.end(Exit("preempted"))


def trouble(simulation: Simulation, chance: random.Random) -> None:
    """Inject one fault, and the next one later."""
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
        simulation.files.away = True
        simulation.later(chance.uniform(1, 30), lambda: setattr(simulation.files, "away", False))
    elif dice < 0.90:
        preempt(simulation, chance)
    simulation.later(chance.expovariate(1 / 12), lambda: trouble(simulation, chance))


def kill_master(simulation: Simulation) -> None:
    if simulation.master and simulation.manager.attempts < MASTER_ATTEMPTS - 1:
        simulation.master.die("killed")


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
    for master in simulation.masters:
        if master.node is node:
            master.die("its node is off")
    simulation.later(seconds, lambda: setattr(node, "up", True))


def rooms(simulation: Simulation, chance: random.Random, maximum: int) -> None:
    """A node's room, from now on."""
    for node in simulation.nodes:
        node.room = chance.randrange(maximum)
    simulation.nodes[0].room += 2
