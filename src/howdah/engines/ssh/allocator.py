"""The engine inside the cluster: it keeps a connection to each host, and starts containers where there is room."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import signal
import time
from collections.abc import Collection, Mapping
from typing import Any

from howdah.engines import GONE, NO_PREFERENCES, ContainerPreferences, MasterContext, PendingReason
from howdah.engines.detached_master import DetachedMasterAllocator
from howdah.engines.event_queue import EventQueue
from howdah.engines.exit_status import exit_of_status
from howdah.engines.options import engine_options
from howdah.engines.ssh.engine import describe
from howdah.engines.ssh.hosts import LIMIT_S, Host, hosts_of, parse, reason
from howdah.spec import Container, Exit, JobSpec, Outcome, Resources, uris
from howdah.spec.events import Allocated, ContainerEnded, Event, Noted
from howdah.spec.message import message
from howdah.staging.bootstrap_archive import bootstrap_archive
from howdah.wire.launch_messages import STORES_LOGS

POLL_S, STEP_S, AGAIN_S, CLOSE_S, END_S = 0.5, 0.05, 2.0, 1.0, 10.0
ROOM = ("gpus", "vcores", "memory_mib")
MAX_LINE = 1 << 26
"""Bytes of a host's longest answer, which names all containers that the job has there."""
GATHER_S = 5.0
"""Seconds for which a new job waits for the hosts' first answers: otherwise the first host that answers would get all
tasks."""
LOST_S = 30.0
"""Seconds without an answer after which a host is lost: its executors have given up the master before that."""


class HostConnection:
    """The connection to one host; it is opened again whenever it breaks."""

    def __init__(self, host: Host) -> None:
        self.host, self.room, self.address = host, dict[str, int](), host.name
        self.process: asyncio.subprocess.Process | None = None  # while the host answers
        self.heard, self.retry_at, self.complaint = time.monotonic(), 0.0, ""
        self.is_taken = False  # when it was last asked for room, other jobs had taken it
        self.tried = asyncio.Event()

    def send(self, **order: Any) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.write(json.dumps(order).encode() + b"\n")


class SshAllocator(DetachedMasterAllocator):
    """Grants places if the host says that there is room; the host itself sees all jobs of the user."""

    engine = "ssh"

    def __init__(self, context: MasterContext) -> None:
        super().__init__(context)
        staged = context.staged
        self._links = {
            host.name: HostConnection(host) for host in hosts_of(engine_options(staged.job, staged.settings, "ssh"))
        }
        self._wanted: dict[str, tuple[int, ContainerPreferences]] = {}
        self._starting: dict[str, Container] = {}
        self._places: dict[str, Container] = {}
        self._released, self._unwanted, self._gone = set[str](), set[str](), set[str]()
        self._shared = context.directory.startswith("file:")
        self._began = time.monotonic()
        self._number, self._queue = 0, EventQueue()
        self._tasks: list[asyncio.Task[None]] = []
        self._ended = False

    @classmethod
    async def open(cls, context: MasterContext) -> SshAllocator:
        allocator = cls(context)
        if allocator.attempt == 1:
            allocator._queue.put(Noted(time.time(), message("memory limits are not enforced")))
            allocator._connect_all()
        return allocator

    def _connect_all(self) -> None:
        self._tasks += [asyncio.create_task(self._keep_connected(link)) for link in self._links.values()]

    async def adopt(self, containers: Collection[Container]) -> Mapping[str, Exit]:
        self._places = {container.id: container for container in containers}
        self._gone = {container.id for container in containers if container.node not in self._links}
        self._connect_all()
        nodes = {container.node for container in containers} & self._links.keys()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(self._links[node].tried.wait() for node in nodes)), LIMIT_S)
        gone, self._gone = self._gone, set()
        for container_id in gone:
            self._places.pop(container_id, None)
        return {container_id: Exit("withdrawn", detail=GONE) for container_id in gone}

    def request(self, role: str, count: int, preferences: ContainerPreferences = NO_PREFERENCES) -> None:
        self._wanted[role] = (count, preferences)
        self._queue.wake()

    async def poll(self) -> list[Event]:
        return await self._queue.next_events(self._grant, POLL_S)

    # Connections

    async def _keep_connected(self, link: HostConnection) -> None:
        name = link.host.name
        while not self._ended:
            try:
                why = await self._connect(link)
            except asyncio.TimeoutError:
                why = f"no answer within {LIMIT_S:.0f} s"
            except Exception as error:  # whatever it is, the host is tried again, and lost in the end
                why = str(error) or type(error).__name__
            if link.process is not None:
                link.process, link.heard = None, time.monotonic()
            for container_id in [each.id for each in self._starting.values() if each.node == name]:
                del self._starting[container_id]  # if it has started, the next connection ends it
            if why != link.complaint:
                self._queue.put(Noted(time.time(), message("host {host} is left out: {reason}", host=name, reason=why)))
            link.complaint = why
            link.tried.set()
            if time.monotonic() - link.heard > LOST_S:
                detail = message("host {host} does not answer: {reason}", host=name, reason=why)
                for place in [each for each in self._places.values() if each.node == name]:
                    self._end(place.id, Exit("lost", detail=detail))
            await asyncio.sleep(AGAIN_S)

    async def _connect(self, link: HostConnection) -> str:
        """Talk to a host until the connection breaks; return why it broke."""
        pipe, known = asyncio.subprocess.PIPE, [p.id for p in self._places.values() if p.node == link.host.name]
        process = await asyncio.create_subprocess_exec(
            *link.host.command(), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, limit=MAX_LINE
        )
        assert process.stdin and process.stdout and process.stderr  # noqa: PT018
        try:
            archive = base64.b64encode(bootstrap_archive()).decode()
            process.stdin.write(link.host.greeting(job=self._context.job_id, known=known, archive=archive))
            limit: float | None = LIMIT_S
            while line := await asyncio.wait_for(process.stdout.readline(), limit):
                event = parse(line)
                if event and "room" in event:
                    link.room, limit = event["room"], None
                    link.address = await asyncio.to_thread(link.host.address)
                    link.process = process
                    for container_id in set(known).difference(event["present"]):
                        self._vanished(container_id, is_new=not link.tried.is_set())
                    for container_id in self._released.intersection(event["present"]):
                        link.send(stop=container_id)
                    self._note_back(link)
                    link.tried.set()
                elif event:
                    self._hear(link, event)
                self._queue.wake()
            return reason(await process.stderr.read(), await process.wait())
        finally:
            if process.returncode is None:
                process.kill()
            await asyncio.wait([asyncio.ensure_future(process.communicate())], timeout=CLOSE_S)

    def _note_back(self, link: HostConnection) -> None:
        if link.complaint:
            self._queue.put(Noted(time.time(), message("host {host} is back", host=link.host.name)))
        link.complaint = ""

    def _vanished(self, container_id: str, is_new: bool) -> None:
        """Note that a host knows nothing of a container: `adopt` answers for it if this master is new."""
        if is_new:
            self._gone.add(container_id)
        else:
            self._end(container_id, Exit("lost", detail=GONE))

    def _hear(self, link: HostConnection, event: Mapping[str, Any]) -> None:
        if started := self._starting.pop(event.get("started", ""), None):
            self._note_back(link)
            count, preferences = self._wanted.get(started.role, (0, NO_PREFERENCES))  # none at the end of the job
            self._places[started.id], link.is_taken = started, False
            if count and link.host.name not in preferences.avoid:
                self._wanted[started.role] = (count - 1, preferences)
                self._queue.put(Allocated(time.time(), started))
            else:  # nobody waits for it any more, or needs its end
                self._unwanted.add(started.id)
                self.release(started.id)
        elif "busy" in event or "refused" in event:
            self._starting.pop(event.get("busy") or event["refused"], None)
            link.retry_at, link.is_taken = time.monotonic() + AGAIN_S, "busy" in event
            if "text" in event and link.complaint != event["text"]:
                link.complaint = event["text"]
                text = message("host {host} is left out: {reason}", host=link.host.name, reason=link.complaint)
                self._queue.put(Noted(time.time(), text))
        elif event.get("ended") in self._places:
            container_id, status = event["ended"], int(event["status"] or 128 + signal.SIGKILL)
            link.send(remove=f"{self._context.job_id}/{container_id}")
            if event["lost"]:
                self._end(container_id, Exit("lost", detail=message("host {host} was restarted", host=link.host.name)))
            elif container_id in self._released:
                self._end(container_id, Exit("stopped"))
            else:
                self._end(container_id, exit_of_status(status))

    def _end(self, container_id: str, exit: Exit) -> None:
        if self._places.pop(container_id, None) and container_id not in self._unwanted:
            self._queue.put(ContainerEnded(time.time(), container_id, exit))

    # Containers

    async def _grant(self) -> float:
        tried = all(link.tried.is_set() for link in self._links.values())
        if not tried and time.monotonic() - self._began < GATHER_S:
            return POLL_S
        for role, (count, preferences) in self._wanted.items():
            for _ in range(count - sum(each.role == role for each in self._starting.values())):
                resources = preferences.resources_for(self._context.staged.job.roles[role])
                if (link := self._choose(resources, preferences)) is None:
                    break
                self._number += 1
                container_id = f"{self._context.job_id}-{self.attempt}-{self._number}"
                self._starting[container_id] = Container(container_id, link.host.name, role, resources)
                link.send(
                    start=container_id,
                    key=self.launches.key_of(container_id).hex(),
                    variables={**self.bootstrap_environment(container_id), "HOWDAH_HOST": link.address},
                    sees=uris.path(self._context.directory) if self._shared else "",
                    **{key: getattr(resources, key) for key in ROOM},
                )
        return POLL_S

    async def pending_reasons(self, job: JobSpec, missing: Mapping[str, int]) -> list[PendingReason]:
        out = [{"node": name, "state": link.complaint} for name, link in self._links.items() if link.complaint]
        found = [PendingReason("nodes-out", {"nodes": out})] if out else []
        nodes = [
            {"node": link.host.name, "has": self._describe_free(link)} for link in self._links.values() if link.process
        ]
        for role, count in missing.items() if nodes else ():
            needs = describe({key: getattr(job.roles[role].resources, key) for key in ROOM})
            found.append(PendingReason("full", {"role": role, "count": count, "needs": needs, "nodes": nodes}))
        return found

    def _describe_free(self, link: HostConnection) -> str:
        return "taken by other jobs" if link.is_taken else f"{describe(self._free_room(link))} free"

    def _free_room(self, link: HostConnection) -> dict[str, int]:
        own = [each.resources for each in self._containers_of(link)]
        return {key: link.room.get(key, 0) - sum(getattr(each, key) for each in own) for key in ROOM}

    def _containers_of(self, link: HostConnection) -> list[Container]:
        held = (*self._places.values(), *self._starting.values())
        return [container for container in held if container.node == link.host.name]

    def _choose(self, resources: Resources, preferences: ContainerPreferences) -> HostConnection | None:
        """Return the best host that may have room. Tasks with GPUs are placed together, others apart."""
        ranked = []
        for name, link in self._links.items():
            own, free = self._containers_of(link), self._free_room(link)
            fits = all(getattr(resources, key) <= free[key] for key in ROOM)
            if fits and link.process and name not in preferences.avoid and time.monotonic() > link.retry_at:
                near = len(own) if resources.gpus else -len(own)
                ranked.append((name in preferences.prefer, near, free["memory_mib"], name))
        return self._links[max(ranked)[-1]] if ranked else None

    def bootstrap_environment(self, container_id: str) -> Mapping[str, str]:
        stores_logs = {} if self._shared else {STORES_LOGS: "1"}
        return {**super().bootstrap_environment(container_id), **stores_logs}

    def release(self, container_id: str, cause: str = "") -> None:
        self.launches.withdraw(container_id)
        if container_id in self._places and container_id not in self._released:
            self._released.add(container_id)
            link = self._links[self._places[container_id].node]
            link.send(stop=container_id)
            if cause in ("silent", "lost") and link.process:
                link.process.kill()  # nothing is granted there until it has answered again

    async def unregister(self, outcome: Outcome, progress: float = 1.0) -> None:
        self._wanted.clear()
        for container_id in list(self._places):
            self.release(container_id)
        deadline = time.monotonic() + END_S
        while (self._places or self._starting) and time.monotonic() < deadline:
            await asyncio.sleep(STEP_S)
        for link in self._links.values():
            link.send(remove=self._context.job_id)
            if link.process and link.process.stdin:
                link.process.stdin.close()
        connections = [link.process.wait() for link in self._links.values() if link.process]
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*connections), END_S)
        self._ended = True  # `wait_for` of Python before 3.12 loses a cancellation that comes with its answer
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=END_S)
        self.remove_secrets()
