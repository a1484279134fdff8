"""The allocator contract on a real cluster, for an unmanaged application: this process is its master."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from allocator_contract import AllocatorContract, Driver, drive
from unmanaged import unmanaged

from howdah.data.cache import Cache
from howdah.engines import MasterContext
from howdah.engines.yarn import conf, records
from howdah.engines.yarn.allocator import YarnAllocator
from howdah.engines.yarn.resourcemanager import ResourceManagerClient
from howdah.engines.yarn.staging import Stager
from howdah.sandbox import Sandbox
from howdah.spec import JobSpec, Resources, Role, StagedFile, StagedJob
from howdah.spec.events import Noted
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
    staged = StagedJob(
        JobSpec(ROLES), home, (Cache(home, str(sandbox.conf_dir)).place(greeting),), user=configuration.user
    )
    placed = Stager(home, str(sandbox.conf_dir), lambda *_: None).place(staged, configuration.merged())
    yield MasterContext(records.application_id(id_), placed, f"{home}/job", "127.0.0.1", 1)
    asyncio.run(kill(configuration, id_))


async def kill(configuration: conf.Configuration, id_: records.pb.ApplicationId) -> None:
    async with ResourceManagerClient(configuration) as rm:
        await rm.kill(id_)


class TestYarnAllocator(AllocatorContract):
    implementation = YarnAllocator

    def test_memory_beyond_the_limit_is_named(self, context: MasterContext) -> None:
        line = 'exec python3 -c "import time; x = bytes(range(256)) * (400 << 12); time.sleep(60)"'
        ended = self.play(context, lambda driver: driver.run(line))
        assert ended.exit.cause == "memory"
        assert "of 256 MiB" in ended.exit.detail

    def test_a_command_that_is_not_there_says_so(self, context: MasterContext) -> None:
        ended = self.play(context, lambda driver: driver.run("exec /nonexistent/python"))
        assert (ended.exit.cause, ended.exit.code) == ("exit", 127)
        assert any("/nonexistent/python" in line for line in ended.exit.lines)

    def test_a_resourcemanager_restart_is_survived(self, context: MasterContext, sandbox: Sandbox) -> None:
        async def play(driver: Driver) -> list[str]:
            (first,) = await driver.get("worker")
            await driver.launch(first, "sleep 600")
            await asyncio.to_thread(sandbox.stop, "rm")
            driver.allocator.request("ps", 1)
            await driver.until(lambda: notes(driver))
            await asyncio.to_thread(sandbox.start, "rm")
            await driver.until(lambda: len(driver.granted) == 2, 60)
            assert driver.ended(first) is None
            driver.allocator.release(first.id)
            await driver.until(lambda: driver.ended(first))
            return notes(driver)

        said = drive(YarnAllocator, context, play)
        assert "containers run on" in said[0]
        assert "answers again" in said[1]
        assert len(said) == 2

    def test_only_the_proxy_is_believed(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> list[bool]:
            admits, user = driver.allocator.admits, context.staged.user
            return [
                admits("127.0.0.1", user),
                admits("10.1.1.1", user),
                admits("127.0.0.1", ""),
                admits("127.0.0.1", "eve"),
            ]

        assert self.play(context, play) == [True, False, False, False]


def notes(driver: Driver) -> list[str]:
    return [event.text for event in driver.events if isinstance(event, Noted)]
