"""One protocol of the ResourceManagers, whichever of them is active.

A manager that is down or on standby is passed over; each is asked once before any is asked again, first of all the one
that answered last. A call may so arrive twice, which every ResourceManager call we make allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from google.protobuf.message import Message

from howdah.errors import EngineUnavailable, SpecError
from howdah.hadoop.rpc import CALL_TIMEOUT_S, Address, Login, M, RpcConnection, RpcError

NOT_ACTIVE = ("StandbyException", "RetriableException", "ObserverRetryOnActiveException")
PAUSE_S = 1.0


class ResourceManagers:
    """Calls the active ResourceManager. Rounds over all of them are repeated for `limit_s` seconds while none is
    active; 0 asks each once."""

    # By their addresses: a manager whose machine is down costs the connect timeout, and a process should pay it once.
    _answered: ClassVar[dict[tuple[Address, ...], int]] = {}

    def __init__(
        self,
        addresses: Sequence[Address],
        protocol: str,
        login: Login,
        limit_s: float = 0.0,
        connect_timeout: float = 10,
    ) -> None:
        if not addresses:
            raise SpecError.at("yarn.resourcemanager.address", "no ResourceManager is configured")
        self._addresses, self._protocol, self._limit_s = tuple(addresses), protocol, limit_s
        self._connect_timeout, self._current = connect_timeout, self._answered.get(self._addresses, 0)
        self._connections = self._connect(login)

    def _connect(self, login: Login) -> list[RpcConnection]:
        return [RpcConnection(address, self._protocol, login, self._connect_timeout) for address in self._addresses]

    @property
    def current(self) -> Address:
        """The manager that answered last, or is asked next."""
        return self._addresses[self._current]

    async def log_in(self, login: Login) -> None:
        """Log in with `login`, a renewed token, from now on."""
        old, self._connections = self._connections, self._connect(login)
        for connection in old:
            await connection.close()

    async def call(self, method: str, request: Message, kind: type[M], timeout: float = CALL_TIMEOUT_S) -> M:
        """Call a method. Raises EngineUnavailable with what each manager said, RpcError with the active one's
        exception."""
        clock = asyncio.get_running_loop().time
        begun, refusals = clock(), list[str]()
        while not refusals or clock() + PAUSE_S <= begun + self._limit_s:
            if refusals:
                await asyncio.sleep(PAUSE_S)
                refusals.clear()
            for _ in self._connections:
                try:
                    answer = await self._connections[self._current].call(method, request, kind, timeout)
                    self._answered[self._addresses] = self._current
                    return answer
                except EngineUnavailable as error:
                    refusals.append(str(error))
                except RpcError as error:
                    if error.name not in NOT_ACTIVE:
                        raise
                    refusals.append(f"{self.current} is not active ({error.name})")
                self._current = (self._current + 1) % len(self._connections)
        tried = f"no ResourceManager within {clock() - begun:.0f} s: " if self._limit_s else ""
        raise EngineUnavailable(tried + "; ".join(refusals))

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            await connection.close()
