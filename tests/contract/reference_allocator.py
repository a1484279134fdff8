"""An allocator of two invented nodes, whose containers are processes of this machine: the smallest one that passes the
contract. Tests break it on purpose, to show that the contract notices."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from howdah.engines import GONE, NO_PREFERENCES, Allocator, ContainerPreferences, Launch, MasterContext
from howdah.errors import EngineRejected
from howdah.spec import Container, Exit, Outcome, Resources, StagedFile, uris
from howdah.spec.events import Allocated, AllocationLost, ContainerEnded, Event
from howdah.testing.allocator_contract import staged_job
from howdah.wire.credentials import Credentials

POLL_S, LOOK_S = 0.3, 0.02
ROOM = {"node1": 3, "node2": 3}
"""Containers that each node has room for."""
STARTED: list[subprocess.Popen[bytes]] = []
"""All processes that were started here."""


@dataclass
class Held:
    """A granted container, and the leader of the process group that runs in it."""

    container: Container
    pid: int = 0
    directory: Path = field(default_factory=Path)


class ReferenceAllocator(Allocator):
    """Grants containers on the first node with room."""

    restarts = True

    def __init__(self, context: MasterContext) -> None:
        self.context = context
        self.directory = Path(uris.path(context.directory))
        self.wanted: dict[str, tuple[int, ContainerPreferences]] = {}
        self.held: dict[str, Held] = {}
        self.events: list[Event] = []
        self.suspect: set[str] = set()
        self.numbers = itertools.count(len(list(self.directory.glob("container-*"))))

    @classmethod
    async def open(cls, context: MasterContext) -> ReferenceAllocator:
        return cls(context)

    async def adopt(self, containers: Collection[Container]) -> Mapping[str, Exit]:
        ends = {}
        for container in containers:
            record = self.directory / f"container-{container.id}" / "pid"
            if record.exists():
                self.held[container.id] = Held(container, int(record.read_text()), record.parent)
            else:
                ends[container.id] = Exit("withdrawn", detail=GONE)
        return ends

    def signalled(self, signal: str) -> Event:
        return AllocationLost(time.time(), f"signal {signal}")

    def request(self, role: str, count: int, preferences: ContainerPreferences = NO_PREFERENCES) -> None:
        self.wanted[role] = (count, preferences)

    async def poll(self) -> list[Event]:
        deadline = time.monotonic() + POLL_S
        while not self.events and time.monotonic() < deadline:
            self.grant()
            for held in list(self.held.values()):
                if held.pid and not alive(held.pid):
                    self.end(held, self.exit_of(held))
            await asyncio.sleep(LOOK_S)
        events, self.events = self.events, []
        return events

    def grant(self) -> None:
        for role, (count, preferences) in self.wanted.items():
            for _ in range(count):
                node = self.node_for(preferences)
                if node:
                    self.wanted[role] = (self.wanted[role][0] - 1, preferences)
                    container = Container(str(next(self.numbers)), node, role, self.resources(role, preferences))
                    self.held[container.id] = Held(container)
                    self.events.append(Allocated(time.time(), container))

    def node_for(self, preferences: ContainerPreferences) -> str:
        used = [held.container.node for held in self.held.values()]
        bad = {*preferences.avoid, *self.suspect}
        room = [node for node, most in ROOM.items() if used.count(node) < most and node not in bad]
        return room[0] if room else ""

    def resources(self, role: str, preferences: ContainerPreferences) -> Resources:
        resources = self.context.staged.job.roles[role].resources
        return replace(resources, memory_mib=preferences.memory_mib or resources.memory_mib)

    async def launch(self, container: Container, launch: Launch) -> None:
        held = self.held.get(container.id)
        if held is None:
            raise EngineRejected(f"container {container.id} is not granted")
        held.directory = self.directory / f"container-{container.id}"
        held.directory.mkdir()
        for file in self.files(launch):
            self.place(file, held.directory / file.name)
        (held.directory / "credentials").write_bytes(Credentials(secrets=dict(launch.secrets)).to_bytes())
        # The shell reports the end of the command to whichever master looks.
        command = ("/bin/sh", "-c", '"$@"; echo $? > status', "sh", *launch.command)
        process = subprocess.Popen(
            command, cwd=held.directory, env=self.variables(held, launch), start_new_session=True
        )
        STARTED.append(process)
        held.pid = process.pid
        (held.directory / "pid").write_text(str(process.pid))

    def files(self, launch: Launch) -> tuple[StagedFile, ...]:
        return self.context.staged.files if launch.files is None else launch.files

    def place(self, file: StagedFile, target: Path) -> None:
        if file.kind == "file":
            shutil.copy(uris.path(file.uri), target)
        else:
            shutil.unpack_archive(uris.path(file.uri), target)

    def variables(self, held: Held, launch: Launch) -> dict[str, str]:
        return {**os.environ, **launch.environment, "HOWDAH_CREDENTIALS": str(held.directory / "credentials")}

    def exit_of(self, held: Held) -> Exit:
        status = held.directory / "status"
        if not status.exists():
            return Exit("stopped")
        code = int(status.read_text())
        return Exit("signal", signal=code - 128) if code > 128 else Exit("exit", code)

    def end(self, held: Held, exit: Exit) -> None:
        del self.held[held.container.id]
        (held.directory / "pid").unlink(missing_ok=True)
        self.events.append(ContainerEnded(time.time(), held.container.id, exit))

    def release(self, container_id: str, cause: str = "") -> None:
        held = self.held.get(container_id)
        if held is not None and cause in ("lost", "silent"):
            self.suspect.add(held.container.node)
        if held is not None and held.pid:
            kill(held.pid)
        elif held is not None:
            del self.held[container_id]

    async def unregister(self, outcome: Outcome, progress: float = 1.0) -> None:
        for container_id in list(self.held):
            self.release(container_id)


def alive(pid: int) -> bool:
    """Whether the leader of a process group runs; a zombie, which its parent has not waited for, does not."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def kill(pid: int) -> None:
    """KILL a process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def kill_all_started() -> None:
    """KILL all processes that were started here, and wait for them."""
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            kill(process.pid)
            process.wait(10)


@contextlib.contextmanager
def reference_context(directory: Path) -> Iterator[MasterContext]:
    """Give the context of a job whose containers are below `directory`; let none of them live longer."""
    yield MasterContext("job-1", staged_job(directory), directory.as_uri(), "127.0.0.1", 1)
    kill_all_started()
    for pid_file in directory.glob("container-*/pid"):  # of a master in a process of its own
        kill(int(pid_file.read_text()))
