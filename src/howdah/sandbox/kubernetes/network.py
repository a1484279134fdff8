"""Chooses a sandbox's addresses, and connects its namespaces with each other and with this machine.

The control plane's namespace holds a bridge. Each node, and this machine, has a leg in it, so that all of them reach
each other directly; a node's pods are behind the node, as on any cluster. When the last process in a namespace has
ended, the kernel removes its interfaces, and with the bridge this machine's leg and the routes over it.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from ipaddress import IPv4Network
from pathlib import Path

from howdah.errors import EngineUnavailable
from howdah.spec.values import dataclass

_SECOND_BYTES = range(64, 250)
_LIMIT_S = 30
_SERVICES = 255
_FIRST_NODE = 10


@dataclass(frozen=True)
class Network:
    """The addresses of one sandbox, all of them in 10.N.0.0/16."""

    second: int
    """The second byte of the addresses: N."""
    leg: str
    """The name of this machine's interface."""

    @property
    def machine(self) -> str:
        """Return the address of this machine, for nodes and pods."""
        return f"10.{self.second}.0.1"

    @property
    def control(self) -> str:
        """Return the address of the control plane."""
        return f"10.{self.second}.0.2"

    @property
    def services(self) -> str:
        """Return the range of services' addresses."""
        return f"10.{self.second}.{_SERVICES}.0/24"

    @property
    def apiserver_service(self) -> str:
        """Return the address of the service `kubernetes`: the first one of the range."""
        return f"10.{self.second}.{_SERVICES}.1"

    def node(self, number: int) -> str:
        """Return the address of a node; the first one is 1."""
        return f"10.{self.second}.0.{_FIRST_NODE + number}"

    def pods(self, number: int) -> str:
        """Return the range of the addresses of a node's pods."""
        return f"10.{self.second}.{number}.0/24"


def choose(leg: str) -> Network:
    """Return a network to which no route of this machine leads."""
    free = [found for found in (Network(second, leg) for second in _SECOND_BYTES) if is_free(found)]
    if not free:
        raise EngineUnavailable("every network between 10.64.0.0/16 and 10.249.0.0/16 has a route on this machine")
    return random.choice(free)  # noqa: S311 - two sandboxes may start at the same time


def is_free(network: Network) -> bool:
    """Return whether no route of this machine leads to a network."""
    addresses = IPv4Network(f"10.{network.second}.0.0/16")
    return not any(addresses.overlaps(route) for route in _routes())


def _routes() -> list[IPv4Network]:
    """Return the targets of this machine's routes, without the default route."""
    routes = []
    for line in Path("/proc/net/route").read_text().splitlines()[1:]:
        target, mask = (int.from_bytes(bytes.fromhex(line.split()[field]), "little") for field in (1, 7))
        if mask:
            routes.append(IPv4Network((target, mask.bit_count())))
    return routes


def connect_machine(network: Network, control: int, nodes: int) -> None:
    """Make the bridge in the namespace of the process `control`, and this machine's leg with its routes."""
    inside = ["nsenter", f"--net=/proc/{control}/ns/net"]
    bridge = f"{network.control}/24"
    for command in (
        [*inside, "ip", "link", "set", "lo", "up"],
        # An address of its own: otherwise the bridge would take a leg's, and change it with each lost node. Whoever had
        # cached it would send to nowhere for half a minute.
        [*inside, "ip", "link", "add", "bridge", "address", _mac(network.control), "type", "bridge"],
        [*inside, "ip", "address", "add", bridge, "dev", "bridge"],
        # No kube-proxy runs: the one service that pods need, the apiserver's, is an address of the control plane.
        [*inside, "ip", "address", "add", f"{network.apiserver_service}/32", "dev", "bridge"],
        [*inside, "ip", "link", "set", "bridge", "up"],
        [
            *("ip", "link", "add", network.leg, "address", _mac(network.machine), "type", "veth"),
            *("peer", "name", "machine", "netns", str(control)),
        ],
        [*inside, "ip", "link", "set", "machine", "master", "bridge", "up"],
        ["ip", "address", "add", f"{network.machine}/24", "dev", network.leg],
        ["ip", "link", "set", network.leg, "up"],
        ["ip", "route", "add", network.services, "via", network.control],
        *(["ip", "route", "add", network.pods(n), "via", network.node(n)] for n in range(1, nodes + 1)),
        *([*inside, "ip", "route", "add", network.pods(n), "via", network.node(n)] for n in range(1, nodes + 1)),
    ):
        _run(command)


def connect_node(network: Network, control: int, node: int, number: int, nodes: int) -> None:
    """Give the namespace of the process `node` a leg in the bridge, and routes to the other nodes' pods."""
    inside, bridge = ["nsenter", f"--net=/proc/{node}/ns/net"], ["nsenter", f"--net=/proc/{control}/ns/net"]
    # The kernel may still be removing the leg of the node's last life.
    subprocess.run([*bridge, "ip", "link", "delete", f"node{number}"], capture_output=True, timeout=_LIMIT_S)
    others = [other for other in range(1, nodes + 1) if other != number]
    for command in (
        [
            *(*bridge, "ip", "link", "add", f"node{number}", "type", "veth"),
            *("peer", "name", "eth0", "address", _mac(network.node(number)), "netns", str(node)),
        ],
        [*bridge, "ip", "link", "set", f"node{number}", "master", "bridge", "up"],
        [*inside, "ip", "link", "set", "lo", "up"],
        [*inside, "ip", "address", "add", f"{network.node(number)}/24", "dev", "eth0"],
        [*inside, "ip", "link", "set", "eth0", "up"],
        [*inside, "ip", "route", "add", "default", "via", network.machine],
        [*inside, "ip", "route", "add", network.services, "via", network.control],
        *([*inside, "ip", "route", "add", network.pods(n), "via", network.node(n)] for n in others),
    ):
        _run(command)


def disconnect(leg: str) -> None:
    """Remove this machine's leg, if the kernel has not done so yet."""
    if Path("/sys/class/net", leg).exists():
        subprocess.run(["ip", "link", "delete", leg], capture_output=True, timeout=_LIMIT_S)


def _mac(address: str) -> str:
    """Return the hardware address for an IP address. It is the same at each start, so that other machines' caches stay
    valid."""
    return "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("."))


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S)
    if done.returncode:
        raise EngineUnavailable(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
