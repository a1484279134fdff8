"""The clients' protocol of an HDFS's NameNodes, with whichever of them is active."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
from collections.abc import Iterator, Mapping

from howdah.errors import SpecError
from howdah.hadoop.failover import FailoverClient
from howdah.hadoop.identity import is_secure
from howdah.hadoop.rpc import Address, Kerberos, Login, SimpleLogin
from howdah.wire import credentials

PROTOCOL = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
PORT = 8020
TOKEN_KIND = "HDFS_DELEGATION_TOKEN"  # noqa: S105 - a kind, no secret


class NameNodes(FailoverClient):
    """Calls the active NameNode of `authority`: a host with or without a port, or a name service that the configuration
    `conf` describes.

    Raises:
        SpecError: the configuration demands Kerberos and does not name the NameNodes' principal.
    """

    def __init__(self, authority: str, conf: Mapping[str, str]) -> None:
        super().__init__(addresses(authority, conf), PROTOCOL, login(authority, conf), connect_timeout=5.0)


def addresses(authority: str, conf: Mapping[str, str]) -> list[Address]:
    """Return the addresses of the NameNodes; with high availability there are several."""
    names = [name.strip() for name in conf.get(f"dfs.ha.namenodes.{authority}", "").split(",") if name.strip()]
    keys = [f"dfs.namenode.rpc-address.{authority}.{name}" for name in names]
    found = [Address.parse(conf[key], PORT, "NameNode", key) for key in keys if conf.get(key)]
    return found or [Address.parse(authority, PORT, "NameNode")]


def login(authority: str, conf: Mapping[str, str]) -> Login:
    """Return the user's login for the NameNodes of `authority`: by name or, if they demand Kerberos, with the
    container's token, else with a ticket.

    Raises:
        SpecError: the servers' principal is not known.
    """
    if not is_secure(conf):
        return SimpleLogin(os.environ.get("HADOOP_USER_NAME") or getpass.getuser())
    names = set(services(authority, conf))
    with contextlib.suppress(OSError, ValueError, KeyError):  # a user's own shell has no tokens
        for token in credentials.load().of_kind(TOKEN_KIND):
            if token.service in names:
                return token
    principal = conf.get("dfs.namenode.kerberos.principal", "")
    if not principal:
        raise SpecError.at("dfs.namenode.kerberos.principal", "is not set, but the configuration demands Kerberos")
    return Kerberos(principal)


def services(authority: str, conf: Mapping[str, str]) -> Iterator[str]:
    """Yield the names under which clients look for tokens of `authority`: a name service's own; else the address as it
    is written, for hdfs-native, and with the host's IP address, for Java."""
    if f"dfs.ha.namenodes.{authority}" in conf:
        yield f"ha-hdfs:{authority}"
        return
    (address,) = addresses(authority, conf)
    yield f"{address.host}:{address.port}"
    with contextlib.suppress(OSError):
        number = socket.gethostbyname(address.host)
        if number != address.host:
            yield f"{number}:{address.port}"


def before(name: str) -> bytes:
    """Return the greatest short name that is less than this one, because a listing starts after the name that it is
    given. NameNodes order names by bytes."""
    encoded = name.encode()
    return encoded[:-1] + bytes([encoded[-1] - 1]) + b"\x7f" if encoded and encoded[-1] > 1 else b""
