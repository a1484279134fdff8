"""Tests the allocator contract on a real cluster, for an unmanaged application whose master is this process."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from unmanaged import unmanaged
from yarn_containers import wait_counted

from howdah.engines import MasterContext
from howdah.engines.yarn import conf, records
from howdah.engines.yarn.allocator import YarnAllocator
from howdah.engines.yarn.rm.application_client_protocol import ResourceManagerClient
from howdah.engines.yarn.rm.application_master_protocol import ApplicationMaster, ContainerRequest
from howdah.engines.yarn.upload import JobUploader
from howdah.sandbox import Sandbox
from howdah.spec import Container, JobSpec, Resources, Role, StagedFile, StagedJob
from howdah.spec.events import ContainerEnded, LossAnnounced, Noted
from howdah.storage.content_cache import Cache
from howdah.testing.allocator_contract import AllocatorContract, Driver, drive, write_tools
from howdah.wire.credentials import Credentials

ROLES = {"worker": Role("x", 3, Resources(256, 1, 1)), "ps": Role("x", 1, Resources(128, 1))}


@pytest.fixture
def context(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MasterContext]:
    """A new application, its token where YARN would have put it."""
    configuration = conf.load(str(sandbox.conf_dir))
    id_, token = asyncio.run(unmanaged(configuration))
    (tmp_path / "tokens").write_bytes(Credentials({"am": token}).to_bytes())
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "tokens"))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(sandbox.conf_dir))
    (tmp_path / "greeting.txt").write_text("hello")
    home = f"{configuration.text('fs.defaultFS')}/tmp/{tmp_path.name}"
    greeting = StagedFile("greeting.txt", f"{home}/greeting.txt", source=str(tmp_path / "greeting.txt"))
    write_tools(tmp_path / "tools.tar.gz")
    tools = StagedFile("tools", f"{home}/tools.tar.gz", "archive", source=str(tmp_path / "tools.tar.gz"))
    cache = Cache(home, str(sandbox.conf_dir))
    staged = StagedJob(JobSpec(ROLES), home, (cache.place(greeting), cache.place(tools)), user=configuration.user)
    placed = JobUploader(home, str(sandbox.conf_dir), lambda *_: None).upload(staged, configuration.merged())
    yield MasterContext(records.application_id(id_), placed, f"{home}/job", "127.0.0.1", 1)
    asyncio.run(kill(configuration, id_))


async def kill(configuration: conf.Configuration, id_: records.pb.ApplicationId) -> None:
    async with ResourceManagerClient(configuration) as rm:
        await rm.kill(id_)


class TestYarnAllocator(AllocatorContract):
    implementation = YarnAllocator

    @pytest.fixture(autouse=True)
    def _sandbox(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    def wait_counted(self, containers: list[Container]) -> None:
        wait_counted(self.sandbox, [container.id for container in containers])

    def test_memory_beyond_the_limit_is_named(self, context: MasterContext) -> None:
        line = 'exec python3 -c "import time; x = bytes(range(256)) * (400 << 12); time.sleep(60)"'
        ended = self.play(context, lambda driver: driver.run(line))
        assert ended.exit.cause == "memory"
        assert "of 256 MiB" in ended.exit.detail

    def test_a_command_that_is_not_there_says_so(self, context: MasterContext) -> None:
        ended = self.play(context, lambda driver: driver.run("exec /nonexistent/python"))
        assert (ended.exit.cause, ended.exit.code) == ("exit", 127)
        assert any("/nonexistent/python" in line for line in ended.exit.lines)

    def test_the_image_and_mounts_of_one_role_reach_its_nodemanager(self, context: MasterContext) -> None:
        """The NodeManagers here run no images, so that a container has the variables and is a process of the node."""
        worker = Role("x", 1, Resources(256), image="tf:1", mounts=("/a:/b:ro", "/data:/data"))
        job = JobSpec({"worker": worker, "ps": Role("x", 1, Resources(128))})
        asked = dataclasses.replace(context, staged=dataclasses.replace(context.staged, job=job))
        names = ("IMAGE", "MOUNTS")
        line = " ".join(f'"$YARN_CONTAINER_RUNTIME_DOCKER_{name}"' for name in names)
        told = f'printf \'%s\\n\' "$YARN_CONTAINER_RUNTIME_TYPE" {line} "$HOWDAH_OWN_NETWORK" >&2; exit 3'

        async def play(driver: Driver) -> list[tuple[str, ...]]:
            found = []
            for role in ("worker", "ps"):
                (container,) = await driver.get(role)
                await driver.launch(container, told)
                await driver.until(lambda c=container: driver.ended(c))
                found.append(driver.ends(container)[0].exit.lines)
            return found

        assert drive(YarnAllocator, asked, play) == [("docker", "tf:1", "/a:/b:ro,/data:/data", "1"), ()]

    def test_a_resourcemanager_restart_is_survived(self, context: MasterContext, sandbox: Sandbox) -> None:
        async def play(driver: Driver) -> list[str]:
            (first,) = await driver.get("worker")
            await driver.launch(first, "sleep 600")
            await asyncio.to_thread(sandbox.stop, "rm")
            try:
                driver.allocator.request("ps", 1)
                await driver.until(lambda: notes(driver))
            finally:
                await asyncio.to_thread(sandbox.start, "rm")
            await driver.until(lambda: len(driver.granted) == 2, limit=60)
            assert driver.ended(first) is None
            driver.allocator.release(first.id)
            await driver.until(lambda: driver.ended(first))
            return notes(driver)

        try:
            said = drive(YarnAllocator, context, play)
        finally:
            sandbox.wait_nodes(3)  # the next test needs them
        assert "containers run on" in said[0]
        assert "answers again" in said[1]
        assert len(said) == 2

    def test_preemption_is_announced_and_named(self, context: MasterContext, sandbox: Sandbox) -> None:
        filled = with_workers(context, 11, Resources(2048, 1))

        async def play(driver: Driver) -> list[str]:
            for container in await driver.get("worker", 11):
                await driver.launch(container, "exec sleep 600")
            configuration = conf.load(str(sandbox.conf_dir))
            claimant, token = await unmanaged(configuration, "prod")
            am = ApplicationMaster(configuration.resourcemanagers("scheduler"), token)
            await am.register("127.0.0.1", 1, "")
            am.request(ContainerRequest(1, 1, 3, {records.MEMORY: 2048, records.VCORES: 1}))
            while not causes(driver):
                driver.events += await driver.allocator.poll()
                await am.allocate()
            await am.finish(1, "")
            await am.close()
            await kill(configuration, claimant)
            return causes(driver)

        said: list[str] = []

        async def heard(driver: Driver) -> list[str]:
            found = await asyncio.wait_for(play(driver), 120)
            said.extend(event.text for event in driver.events if isinstance(event, LossAnnounced))
            return found

        assert set(drive(YarnAllocator, filled, heard)) == {"preempted"}
        assert any("about to preempt its container on 127.0.0.1" in text for text in said)

    def test_a_lost_node_is_named(self, context: MasterContext, sandbox: Sandbox) -> None:
        async def play(driver: Driver) -> None:
            filled = await driver.get("worker", 11)
            victim = next(container for container in filled if container.node == "127.0.0.13")
            await asyncio.to_thread(sandbox.stop, "nm3", signal.SIGKILL)
            try:
                await driver.until(lambda: driver.ended(victim), limit=90)
            finally:
                await asyncio.to_thread(sandbox.start, "nm3")
                await asyncio.to_thread(sandbox.wait_nodes, 3)
            ended = driver.ended(victim)
            assert ended is not None
            assert ended.exit.cause == "lost"
            assert "lost" in ended.exit.detail
            await driver.until(lambda: any("is lost" in text for text in notes(driver)))
            assert any("node 127.0.0.13 with" in text and "is lost" in text for text in notes(driver))

        drive(YarnAllocator, with_workers(context, 11, Resources(2048, 1)), play)

    def test_only_the_proxy_is_believed(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> list[bool]:
            admits, user = driver.allocator.trusts_proxy_request, context.staged.user
            return [
                admits("127.0.0.1", user),
                admits("10.1.1.1", user),
                admits("127.0.0.1", ""),
                admits("127.0.0.1", "eve"),
            ]

        assert self.play(context, play) == [True, False, False, False]


def with_workers(context: MasterContext, count: int, resources: Resources) -> MasterContext:
    job = JobSpec({"worker": Role("x", count, resources)})
    return dataclasses.replace(context, staged=dataclasses.replace(context.staged, job=job))


def causes(driver: Driver) -> list[str]:
    return [event.exit.cause for event in driver.events if isinstance(event, ContainerEnded)]


def notes(driver: Driver) -> list[str]:
    return [event.text for event in driver.events if isinstance(event, Noted)]
