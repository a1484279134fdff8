"""The allocator of this machine: containers are entries in a ledger that the masters of all jobs of a user share."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from howdah.engines import GONE, NO_PREFERENCES, Allocator, ContainerPreferences, Launch, MasterContext
from howdah.engines.event_queue import EventQueue
from howdah.engines.local.cgroup import MemoryGroup
from howdah.engines.local.container import LocalContainer, kill_leftovers, remove_program_key
from howdah.engines.local.machine import Machine
from howdah.engines.local.resource_ledger import Ledger, NotGranted
from howdah.engines.processes import alive
from howdah.errors import EngineRejected
from howdah.spec import Container, Exit, Outcome, Resources, uris
from howdah.spec.containers import has_images
from howdah.spec.events import Allocated, AllocationLost, CancelRequested, ContainerEnded, Event
from howdah.spec.message import message
from howdah.staging.working_directory import prepare
from howdah.supervisor import launcher
from howdah.supervisor.state import MachineState

POLL_S = 1.0
"""The longest wait for a change, in seconds, before the queue and the containers are examined again."""
RESERVE_AGAIN_S = 0.2
"""Seconds between two tries to get the resources of a gang; the file that is read is small."""
RELEASE_LIMIT_S = 3.0
"""Limit in seconds for the processes of released containers to end; then they are killed."""


class LocalAllocator(Allocator):
    """Grants a gang all of its containers at once or none; jobs are served in the order of submission."""

    one_machine = True
    serves_after_end = kills_what_is_gone = True

    def __init__(self, context: MasterContext, poll_s: float = POLL_S) -> None:
        self._context, self._poll_s = context, poll_s
        home = Path(uris.path(context.staged.home))
        self._directory, self._cache = Path(uris.path(context.directory)), home / "cache"
        self._state = MachineState.for_home(str(home))
        self._ledger = Ledger(self._state, Machine.detect(), context.job_id)
        self._wanted: dict[str, int] = {}
        self._preferences: dict[str, ContainerPreferences] = {}
        self._containers: dict[str, LocalContainer] = {}
        self._numbers = itertools.count(1)
        self._queue = EventQueue()
        self._supervised = self.restarts = "HOWDAH_MASTER_LOCK" in os.environ
        """Whether a supervisor has started this master."""
        if self._supervised:  # no process but this one may hold its lock
            os.set_inheritable(int(os.environ["HOWDAH_MASTER_LOCK"]), False)

    @classmethod
    async def open(cls, context: MasterContext) -> LocalAllocator:
        allocator = cls(context)
        allocator.attempt = int(os.environ.get("HOWDAH_MASTER_ATTEMPT", "1"))
        return allocator

    async def adopt(self, containers: Collection[Container]) -> Mapping[str, Exit]:
        ends = {container.id: Exit("withdrawn", detail=GONE) for container in containers}
        known = {container.id: container for container in containers}
        for id_, held in self._ledger.held().items():
            self._numbers = itertools.count(max(next(self._numbers), int(id_.rpartition(".")[2]) + 1))
            if id_ in known and alive(held["pid"], held["start"]):
                local = LocalContainer(known[id_], self._visible_devices(held["gpus"]), self._container_ended)
                local.has_image = has_images(self._context.staged.job)
                local.group = MemoryGroup.at(held["group"]) if held["group"] else None
                self._containers[id_] = local
                local.adopt(held["pid"], held["start"], Path(held["directory"]))
                del ends[id_]
            else:
                kill_leftovers(id_, [held["group"]], whole=True, has_image=has_images(self._context.staged.job))
                remove_program_key(Path(held.get("directory", os.devnull)))
                self._ledger.free(id_)
        return ends

    def signalled(self, signal: str) -> Event:
        """Return a cancellation if a user cancels the job by force. Otherwise the signal comes from a reboot, for
        instance: the next supervisor starts the next attempt."""
        if not self._supervised:
            return super().signalled(signal)
        by = self._ledger.cancelled_by()
        if by:
            return CancelRequested(time.time(), by)
        return AllocationLost(time.time(), message("signal {name}", name=signal))

    def request(self, role: str, count: int, preferences: ContainerPreferences = NO_PREFERENCES) -> None:
        self._wanted[role], self._preferences[role] = count, preferences
        if any(self._wanted.values()):
            self._queue.wake()
        else:
            self._ledger.withdraw()

    async def poll(self) -> list[Event]:
        return await self._queue.next_events(self._advance, self._poll_s)

    async def _advance(self) -> float:
        self._ensure_supervisor()
        self._reserve()
        return RESERVE_AGAIN_S if any(self._wanted.values()) else self._poll_s

    def _ensure_supervisor(self) -> None:
        """Start a new supervisor if the old one was killed: every living master does so."""
        try:
            if self._supervised and not launcher.is_running(self._state):
                launcher.ensure_running(self._state)
        except OSError as error:
            text = message("the supervisor of this machine's jobs can't be started: {reason}", reason=error)
            self._queue.note(text, "supervisor")

    def _reserve(self) -> None:
        """Reserve room for the whole gang at once; without a gang, for as many tasks as there is room for."""
        wanted = {
            f"{self._context.job_id}.{next(self._numbers)}": role
            for role, count in self._wanted.items()
            for _ in range(count)
        }
        if self._context.staged.job.gang:
            self._reserve_all(wanted)
            return
        for name, role in wanted.items():
            if not self._reserve_all({name: role}):
                return

    def _reserve_all(self, wanted: dict[str, str]) -> bool:
        if not wanted:
            return True
        granted = self._ledger.reserve({name: self._resources(role) for name, role in wanted.items()})
        if isinstance(granted, NotGranted):
            if all(self._preferences[role].spare for role in wanted.values()):
                self._ledger.withdraw()
            elif self._context.staged.job.gang or not self._containers:
                self._queue.note(granted.reason, "waiting")
            return False
        for role in wanted.values():
            self._wanted[role] -= 1
        self._queue.forget_note("waiting")
        for name, gpus in granted.items():
            container = Container(name, self._context.host, wanted[name], self._resources(wanted[name]))
            self._containers[name] = LocalContainer(container, self._visible_devices(gpus), self._container_ended)
            self._queue.put(Allocated(time.time(), container))
        return True

    def _visible_devices(self, gpus: Iterable[str]) -> tuple[str, ...] | None:
        """Return the GPUs that a container may see; None if this machine has no GPUs."""
        return tuple(gpus) if self._ledger.machine.gpus else None

    def _resources(self, role: str) -> Resources:
        return self._preferences[role].resources_for(self._context.staged.job.roles[role])

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
        files = self._context.staged.files if launch.files is None else launch.files
        if any(file.kind != "file" for file in files):
            await asyncio.to_thread(prepare, directory / "work", files, self._cache)
        else:
            prepare(directory / "work", files, self._cache)
        if local.released:
            return
        self._limit_memory(local)
        local.has_image = has_images(self._context.staged.job)
        local.start(launch, directory, self._context.host)
        self._ledger.note(local.container.id, pid=local.pid, start=local.start_time, directory=str(directory))

    def _limit_memory(self, local: LocalContainer) -> None:
        container = local.container
        try:
            local.group = MemoryGroup.create(container.id, container.resources.memory_mib)
        except OSError as error:
            self._queue.note(message("memory limits are not enforced: {reason}", reason=error), "limits")
        else:
            self._ledger.note(container.id, group=str(local.group.directory))

    def release(self, container_id: str, cause: str = "") -> None:
        local = self._containers.get(container_id)
        if local is None:
            return
        launched = local.running
        local.release()
        if not launched:
            self._forget(local)

    def _container_ended(self, local: LocalContainer, exit: Exit) -> None:
        self._forget(local)
        self._queue.put(ContainerEnded(time.time(), local.container.id, exit))

    def _forget(self, local: LocalContainer) -> None:
        if self._containers.pop(local.container.id, None) is not None:
            self._ledger.free(local.container.id)
            if local.group is not None:
                local.group.remove()

    async def unregister(self, outcome: Outcome, progress: float = 1.0) -> None:
        for container_id in list(self._containers):
            self.release(container_id)
        await self._queue.wait_while(lambda: self._containers, RELEASE_LIMIT_S, RESERVE_AGAIN_S)
        for local in self._containers.values():
            local.kill()
        self._ledger.leave()
        self._ensure_supervisor()
        launcher.wake(self._state)  # it removes the job's secrets
