"""One protocol of an HDFS's NameNodes, whichever of them is active. All that is asked here may be asked twice."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
from collections.abc import Iterator, Mapping

from google.protobuf.message import Message

from howdah.errors import EngineUnavailable, SpecError
from howdah.hadoop.identity import is_secure
from howdah.hadoop.rpc import CALL_TIMEOUT_S, Address, Kerberos, Login, M, RpcConnection, RpcError, User
from howdah.wire import credentials
from howdah.wire.credentials import Token

PROTOCOL = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
NOT_ACTIVE = ("StandbyException", "RetriableException", "ObserverRetryOnActiveException")
PORT = 8020
TOKEN_KIND = "HDFS_DELEGATION_TOKEN"  # noqa: S105 - a kind, no secret


class NameNodes:
    """The NameNodes of `authority`, a host with or without a port or a nameservice of the configuration `conf`.

    Raises:
        SpecError: the configuration demands Kerberos and does not name the NameNodes' principal.
    """

    def __init__(self, authority: str, conf: Mapping[str, str], connect_timeout: float = 5.0) -> None:
        user = login(authority, conf)
        self._connections = [RpcConnection(one, PROTOCOL, user, connect_timeout) for one in addresses(authority, conf)]

    async def call(self, method: str, request: Message, kind: type[M], timeout: float = CALL_TIMEOUT_S) -> M:
        """Raises EngineUnavailable listing what each said, RpcError with the active one's exception."""
        refusals = []
        for connection in list(self._connections):
            try:
                return await connection.call(method, request, kind, timeout)
            except EngineUnavailable as error:
                refusals.append(str(error))
            except RpcError as error:
                if error.name not in NOT_ACTIVE:
                    raise
                refusals.append(f"{connection.address} is not active ({error.name})")
            self._connections.append(self._connections.pop(0))  # the one that answers stays first
        raise EngineUnavailable("; ".join(refusals))

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            await connection.close()


def addresses(authority: str, conf: Mapping[str, str]) -> list[Address]:
    """Where the NameNodes listen, several with high availability."""
    names = [name.strip() for name in conf.get(f"dfs.ha.namenodes.{authority}", "").split(",") if name.strip()]
    keys = [f"dfs.namenode.rpc-address.{authority}.{name}" for name in names]
    found = [_address(conf[key], key) for key in keys if conf.get(key)]
    return found or [_address(authority, "")]


def login(authority: str, conf: Mapping[str, str]) -> Login:
    """How a user logs in to the NameNodes of `authority`: by name; where they demand more with the token that the
    container was given, else with a ticket. Raises SpecError when the servers' principal is not known."""
    if not is_secure(conf):
        return User(os.environ.get("HADOOP_USER_NAME") or getpass.getuser())
    names = set(services(authority, conf))
    for token in _given():
        if token.service in names:
            return token
    principal = conf.get("dfs.namenode.kerberos.principal", "")
    if not principal:
        raise SpecError.at("dfs.namenode.kerberos.principal", "is not set, but the configuration demands Kerberos")
    return Kerberos(principal)


def services(authority: str, conf: Mapping[str, str]) -> Iterator[str]:
    """What tokens for `authority` are named after: a name service's own; else the address as it is written, for
    hdfs-native, and as Java has it, by its number."""
    if f"dfs.ha.namenodes.{authority}" in conf:
        yield f"ha-hdfs:{authority}"
        return
    (address,) = addresses(authority, conf)
    yield f"{address.host}:{address.port}"
    with contextlib.suppress(OSError):
        number = socket.gethostbyname(address.host)
        if number != address.host:
            yield f"{number}:{address.port}"


def _given() -> list[Token]:
    """A user's own shell has none."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        return credentials.load().of_kind(TOKEN_KIND)
    return []


def before(name: str) -> bytes:
    """The greatest short name that is less than this one: a listing goes on after it. NameNodes order by bytes."""
    encoded = name.encode()
    return encoded[:-1] + bytes([encoded[-1] - 1]) + b"\x7f" if encoded and encoded[-1] > 1 else b""


def _address(text: str, key: str) -> Address:
    host, _, port = text.rpartition(":") if text.rpartition(":")[2].isdigit() else (text, "", "")
    return Address(host.strip("[]"), int(port or PORT), "NameNode", key)
