"""The allocator of this machine: containers are entries in a ledger that all masters of a user share."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path

from howdah.data import uris
from howdah.engines import Allocator, Launch, MasterContext
from howdah.engines.local.cgroup import MemoryGroup
from howdah.engines.local.container import LocalContainer
from howdah.engines.local.ledger import Ledger, Waiting
from howdah.engines.local.machine import Machine
from howdah.engines.local.workdir import prepare
from howdah.errors import EngineRejected
from howdah.spec import Container, Exit, Outcome, Resources
from howdah.spec.events import Allocated, ContainerEnded, Event, Noted

POLL_S = 1.0
TRY_S = 0.2
END_S = 3.0


class LocalAllocator(Allocator):
    """Grants all that is wanted at once or nothing; the job's turn comes in the order of asking."""

    def __init__(self, context: MasterContext) -> None:
        self._context = context
        home = Path(uris.path(context.staged.home))
        self._directory, self._cache = Path(uris.path(context.directory)), home / "cache"
        self._ledger = Ledger(home / "local", Machine.here(), context.job_id)
        self._wanted: dict[str, int] = {}
        self._containers: dict[str, LocalContainer] = {}
        self._numbers = itertools.count(1)
        self._events: list[Event] = []
        self._news = asyncio.Event()
        self._noted: set[str] = set()

    @classmethod
    async def open(cls, context: MasterContext) -> LocalAllocator:
        return cls(context)

    def request(self, role: str, count: int) -> None:
        self._wanted[role] = count
        if any(self._wanted.values()):
            self._news.set()
        else:
            self._ledger.withdraw()

    async def poll(self) -> list[Event]:
        deadline = time.monotonic() + POLL_S
        while True:
            self._news.clear()
            self._reserve()
            left = deadline - time.monotonic()
            if self._events or left <= 0:
                events, self._events = self._events, []
                return events
            await self._wait(min(left, TRY_S) if any(self._wanted.values()) else left)

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except asyncio.TimeoutError:
            return

    def _tell(self, event: Event) -> None:
        self._events.append(event)
        self._news.set()

    def _note(self, text: str, once: str) -> None:
        """Say it, but not again for the same reason `once`."""
        if once not in self._noted:
            self._noted.add(once)
            self._tell(Noted(time.time(), text))

    def _reserve(self) -> None:
        wanted = {f"{self._context.job_id}.{next(self._numbers)}": role for role in self._each_wanted()}
        if not wanted:
            return
        granted = self._ledger.reserve({name: self._resources(role) for name, role in wanted.items()})
        if isinstance(granted, Waiting):
            self._note(granted.reason, "waiting")
            return
        self._wanted = {}
        self._noted.discard("waiting")
        for name, gpus in granted.items():
            container = Container(name, self._context.host, wanted[name], self._resources(wanted[name]))
            self._containers[name] = LocalContainer(container, gpus, self._container_ended)
            self._tell(Allocated(time.time(), container))

    def _each_wanted(self) -> list[str]:
        return [role for role, count in self._wanted.items() for _ in range(count)]

    def _resources(self, role: str) -> Resources:
        return self._context.staged.job.roles[role].resources

    async def launch(self, container: Container, launch: Launch) -> None:
        local = self._containers.get(container.id)
        if local is None:
            raise EngineRejected(f"container {container.id} is not ours any more")
        try:
            await self._start(local, launch, self._directory / "tasks" / launch.task.slug / str(launch.attempt))
        except BaseException:
            self._forget(local)
            raise

    async def _start(self, local: LocalContainer, launch: Launch, directory: Path) -> None:
        files = self._context.staged.files
        if any(file.kind == "archive" for file in files):
            await asyncio.to_thread(prepare, directory / "work", files, self._cache)
        else:
            prepare(directory / "work", files, self._cache)
        if local.released:
            return
        self._limit_memory(local)
        local.start(launch, directory, self._context.host)

    def _limit_memory(self, local: LocalContainer) -> None:
        container = local.container
        try:
            local.group = MemoryGroup.create(container.id, container.resources.memory_mib)
        except OSError as error:
            self._note(f"memory limits are not enforced: {error}", "limits")
        else:
            self._ledger.note_group(container.id, str(local.group.directory))

    def release(self, container_id: str) -> None:
        local = self._containers.get(container_id)
        if local is None:
            return
        launched = local.running
        local.release()
        if not launched:
            self._forget(local)

    def _container_ended(self, local: LocalContainer, exit: Exit) -> None:
        self._forget(local)
        self._tell(ContainerEnded(time.time(), local.container.id, exit))

    def _forget(self, local: LocalContainer) -> None:
        if self._containers.pop(local.container.id, None) is not None:
            self._ledger.free(local.container.id)
            if local.group is not None:
                local.group.remove()

    async def unregister(self, outcome: Outcome, progress: float = 1.0) -> None:
        for container_id in list(self._containers):
            self.release(container_id)
        deadline = time.monotonic() + END_S
        while self._containers and time.monotonic() < deadline:
            self._news.clear()
            await self._wait(TRY_S)
        for local in self._containers.values():
            local.kill()
        self._ledger.leave()
        (self._directory / "credentials").unlink(missing_ok=True)
