"""Simulates the ResourceManager and the nodes' own part: grants containers and reports their ends.

It starts another attempt of the master when one has ended or was not heard for too long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from executors import Node, Room
from masters import LOST_ATTEMPTS, Master

from howdah.master.decisions.actions import RequestContainers
from howdah.master.state import GangState
from howdah.spec import Container, Exit, Outcome, State
from howdah.spec.events import Allocated, ContainerEnded

if TYPE_CHECKING:
    from cluster import Simulation

HEARTBEAT_S = 1.0
MASTER_ATTEMPTS = 8


class ResourceManager:
    """`current` is the attempt that it regards as the master; it is down until `away_until`, and does not count silence
    from before its restart."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.wanted: dict[str, int] = {}
        self.avoid: dict[str, tuple[str, ...]] = {}
        self.away_until = self.back_at = 0.0
        self.attempts = 0
        self.current: Master | None = None
        self.failed = False
        """A user has made it fail the current attempt."""

    def hears(self, master: Master) -> bool:
        """Whether a message of the master comes through."""
        return self.sim.now >= self.away_until and master.node.heard

    # Heartbeats

    def manage(self) -> None:
        """A heartbeat of all nodes, and of the masters. A ResourceManager that is away hears none, and when it is back
        it waits for all nodes anew."""
        sim = self.sim
        if sim.now < self.away_until:
            self.back_at = sim.now
            for node in sim.nodes:
                node.seen_at = sim.now
        else:
            for node in sim.nodes:
                if node.heard:
                    node.seen_at, node.lost = sim.now, False
                elif sim.now - node.seen_at > sim.expiry_s:
                    node.lost = True
            for room in list(sim.rooms.values()):
                self.look_at(room)
            for master in sim.masters:
                if master.runs and not master.state.handed_over and self.hears(master):
                    self.heartbeat(master)
            master = self.current
            if master and (not master.alive or master.node.lost or self.failed or self.expired(master)):
                self.replace(master)
        if sim.outcome is None:
            sim.later(HEARTBEAT_S, self.manage)

    def heartbeat(self, master: Master) -> None:
        """Handle a master's requests, and return its news; an attempt that is not the master any more is refused."""
        sim = self.sim
        if master is not self.current or self.failed:
            if sim.without != "refusal":
                master.lose("the ResourceManager does not know this attempt")
            sim.invariants.refused(master)
            return
        master.heard_at = sim.now
        self.take(master)
        if not master.leaving:
            self.grant(master)
        for room in [room for room in sim.rooms.values() if room.exit and not room.told and self.known(room)]:
            room.told = True
            master.apply(ContainerEnded(master.now, room.container.id, room.exit))

    def take(self, master: Master) -> None:
        """Handle the requests that the master has made since its last heartbeat."""
        unsent, master.unsent = master.unsent, []
        for message in unsent:
            message()

    # Containers

    def look_at(self, room: Room) -> None:
        if room.node.lost and room.exit is None:
            room.exit = Exit("lost", detail="node lost")
        if room.node.heard and (room.released or (room.exit and room.executor and room.executor.alive)):
            if room.executor:
                room.executor.end(Exit("stopped"))
            room.exit = room.exit or Exit("stopped")

    def known(self, room: Room) -> bool:
        """A silent node reports nothing about its containers until it is given up."""
        return room.node.heard or room.node.lost

    def ask(self, action: RequestContainers) -> None:
        self.wanted[action.role], self.avoid[action.role] = action.count, action.preferences.avoid

    def grant(self, master: Master) -> None:
        sim = self.sim
        for role, count in list(self.wanted.items()):
            for _ in range(count):
                node = next((node for node in sim.nodes if self.offers(node, role)), None)
                if node is None or sim.chance.random() < 0.3:
                    break
                self.wanted[role] -= 1
                container = Container(f"c{sim.number()}", node.name, role)
                sim.rooms[container.id] = Room(container, node, master.number)
                master.apply(Allocated(master.now, container))

    def offers(self, node: Node, role: str) -> bool:
        """Nodes to avoid are avoided only for jobs with pre-flight: other jobs must take any container."""
        avoided = bool(self.sim.job.preflight.checks) and node.name in self.avoid.get(role, ())
        return node.heard and not node.lost and self.free(node) > 0 and not avoided

    def free(self, node: Node) -> int:
        return node.room - sum(room.node is node and room.exit is None for room in self.sim.rooms.values())

    def release(self, container: str) -> None:
        if container in self.sim.rooms:
            self.sim.rooms[container].released = True

    def adopt(self, held: set[str], master: Master) -> set[str]:
        """Give the new master the containers that it still knows, and take back all others."""
        self.wanted = {}
        living = {id_ for id_, room in self.sim.rooms.items() if not room.exit and not room.released}
        for id_ in living - held:
            self.release(id_)
        return living & held

    # Attempts

    def start_master(self) -> None:
        """Start another attempt, on a node that answers."""
        self.attempts, self.failed = self.attempts + 1, False
        sim = self.sim
        node = sim.chance.choice([node for node in sim.nodes if node.heard and not node.lost] or sim.nodes)
        self.current = Master(sim, self.attempts, node, GangState.for_job("job-1", sim.job))
        sim.masters.append(self.current)
        sim.later(sim.chance.uniform(0.3, 3), self.current.begin)

    def expired(self, master: Master) -> bool:
        """The process was silent for too long."""
        return bool(master.heard_at) and self.sim.now - max(master.heard_at, self.back_at) > self.sim.expiry_s

    def replace(self, master: Master) -> None:
        """The attempt is over for the ResourceManager. Its process may live on, where no node can be told to end it."""
        sim = self.sim
        if master.alive:
            sim.seen["two masters"] += 1
            if master.node.heard:
                sim.later(sim.links.uniform(0, 3), master.terminate)
        if self.attempts >= MASTER_ATTEMPTS:  # the cluster gives up
            sim.outcome = Outcome(State.FAILED, LOST_ATTEMPTS)
            return
        self.start_master()

    def fail_attempt(self) -> None:
        """`yarn applicationattempt -fail`: the attempt's next heartbeat is refused, unless the node is faster."""
        master = self.current
        if master is not None and master.alive:
            self.failed = True

    def unregister(self, master: Master, outcome: Outcome) -> None:
        """End the job, if the master may report its end; the master's process ends in any case."""
        if master is self.current and not self.failed:
            self.take(master)
            self.sim.finish(master, outcome)
        master.alive = False
