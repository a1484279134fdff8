"""Tests pull launch: containers of an allocator that only starts the bootstrap run what the master tells them."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from reference_allocator import STARTED, Held, ReferenceAllocator, reference_context

from howdah.engines import Launch, MasterContext
from howdah.engines.pull_launch import NOT_YET, LaunchOffers, PullAllocator
from howdah.errors import NoLongerThere
from howdah.executor import bootstrap
from howdah.executor.bootstrap import Bootstrap, ContainerNotUsed
from howdah.spec import Container, StagedFile, TaskId
from howdah.spec.staged import PY_SPY, RUNTIME
from howdah.staging.bootstrap_archive import NAME, bootstrap_archive
from howdah.testing.allocator_contract import SECRET, AllocatorContract, Driver
from howdah.testing.launch_server import serve_launches
from howdah.wire import auth, launch_messages
from howdah.wire.credentials import parse
from howdah.wire.launch_messages import Greeting
from howdah.wire.messages import NOT_HEARD, NOT_WANTED

LIMIT_S = 30.0


class PullingAllocator(PullAllocator, ReferenceAllocator):
    """Starts the bootstrap in a container as soon as the container is granted."""

    def __init__(self, context: MasterContext) -> None:
        ReferenceAllocator.__init__(self, context)
        PullAllocator.__init__(self, context)

    def grant(self) -> None:
        before = set(self.held)
        super().grant()
        for container_id in self.held.keys() - before:
            self.start(self.held[container_id])

    def start(self, held: Held) -> None:
        held.directory = self.directory / f"container-{held.container.id}"
        held.directory.mkdir()
        key_file, archive = held.directory / "key", held.directory / NAME
        key_file.write_text(self.launches.key_of(held.container.id).hex())
        archive.write_bytes(bootstrap_archive())
        command = ("/bin/sh", "-c", '"$@"; echo $? > status', "sh", sys.executable, "-I", str(archive))
        variables = {
            "PATH": os.environ["PATH"],
            launch_messages.KEY_FILE: str(key_file),
            **self.bootstrap_environment(held.container.id),
        }
        process = subprocess.Popen(command, cwd=held.directory, env=variables, start_new_session=True)
        STARTED.append(process)
        held.pid = process.pid
        (held.directory / "pid").write_text(str(process.pid))

    def release(self, container_id: str, cause: str = "") -> None:
        self.launches.withdraw(container_id)
        super().release(container_id, cause)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[MasterContext]:
    with reference_context(tmp_path) as found:
        yield found


class TestPullingAllocator(AllocatorContract):
    implementation = PullingAllocator


def launch(**changes: object) -> Launch:
    given = {"command": ("true",), "secrets": {"howdah.secret.TOKEN": SECRET.encode()}, **changes}
    return Launch(TaskId("worker", 0), 1, **given)  # type: ignore[arg-type]


def boot(context: MasterContext, key: bytes, directory: Path) -> Bootstrap:
    return Bootstrap(context.url, "c/1", key, "here", directory, directory / "cache")


async def ask(context: MasterContext, key: bytes, directory: Path, problem: str = "") -> object:
    return await asyncio.to_thread(boot(context, key, directory).greet, problem)


def test_secrets_are_encrypted_for_one_container(context: MasterContext) -> None:
    async def play() -> None:
        offers = LaunchOffers(b"job key", (), ())
        offers.offer("c1", launch())
        order = await offers.answer("c1", Greeting("here"), 0.0)
        sealed = bytes.fromhex(order.sealed)
        assert SECRET.encode() not in sealed
        credentials = parse(launch_messages.unseal(offers.key_of("c1"), sealed))
        assert credentials.secrets == {"howdah.secret.TOKEN": SECRET.encode()}
        assert SECRET.encode() not in launch_messages.unseal(offers.key_of("c2"), sealed)

    asyncio.run(play())


def test_the_same_question_gets_the_same_answer(context: MasterContext) -> None:
    async def play() -> None:
        offers = LaunchOffers(b"job key", (), ())
        assert await offers.answer("c1", Greeting("here"), 0.01) == NOT_YET
        offers.offer("c1", launch())
        first = await offers.answer("c1", Greeting("here"), 0.0)
        assert first.task == "worker:0"
        offers.offer("c1", launch(command=("false",)))
        assert await offers.answer("c1", Greeting("here"), 0.0) == first

    asyncio.run(play())


def test_a_container_waits_until_it_is_withdrawn(context: MasterContext) -> None:
    async def play() -> None:
        offers = LaunchOffers(b"job key", (), ())
        waiting = asyncio.ensure_future(offers.answer("c1", Greeting("here"), LIMIT_S))
        await asyncio.sleep(0)
        offers.withdraw("c1")
        with pytest.raises(NoLongerThere, match="container c1 is not needed any more"):
            await waiting

    asyncio.run(play())


def test_a_withdrawn_container_ends(context: MasterContext, tmp_path: Path) -> None:
    async def play() -> None:
        async with serve_launches(context) as served:
            assert served.launches is not None
            served.launches.withdraw("c/1")
            with pytest.raises(ContainerNotUsed, match="not needed any more") as caught:
                await ask(served, served.launches.key_of("c/1"), tmp_path)
            assert caught.value.status == NOT_WANTED

    asyncio.run(play())


def test_a_container_with_another_key_gets_nothing(
    context: MasterContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "SILENCE_LIMIT_S", 0.0)

    async def play() -> None:
        async with serve_launches(context) as served:
            assert served.launches is not None
            served.launches.offer("c/1", launch())
            with pytest.raises(ContainerNotUsed, match="403") as caught:
                await ask(served, served.launches.key_of("c/2"), tmp_path)
            assert caught.value.status == NOT_HEARD

    asyncio.run(play())


def test_the_master_sends_howdah_where_the_container_does_not_see_the_home(
    context: MasterContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "home" / "howdah-1.zip"
    archive.parent.mkdir()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("VERSION", "howdah 1\n")
    runtime = (StagedFile(RUNTIME, archive.as_uri(), "archive"),)
    node = tmp_path / "node"
    node.mkdir()

    async def play() -> str:
        async with serve_launches(replace(context, staged=replace(context.staged, runtime=runtime))) as served:
            assert served.launches is not None
            served.launches.offer("c/1", launch())
            booting = boot(served, served.launches.key_of("c/1"), node)
            order = await asyncio.to_thread(booting.greet)
            unseen = replace(order, runtime=(replace(order.runtime[0], uri="file:///nowhere/howdah-1.zip"),))
            return await asyncio.to_thread(booting.runtime, unseen)

    found = Path(asyncio.run(play()))
    assert (found / "VERSION").read_text() == "howdah 1\n"
    assert node in found.parents


def test_many_containers_fetch_howdah_at_once(context: MasterContext, tmp_path: Path) -> None:
    """However slowly they read: the master holds the archive once."""
    archive, size, containers = tmp_path / "howdah-1.zip", 2 << 20, 60
    archive.write_bytes(os.urandom(size))
    runtime = (StagedFile(RUNTIME, archive.as_uri(), "archive"),)

    async def play() -> int:
        loop = asyncio.get_running_loop()
        async with serve_launches(replace(context, staged=replace(context.staged, runtime=runtime))) as served:
            assert served.launches is not None
            clients = []
            tracemalloc.start()
            for number in range(containers):
                path = launch_messages.path_of(f"c{number}") + launch_messages.RUNTIME
                principal, key = launch_messages.principal(f"c{number}"), served.launches.key_of(f"c{number}")
                signature = auth.sign(key, "request", principal, path, time.time(), b"")
                client = socket.create_connection((served.host, served.port))
                client.setblocking(False)
                client.sendall(f"GET {path} HTTP/1.1\r\n{auth.HEADER}: {signature}\r\n\r\n".encode())
                clients.append(client)
            for client in clients:
                assert await loop.sock_recv(client, 12) == b"HTTP/1.1 200"
            _, peak = tracemalloc.get_traced_memory()
            for client in clients:
                client.close()
            return peak

    try:
        assert asyncio.run(play()) < 5 * size
    finally:
        tracemalloc.stop()


def test_containers_get_the_other_files_of_the_runtime(context: MasterContext, tmp_path: Path) -> None:
    sampler = tmp_path / "py-spy"
    sampler.write_text("#!/bin/sh\n")  # not executable, as in a home without modes
    python = StagedFile("howdah-python", (tmp_path / "tools.tar.gz").as_uri(), "archive")
    with zipfile.ZipFile(tmp_path / "howdah-1.zip", "w") as made:
        made.writestr("VERSION", "howdah 1\n")
    own = StagedFile(RUNTIME, (tmp_path / "howdah-1.zip").as_uri(), "archive")
    runtime = (own, StagedFile(PY_SPY, sampler.as_uri()), python, context.staged.files[0])

    async def play() -> None:
        async with serve_launches(replace(context, staged=replace(context.staged, runtime=runtime))) as served:
            driver = Driver(await PullingAllocator.open(served))
            end = await driver.run(
                f'cd "$HOWDAH_WORK_DIR" && ./{PY_SPY} && cat {RUNTIME}/VERSION howdah-python/tools.txt greeting.txt'
            )
            assert end.exit.code == 0, end

    asyncio.run(play())


def test_the_greeting_reaches_the_allocator(context: MasterContext) -> None:
    seen: list[tuple[str, Greeting]] = []

    class Listening(PullingAllocator):
        def greeted(self, container_id: str, greeting: Greeting) -> None:
            seen.append((container_id, greeting))

    async def play() -> Container:
        async with serve_launches(context) as served:
            allocator = await Listening.open(served)
            driver = Driver(allocator)
            (container,) = await driver.get("worker")
            await driver.launch(container, "exit 0")
            await driver.until(lambda: driver.ended(container), "the end")
            return container

    container = asyncio.run(play())
    assert seen[0][0] == container.id
    assert seen[0][1].host
