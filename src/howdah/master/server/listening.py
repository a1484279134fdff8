"""Listens at one of the ports that a job allows."""

from __future__ import annotations

import asyncio
import errno
import sys
import time
from collections.abc import Sequence

from howdah.api.http_server import Handler, Identify, serve

PORT_S, PORT_AGAIN_S = 65.0, 5.0


async def bind_with_retry(handler: Handler, identify: Identify, host: str, among: Sequence[int]) -> asyncio.Server:
    """Listen at one of the ports `among`, or at any port when there are none. The kernel keeps the port of an earlier
    master for a minute, so try that long.

    Raises:
        OSError: no port is free by then.
    """
    until = time.monotonic() + PORT_S
    while True:
        try:
            return await serve(handler, identify, host, among=among)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > until:
                raise
            print(f"{error.strerror}: trying again for a minute", file=sys.stderr, flush=True)
            await asyncio.sleep(PORT_AGAIN_S)
