"""Calls one protocol of several Hadoop servers, of which one is active: ResourceManagers or NameNodes.

A server that is down or on standby is skipped. Each server is asked once before any is asked again, beginning with the
one that answered last. So a call may arrive twice, which every call that howdah makes allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from google.protobuf.message import Message

from howdah.errors import EngineUnavailable
from howdah.hadoop.rpc import CALL_TIMEOUT_S, Address, Login, M, RpcConnection, RpcError

NOT_ACTIVE = ("StandbyException", "RetriableException", "ObserverRetryOnActiveException")
PAUSE_S = 1.0


class FailoverClient:
    """Calls the active server. Rounds over all servers are repeated for `limit_s` seconds while none is active; 0 asks
    each once."""

    # By their addresses: a server whose machine is down costs the connect timeout, and a process should pay it once.
    _answered: ClassVar[dict[tuple[Address, ...], int]] = {}

    def __init__(
        self,
        addresses: Sequence[Address],
        protocol: str,
        login: Login,
        limit_s: float = 0.0,
        connect_timeout: float = 10.0,
    ) -> None:
        self._addresses, self._protocol, self._limit_s = tuple(addresses), protocol, limit_s
        self._connect_timeout, self._current = connect_timeout, self._answered.get(self._addresses, 0)
        self._connections = self._connect(login)

    def _connect(self, login: Login) -> list[RpcConnection]:
        return [RpcConnection(address, self._protocol, login, self._connect_timeout) for address in self._addresses]

    @property
    def current(self) -> Address:
        """Return the server that answered last, or is asked next."""
        return self._addresses[self._current]

    async def log_in(self, login: Login) -> None:
        """Use `login`, which has a renewed token, from now on."""
        old, self._connections = self._connections, self._connect(login)
        for connection in old:
            await connection.close()

    async def call(self, method: str, request: Message, kind: type[M], timeout: float = CALL_TIMEOUT_S) -> M:
        """Call a method.

        Raises:
            EngineUnavailable: no server is active; it says what each one answered.
            RpcError: the active server's exception.
        """
        clock = asyncio.get_running_loop().time
        begun, refusals = clock(), list[str]()
        while not refusals or clock() + PAUSE_S <= begun + self._limit_s:
            if refusals:
                await asyncio.sleep(PAUSE_S)
                refusals.clear()
            first, count = self._current, len(self._addresses)
            for server in (number % count for number in range(first, first + count)):
                try:
                    answer = await self._connections[server].call(method, request, kind, timeout)
                except EngineUnavailable as error:
                    refusals.append(str(error))
                except RpcError as error:
                    if error.name not in NOT_ACTIVE:
                        raise
                    refusals.append(f"{self._addresses[server]} is not active ({error.name})")
                else:
                    self._current = self._answered[self._addresses] = server
                    return answer
                self._current = (server + 1) % count
        tried = f"no {self.current.server} within {clock() - begun:.0f} s: " if self._limit_s else ""
        raise EngineUnavailable(tried + "; ".join(refusals))

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            await connection.close()
