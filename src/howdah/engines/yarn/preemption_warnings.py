"""Turns YARN's warnings that it will take containers away into events: preemption, and nodes that leave or are
unhealthy.

The ResourceManager repeats a preemption contract with every heartbeat until the containers are gone; the
CapacityScheduler names them in the negotiable contract and takes them all the same. The time that it waits is in its
own configuration, which clients often have as well; decommissioning nodes have their time in the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from howdah.engines.yarn import records
from howdah.engines.yarn.conf import Configuration
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.spec.events import Event, LossAnnounced, Noted
from howdah.spec.message import message

WAIT_KEY, WAIT_MS = "yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill", 15_000
_UNHEALTHY, _DECOMMISSIONING = 3, 7
_GONE = (4, 5, 6, 8)

Granted = Mapping[str, pb.Container]


class PreemptionWarnings:
    """Remembers the warnings that were given."""

    def __init__(self, configuration: Configuration) -> None:
        self._wait_s = configuration.number(WAIT_KEY, WAIT_MS) / 1000
        self._warned: set[tuple[str, str]] = set()

    def new_events(self, response: pb.AllocateResponse, granted: Granted, now: float) -> Iterator[Event]:
        """Yield the new warnings in `response` about containers that are `granted`."""
        yield from self._nodes(response.nodes, granted, now)
        contracts = response.preemption
        for entry in (*contracts.strict.containers, *contracts.negotiable.containers):
            id_ = records.container_id(entry.id)
            if id_ in granted and self._is_new(id_, "preemption"):
                template = "YARN is about to preempt its container on {node}, in {seconds} s"
                text = message(template, node=granted[id_].node.host, seconds=f"{self._wait_s:.0f}")
                yield LossAnnounced(now, id_, "preemption", self._wait_s, text)

    def _is_new(self, what: str, why: str) -> bool:
        fresh = (what, why) not in self._warned
        self._warned.add((what, why))
        return fresh

    def _nodes(self, nodes: Iterable[pb.NodeReport], granted: Granted, now: float) -> Iterator[Event]:
        for node in nodes:
            held = [id_ for id_, container in granted.items() if container.node == node.node]
            name = f"{node.node.host}:{node.node.port}"
            if node.state == records.NODE_RUNNING:
                self._warned = {(what, why) for what, why in self._warned if what != name}
            elif held and node.state == _DECOMMISSIONING and self._is_new(name, "decommission"):
                template = "node {node} is being decommissioned, at an unknown time"
                if node.decommissioning_s:
                    template = "node {node} is being decommissioned, in at most {seconds} s"
                text = message(template, node=node.node.host, seconds=node.decommissioning_s)
                yield from (LossAnnounced(now, id_, "decommission", node.decommissioning_s, text) for id_ in held)
            elif held and node.state == _UNHEALTHY and self._is_new(name, "unhealthy"):
                reason = node.health_report.strip() or message("it does not say why")
                text = message("node {node} is unhealthy: {reason}", node=node.node.host, reason=reason)
                yield from (LossAnnounced(now, id_, "unhealthy", 0.0, text) for id_ in held)
            elif held and node.state in _GONE and self._is_new(name, str(node.state)):
                state = records.name(records.NODE_STATES, node.state)
                state = f"{state} {node.health_report}".strip()
                template = "node {node} with {count} of our containers is {state}"
                yield Noted(now, message(template, node=node.node.host, count=len(held), state=state))
