"""Finds free ports for a sandbox below the kernel's ephemeral range, where no outgoing connection takes one.

Ports are drawn at random and then checked. Several sandboxes may start at the same time, and a daemon listens seconds
after its port was chosen: until then an abstract socket (unix(7)), which belongs to the network namespace and is closed
with the process, tells other processes that the port is taken.
"""

from __future__ import annotations

import atexit
import itertools
import random
import socket
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from howdah.errors import EngineUnavailable
from howdah.sandbox.conf import node_host, rm_hosts
from howdah.sandbox.shape import Ports, Shape

_LOWEST, _HIGHEST = 20000, 32000
_TRIES = 2000
_RESERVED_S = 300.0
_reserved: dict[int, tuple[float, socket.socket]] = {}
"""The time at which this process has reserved a port, and the socket that marks it as reserved."""


@atexit.register
def _release() -> None:
    while _reserved:
        _reserved.popitem()[1][1].close()


def choose(shape: Shape) -> Ports:
    """Return ports that are free on 127.0.0.1; ports of NodeManagers and ResourceManagers are free on their own
    addresses."""
    drawn = _random_ports()
    nodes = [node_host(number) for number in range(1, shape.nodes + 1)]
    hosts = {"nm": nodes, "rm": list(rm_hosts(shape).values())}
    chosen = {}
    for name in (field.name for field in fields(Ports)):
        needed = hosts.get(name[:2], ["127.0.0.1"])
        free = (port for port in drawn if all(_is_free(host, port) for host in needed))
        chosen[name] = next(filter(reserve, free), 0)
    if not all(chosen.values()):
        raise EngineUnavailable(f"no free port between {_LOWEST} and {_highest_port()} on loopback")
    return Ports(**chosen)


def free_port() -> int:
    """Return a free port of 127.0.0.1.

    Raises:
        StopIteration: there is none.
    """
    return next(_free_ports())


def free_ports(count: int) -> list[int]:
    """Return different free ports of 127.0.0.1.

    Raises:
        EngineUnavailable: fewer ports are free.
    """
    found = list(itertools.islice(_free_ports(), count))
    if len(found) < count:
        raise EngineUnavailable(f"no {count} free ports between {_LOWEST} and {_highest_port()} on loopback")
    return found


def _free_ports() -> Iterator[int]:
    return filter(reserve, (port for port in _random_ports() if _is_free("127.0.0.1", port)))


def reserve(port: int) -> bool:
    """Reserve a port for _RESERVED_S seconds; return False if a process has done so already."""
    for old, (reserved_at, holder) in list(_reserved.items()):
        if time.monotonic() - reserved_at > _RESERVED_S:
            holder.close()
            del _reserved[old]
    holder = socket.socket(socket.AF_UNIX)
    try:
        holder.bind(f"\0howdah-port-{port}")
    except OSError:
        holder.close()
        return False
    _reserved[port] = time.monotonic(), holder
    return True


def _random_ports() -> Iterator[int]:
    return iter(random.sample(range(_LOWEST, _highest_port()), min(_TRIES, _highest_port() - _LOWEST)))


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _highest_port() -> int:
    try:
        return min(_HIGHEST, int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]))
    except OSError:
        return _HIGHEST
