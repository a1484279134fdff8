"""Forwards a port of this machine's loopback to another address."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable

from howdah.api.async_tasks import cancel_all
from howdah.errors import HowdahError
from howdah.wire.splice import SpliceEnd, join

_CONNECT_S = 10.0
Connect = Callable[[SpliceEnd], Awaitable[None]]
"""Connects one end of a forwarded connection to the other side."""


def straight_to(host: str, port: int) -> Connect:
    """Return a function that connects to a port of another host."""

    async def connect(end: SpliceEnd) -> None:
        connecting = asyncio.get_running_loop().create_connection(lambda: end, host, port)
        await asyncio.wait_for(connecting, _CONNECT_S)

    return connect


class PortForward:
    """Forwards connections, in a thread of its own, until `close`. `port` is the port on this machine; 0 takes a free
    one. `report` is called with the reason when a connection could not be forwarded.

    Raises:
        OSError: the port is taken, or none is free.
    """

    def __init__(self, connect: Connect, port: int = 0, report: Callable[[str], None] = lambda _: None) -> None:
        self._connect, self._report = connect, report
        self._loop = asyncio.new_event_loop()
        make = functools.partial(_AcceptedEnd, self._accepted)
        try:
            self._server = self._loop.run_until_complete(self._loop.create_server(make, "127.0.0.1", port))
        except BaseException:
            self._loop.close()
            raise
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._connecting: set[asyncio.Task[None]] = set()
        self._open: set[SpliceEnd] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="forward", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the port and its connections."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(5.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for end in list(self._open):
            end.abort()
        await cancel_all(asyncio.all_tasks)
        await asyncio.sleep(0.01)  # the loop closes aborted connections in its next turns

    def _accepted(self, near: SpliceEnd) -> None:
        self._open.add(near)
        task = self._loop.create_task(self._serve(near))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _serve(self, near: SpliceEnd) -> None:
        """Forward one connection. When one side ends, for any reason, the other side is ended, too."""
        far = SpliceEnd(functools.partial(self._open.discard, near))
        try:
            await self._connect(far)
        except (OSError, asyncio.TimeoutError, HowdahError) as error:
            self._open.discard(near)
            near.abort()  # no process is listening yet: a browser asks again
            self._report(str(error) or type(error).__name__)
            return
        join(near, far)


class _AcceptedEnd(SpliceEnd):
    """The end of a connection that this machine has accepted."""

    def __init__(self, accepted: Callable[[SpliceEnd], None]) -> None:
        super().__init__()
        self._accepted = accepted

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._accepted(self)
