"""Serves TensorBoard's WSGI application by howdah's own HTTP server, whose limits hold for clients without the token.

TensorBoard's own server starts a thread for each connection, and lets it wait for ever.
"""

from __future__ import annotations

import asyncio
import io
import sys
import urllib.parse
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from howdah.api.async_tasks import cancel_all
from howdah.api.http_server import Caller, Request, Response, serve
from howdah.tensorboard.token_middleware import TokenMiddleware
from howdah.tensorboard.wsgi_call import Application, call_application

THREADS = 16
MAX_BODY = 4 << 20
"""The bytes of a body that a client with the token may send: names of runs and tags, mostly."""
_SERVER_HEADERS = {"content-type", "content-length", "transfer-encoding", "connection"}
"""Headers of an answer that the server itself writes."""


class WsgiServer:
    """Listens at `host` and `port` (0: any) from the beginning, and answers while `serve_forever` runs.

    Raises:
        OSError: the port is not free.
    """

    def __init__(self, application: TokenMiddleware, host: str, port: int) -> None:
        self._application, self._pool = application, ThreadPoolExecutor(THREADS, "board")
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(serve(self._answer, self._identify, host, port))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def serve_forever(self) -> None:
        """Answer until `stop`, or the end of the process."""
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._server.close()
            self._loop.run_until_complete(cancel_all(asyncio.all_tasks))
            self._loop.close()
            self._pool.shutdown(wait=False, cancel_futures=True)

    def stop(self) -> None:
        """Stop answering; called in another thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _identify(self, request: Request) -> Caller | None:
        return Caller("", MAX_BODY) if self._application.is_permitted(_environment(request)) else None

    async def _answer(self, request: Request) -> Response:
        return await self._loop.run_in_executor(self._pool, _call, self._application, request)


def _call(application: Application, request: Request) -> Response:
    status, headers, body = call_application(application, _environment(request))
    kind = next((value for name, value in headers if name.lower() == "content-type"), "application/octet-stream")
    kept = {name: value for name, value in headers if name.lower() not in _SERVER_HEADERS}
    return Response(status, body, kind, kept)


def _environment(request: Request) -> Mapping[str, Any]:
    path, _, query = request.target.partition("?")
    host, _, port = request.headers.get("host", "").rpartition(":")
    # A header with `_` in its name could pass for another.
    names = ((name, value) for name, value in request.headers.items() if "_" not in name)
    headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in names}
    return {
        **headers,
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": urllib.parse.unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "CONTENT_TYPE": request.headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(request.body)),
        "SERVER_NAME": host or "localhost",
        "SERVER_PORT": port or "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": request.peer,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
