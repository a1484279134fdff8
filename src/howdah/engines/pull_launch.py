"""Pull launch: an engine starts `howdah.executor.bootstrap` in its containers, and each asks the master what to run.

A `PullAllocator` grants containers and reports their ends; the rest is the same for all engines of this kind
(docs/adr/0017).
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from howdah.engines import Allocator, Launch, MasterContext
from howdah.errors import NoLongerThere, NotFound
from howdah.spec import Container, StagedFile
from howdah.spec.staged import RUNTIME
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem
from howdah.wire import launch_messages
from howdah.wire.credentials import Credentials
from howdah.wire.launch_messages import Greeting, LaunchOrder

NOT_YET = LaunchOrder()


@dataclass(frozen=True)
class RuntimeArchive:
    """howdah's runtime archive, which many containers may fetch at the same time."""

    content: bytes
    """The bytes of the runtime archive."""
    digest: str
    """The SHA-256 of the content, in hexadecimal."""


class LaunchOffers:
    """Holds the launch of each container of one job until the container asks for it. `on_greeting(container_id,
    greeting)` is called for each question, from the event loop."""

    def __init__(self, job_key: bytes, files: tuple[StagedFile, ...], runtime: tuple[StagedFile, ...]) -> None:
        self._job_key, self._files, self._runtime = job_key, files, runtime
        self._offered: dict[str, asyncio.Future[LaunchOrder]] = {}
        self._withdrawn: set[str] = set()
        self._archive: RuntimeArchive | None = None
        self._reading_archive = asyncio.Lock()
        self.on_greeting: Callable[[str, Greeting], None] = lambda _id, _greeting: None

    def key_of(self, container_id: str) -> bytes:
        """Return the key of a container, which the engine brings into it and nobody else may read."""
        return launch_messages.key_of(self._job_key, container_id)

    def offer(self, container_id: str, launch: Launch) -> None:
        """Let a container run `launch`."""
        credentials = Credentials(secrets=dict(launch.secrets)).to_bytes()
        order = LaunchOrder(
            task=str(launch.task),
            attempt=launch.attempt,
            command=launch.command,
            environment=dict(launch.environment),
            sealed=launch_messages.seal(self.key_of(container_id), credentials).hex(),
            files=self._files if launch.files is None else launch.files,
            runtime=self._runtime,
        )
        offered = self._offer_of(container_id)
        if not offered.done():
            offered.set_result(order)

    def withdraw(self, container_id: str) -> None:
        """Tell a container that it is not needed any more."""
        self._withdrawn.add(container_id)
        offered = self._offer_of(container_id)
        if not offered.done():
            offered.set_result(NOT_YET)

    async def answer(self, container_id: str, greeting: Greeting, wait_s: float) -> LaunchOrder:
        """Return what the container runs; wait for it for at most `wait_s` seconds, then return NOT_YET. The same
        question gets the same answer, because an answer may be lost.

        Raises:
            NoLongerThere: the container is not needed any more.
        """
        self.on_greeting(container_id, greeting)
        offered = self._offer_of(container_id)
        if container_id not in self._withdrawn:
            await asyncio.wait([offered], timeout=wait_s)
        if container_id in self._withdrawn:
            raise NoLongerThere(f"container {container_id} is not needed any more")
        return offered.result() if offered.done() else NOT_YET

    async def runtime_archive(self) -> RuntimeArchive:
        """Return howdah's runtime archive from the job's home, which a container may not be able to read itself. It is
        read once: all containers of a gang ask at the same time, and each copy would be 13 MB.

        Raises:
            NotFound: the nodes have howdah, and the job brings none.
            StagingError, EngineUnavailable: the archive cannot be read.
        """
        found = next((file for file in self._runtime if file.name == RUNTIME), None)
        if found is None:
            raise NotFound("this job brings no runtime archive")
        async with self._reading_archive:
            if self._archive is None:
                self._archive = await asyncio.to_thread(_read_archive, found.uri)
        return self._archive

    def _offer_of(self, container_id: str) -> asyncio.Future[LaunchOrder]:
        if container_id not in self._offered:
            self._offered[container_id] = asyncio.get_running_loop().create_future()
        return self._offered[container_id]


def _read_archive(uri: str) -> RuntimeArchive:
    content = filesystem(uri).read_bytes(uri)
    return RuntimeArchive(content, hashlib.sha256(content).hexdigest())


class PullAllocator(Allocator):
    """An allocator whose containers run the bootstrap. A subclass calls `self.launches.withdraw(id)` for the containers
    that it releases."""

    def __init__(self, context: MasterContext) -> None:
        assert context.launches is not None
        self._context, self.launches = context, context.launches
        self.launches.on_greeting = self.greeted
        self._background: set[asyncio.Task[None]] = set()

    def in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` in the background; the event loop alone would not keep its task alive."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    def bootstrap_environment(self, container_id: str) -> Mapping[str, str]:
        """Return the bootstrap's variables, without the path of the key's file, which the engine adds
        (`launch_messages.KEY_FILE`)."""
        return {launch_messages.MASTER: self._context.url, launch_messages.CONTAINER: container_id}

    def greeted(self, container_id: str, greeting: Greeting) -> None:
        """Note that a container has started: an engine that cannot tell where it has started one learns that from the
        greeting."""
        if greeting.problem:
            print(f"{container_id} on {greeting.host}: {greeting.problem}", file=sys.stderr, flush=True)

    async def launch(self, container: Container, launch: Launch) -> None:
        self.launches.offer(container.id, launch)
