"""Answers the containers that an engine has started: each asks what it runs, and may fetch howdah itself.

`howdah.engines.pull_launch` holds the answers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from howdah.api.http_server import Request, Response
from howdah.engines.pull_launch import LaunchOffers
from howdah.errors import NotFound
from howdah.spec import Exit
from howdah.spec.codec import decode, encode
from howdah.spec.events import ContainerEnded, Event
from howdah.spec.message import message
from howdah.wire import launch_messages
from howdah.wire.launch_messages import Greeting

MAX_WAIT_S = 30.0


class ContainerLaunches:
    """Answers the requests of containers. `apply` hands an event to the master's step."""

    def __init__(self, launches: LaunchOffers, apply: Callable[[Event], None]) -> None:
        self._launches, self._apply = launches, apply

    async def answer(self, container_id: str, request: Request) -> Response:
        """Answer a request that container `container_id` has signed.

        Raises:
            NotFound: nothing has this path, or the container has another id.
            NoLongerThere: the container is not needed any more.
            ValueError, TypeError: the message is malformed.
        """
        path = launch_messages.PATH + container_id
        if (request.method, request.path) == ("GET", path + launch_messages.RUNTIME):
            archive = await self._launches.runtime_archive()
            return Response(body=archive.content, digest=archive.digest, content_type="application/zip")
        if (request.method, request.path) != ("POST", path):
            raise NotFound(f"nothing answers {request.method} {request.path}")
        greeting = decode(Greeting, json.loads(request.body))
        if greeting.problem:
            self._end(container_id, greeting)
        wait_s = max(0.0, min(float(request.query.get("wait", "0")), MAX_WAIT_S))
        order = await self._launches.answer(container_id, greeting, wait_s)
        return Response(body=json.dumps(encode(order), separators=(",", ":")).encode())

    def _end(self, container_id: str, greeting: Greeting) -> None:
        """End a container in which nothing can be run."""
        template = "its container on {host} could not be prepared: {reason}"
        detail = message(template, host=greeting.host, reason=greeting.problem)
        self._launches.withdraw(container_id)
        self._apply(ContainerEnded(time.time(), container_id, Exit("start", detail=detail)))
