"""`PortReservation` holds ports by name, so that no other process gets them before the program binds them itself.

A bound socket that never listens keeps a port to itself, yet lets in a program that sets SO_REUSEADDR (Linux allows
that while no socket of the port listens) or SO_REUSEPORT: frameworks that set either need no close-then-bind race.
Both are set once the port is ours alone, on every address of the machine: many servers listen on all addresses, and a
socket or lingering connection with that number, on whichever address, would be in their way.
"""

from __future__ import annotations

import socket
from typing import Dict, Sequence, Tuple

from howdah.wire.ports import bind_socket


class PortReservation:
    """Holds ports by name until `release`, for the address family of `host` (IPv4 if it has none).

    `address` is the numeric form of `host`, "" if it is no address of this machine. `among` are the ports that may be
    taken; without any the system chooses.

    Raises:
        OSError: no port is free.
    """

    def __init__(self, host: str, names: Sequence[str], among: Sequence[int] = ()) -> None:
        self._sockets: Dict[str, socket.socket] = {}
        family, self.address = _address_family(host) if host else (socket.AF_INET, "")
        for name in names:
            try:
                self._sockets[name] = reserved = bind_socket(family, "", among)
            except OSError:
                self.release()
                raise
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)

    @property
    def ports(self) -> Dict[str, int]:
        """Return the reserved ports by name."""
        return {name: reserved.getsockname()[1] for name, reserved in self._sockets.items()}

    def file(self, name: str) -> int:
        """Return the descriptor of a port's socket."""
        return self._sockets[name].fileno()

    def release(self) -> None:
        """Release all ports; `ports` is empty from now on."""
        for reserved in self._sockets.values():
            reserved.close()
        self._sockets = {}


def _address_family(host: str) -> Tuple[int, str]:
    """Return the family of `host` and its address, which is "" for a host other than this machine."""
    try:
        family, *_, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(address)
    except OSError:
        return socket.AF_INET, ""
    return family, str(address[0])
