"""Forwards a port of this machine's loopback to a port of another host."""

from __future__ import annotations

import asyncio
import threading

from howdah.api.async_tasks import cancel_all

_PIECE = 1 << 16
_CONNECT_S = 10.0


class PortForward:
    """Forwards connections, in a thread of its own, until `close`; `port` is the port on this machine.

    Raises:
        OSError: no port is free.
    """

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
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
        await cancel_all(asyncio.all_tasks)
        await asyncio.sleep(0.01)  # the loop closes aborted connections in its next turns

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection; when one side ends, however it does, the other side is ended, too."""
        far = None
        try:
            far = await asyncio.wait_for(asyncio.open_connection(*self.target), _CONNECT_S)
            await asyncio.gather(_pump(reader, far[1]), _pump(far[0], writer))
            far[1].close()  # after sending what is still in the buffer
            writer.close()
        except (OSError, asyncio.TimeoutError):
            pass  # no process is listening yet: a browser asks again
        finally:
            for each in (writer, far[1]) if far else (writer,):
                if not each.is_closing():
                    each.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_PIECE):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
