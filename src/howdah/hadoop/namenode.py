"""One protocol of an HDFS's NameNodes, whichever of them is active. All that is asked here may be asked twice."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping

from google.protobuf.message import Message

from howdah.errors import EngineUnavailable, SpecError
from howdah.hadoop.rpc import CALL_TIMEOUT_S, Address, Connection, Kerberos, Login, M, RpcError, User

PROTOCOL = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
NOT_ACTIVE = ("StandbyException", "RetriableException", "ObserverRetryOnActiveException")
PORT = 8020


class NameNodes:
    """Those of `authority`, a host with or without a port or a nameservice of the configuration `conf`.

    Raises:
        SpecError: the configuration demands Kerberos and does not name the NameNodes' principal.
    """

    def __init__(self, authority: str, conf: Mapping[str, str], connect_timeout: float = 5.0) -> None:
        user = login(conf)
        self._connections = [Connection(one, PROTOCOL, user, connect_timeout) for one in addresses(authority, conf)]

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


def login(conf: Mapping[str, str]) -> Login:
    """How a user logs in to a NameNode. Raises SpecError when the servers' principal is not known."""
    if conf.get("hadoop.security.authentication", "simple").lower() != "kerberos":
        return User(os.environ.get("HADOOP_USER_NAME") or getpass.getuser())
    principal = conf.get("dfs.namenode.kerberos.principal", "")
    if not principal:
        raise SpecError.at("dfs.namenode.kerberos.principal", "is not set, but the configuration demands Kerberos")
    return Kerberos(principal)


def before(name: str) -> bytes:
    """The greatest short name that is less than this one: a listing goes on after it. NameNodes order by bytes."""
    encoded = name.encode()
    return encoded[:-1] + bytes([encoded[-1] - 1]) + b"\x7f" if encoded and encoded[-1] > 1 else b""


def _address(text: str, key: str) -> Address:
    host, _, port = text.rpartition(":") if text.rpartition(":")[2].isdigit() else (text, "", "")
    return Address(host.strip("[]"), int(port or PORT), "NameNode", key)
