"""Ports reserved by name, so that nobody else gets them between joining and the program's own bind.

A bound socket that never listens keeps a port to itself, yet lets in a program that sets SO_REUSEADDR (Linux allows
that while no socket of the port listens) or SO_REUSEPORT: frameworks that set either need no close-then-bind race.
Both are set once the port is ours alone.
"""

from __future__ import annotations

import errno
import socket
from typing import Dict, Sequence

from howdah.wire.ports import bound

_ANY = "0.0.0.0"  # noqa: S104 - compared with, not bound to


class Reservation:
    """Ports by name on `host`, held until `release`. A host whose name is not an address of ours holds them on all.
    `among` are those that may be taken; without any the system chooses.

    Raises:
        OSError: no port is free.
    """

    def __init__(self, host: str, names: Sequence[str], among: Sequence[int] = ()) -> None:
        self._sockets: Dict[str, socket.socket] = {}
        for name in names:
            try:
                self._sockets[name] = _bind(host, among)
            except OSError:
                self.release()
                raise

    @property
    def ports(self) -> Dict[str, int]:
        return {name: one.getsockname()[1] for name, one in self._sockets.items()}

    def file(self, name: str) -> int:
        """The descriptor of its socket."""
        return self._sockets[name].fileno()

    @property
    def address(self) -> str:
        """The numeric address they are held on; "" when that is all of them."""
        first = next(iter(self._sockets.values())).getsockname()[0]
        return "" if first == _ANY else str(first)

    def release(self) -> None:
        """Let them go; `ports` is empty from now on."""
        for one in self._sockets.values():
            one.close()
        self._sockets = {}


def _bind(host: str, among: Sequence[int]) -> socket.socket:
    for address in (host, ""):
        try:
            family = socket.getaddrinfo(address, None)[0][0] if address else socket.AF_INET
        except OSError:
            continue
        try:
            one = bound(family, address, among)
        except OSError as error:
            if not address or error.errno == errno.EADDRINUSE:
                raise
        else:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            return one
    raise OSError(f"no port could be reserved on {host}")
