"""Serves launches to containers as a master does, for allocators under test whose containers ask for them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from howdah.api.errors import status_of
from howdah.api.http_server import Caller, Request, Response, abort_clients, serve
from howdah.engines import MasterContext
from howdah.engines.pull_launch import LaunchOffers
from howdah.errors import RequestRefused
from howdah.master.server.container_launches import ContainerLaunches
from howdah.wire import auth, launch_messages

KEY = b"the key of a job in a test"
MAX_BODY = 1 << 20


@contextlib.asynccontextmanager
async def serve_launches(context: MasterContext) -> AsyncIterator[MasterContext]:
    """Yield `context` with the port of a server at its host, which answers the containers of one allocator."""
    launches = LaunchOffers(KEY, context.staged.files, context.staged.runtime)
    containers = ContainerLaunches(launches, lambda _event: None)

    def identify(request: Request) -> Caller | None:
        header = request.headers.get(auth.HEADER.lower(), "")
        principal = auth.principal_of(header)
        key = launch_messages.key_of(KEY, principal[len(launch_messages.PRINCIPAL) :])
        is_right = auth.verify_head(key, "request", header, request.target, time.time())
        return Caller(principal, MAX_BODY, key) if is_right else None

    async def answer(request: Request) -> Response:
        caller, header = request.caller, request.headers.get(auth.HEADER.lower(), "")
        if caller is None or not auth.fits_body(header, request.body):
            return Response(403)
        try:
            response = await containers.answer(caller.name[len(launch_messages.PRINCIPAL) :], request)
        except RequestRefused as refused:
            response = Response(status_of(refused), str(refused).encode())
        digest = response.digest or auth.digest_of(response.body)
        signature = auth.sign_answer(caller.key, header, request.target, response.status, digest)
        return replace(response, headers={auth.HEADER: signature})

    server = await serve(answer, identify, context.host)
    try:
        yield replace(context, port=server.sockets[0].getsockname()[1], launches=launches)
    finally:
        server.close()
        abort_clients(server)
        await asyncio.sleep(0)  # a transport that was aborted closes its socket in the next turn
