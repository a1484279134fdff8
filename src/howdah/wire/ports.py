"""Binds sockets to a free port of a range, for clusters whose firewalls let no other ports through.

A port that any process has bound is not free, whatever options are set on it: so no option that would share the port is
set before the bind.
"""

from __future__ import annotations

import errno
import random
import socket
from typing import Sequence

# SELinux keeps some for services that it knows (EACCES).
_TAKEN = (errno.EADDRINUSE, errno.EACCES)


def bind_socket(family: int, address: str, ports: Sequence[int]) -> socket.socket:
    """Bind a socket to `address` at a free one of `ports`; without `ports` the system chooses the port.

    Raises:
        OSError: no port is free (EADDRINUSE), or the address is none of this machine.
    """
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        _bind(one, address, ports)
    except OSError:
        one.close()
        raise
    return one


def _bind(one: socket.socket, address: str, ports: Sequence[int]) -> None:
    # Processes that search at the same time begin at different ports.
    begin = random.randrange(len(ports) or 1)  # noqa: S311 - no secret
    for port in (*ports[begin:], *ports[:begin]) if ports else (0,):
        try:
            one.bind((address, port))
        except OSError as error:
            if error.errno not in _TAKEN or not ports:
                raise
        else:
            return
    raise OSError(errno.EADDRINUSE, f"none of the ports {ports[0]} to {ports[-1]} is free (port_range)")
