"""Tests allocation tags and placement constraints on a real Capacity Scheduler with three nodes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import CommandLine
from unmanaged import unmanaged

from howdah.engines import MasterContext
from howdah.engines.yarn import conf, records
from howdah.engines.yarn.allocator import YarnAllocator
from howdah.engines.yarn.rm.application_client_protocol import ResourceManagerClient
from howdah.sandbox import Sandbox
from howdah.spec import JobSpec, Placement, Resources, Role, StagedJob
from howdah.testing.allocator_contract import Driver, drive
from howdah.wire.credentials import Credentials

SMALL = Resources(64, 1)
ROLES = {
    "worker": Role("x", 3, SMALL, placement=Placement(constraint="and(in,node,worker:notin,node,store)")),
    "ps": Role("x", 2, SMALL, placement=Placement(constraint="notin,node,worker", tags=("store",))),
    "chief": Role("x", 1, SMALL, placement=Placement(constraint="and(in,node,store:notin,node,worker)")),
}


@pytest.fixture
def line(sandbox: Sandbox, tmp_path: Path) -> Iterator[CommandLine]:
    line = CommandLine(sandbox, tmp_path)
    yield line
    line.end_all()


def nodes(line: CommandLine, job: str, role: str) -> list[str]:
    """Where the role's tasks ran."""
    return [task["node"] for task in line.status(job)["tasks"] if task["task"].startswith(role)]


def job_file(directory: Path, roles: dict[str, tuple[int, str]], **job: object) -> str:
    """Roles by how many tasks they have and their constraint."""
    written = {
        name: {
            "command": "true",
            "replicas": count,
            "resources": {"memory": "64MiB"},
            "placement": {"constraint": constraint} if constraint else {},
        }
        for name, (count, constraint) in roles.items()
    }
    path = directory / "placed.yaml"
    path.write_text(json.dumps({"roles": written, **job}))
    return str(path)


def test_tasks_apart_and_tasks_together(line: CommandLine) -> None:
    roles = {"worker": (2, "notin,node,worker"), "ps": (3, "in,node,ps")}
    done = line("run", "--on", "yarn", job_file(line.directory, roles))
    assert done.code == 0, done.text
    assert len(set(nodes(line, done.job, "worker"))) == 2
    assert len(set(nodes(line, done.job, "ps"))) == 1


def test_tonys_placement(line: CommandLine) -> None:
    values = {
        "worker.instances": "2",
        "worker.memory": "64m",
        "worker.placement-spec": "notin,node,worker",
        "worker.allocation-tags": "worker",
    }
    options = [word for key, value in values.items() for word in ("--conf", f"tony.{key}={value}")]
    (line.directory / "true.py").write_text("")
    done = line(
        "tony",
        "--src_dir",
        str(line.directory),
        "--executes",
        "true.py",
        *options,
        "--python_binary_path",
        sys.executable,
    )
    assert done.code == 0, done.text
    assert len(set(nodes(line, done.job, "worker"))) == 2


def test_what_can_never_be_placed_is_refused_at_once(line: CommandLine) -> None:
    done = line("plan", "--on", "yarn", job_file(line.directory, {"worker": (4, "notin,node,worker")}))
    assert done.code == 77
    assert "'notin,node,worker' keeps 4 tasks on 4 nodes, the cluster has 3" in done.text
    done = line("plan", "--on", "yarn", job_file(line.directory, {"worker": (4, "notin,nodes,worker")}))
    assert done.code == 64
    assert "roles.worker.placement.constraint: notin is followed by node or rack, not by 'nodes'" in done.text


def test_what_is_not_placed_says_why(line: CommandLine) -> None:
    job = job_file(line.directory, {"worker": (1, "in,node,all/nowhere")}, timeouts={"gang": "15s"})
    done = line("run", "--on", "yarn", job)
    assert done.code == 1
    assert "worker waits for 1 more, placed as 'in,node,all/nowhere' (placement.constraint)" in done.text
    assert "the gang was not complete after 15 s (timeouts.gang); granted: worker: 0 of 1" in done.text


@pytest.fixture
def context(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MasterContext]:
    """A new application of three roles that need one another."""
    configuration = conf.load(str(sandbox.conf_dir))
    id_, token = asyncio.run(unmanaged(configuration))
    (tmp_path / "tokens").write_bytes(Credentials({"am": token}).to_bytes())
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "tokens"))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(sandbox.conf_dir))
    staged = StagedJob(JobSpec(ROLES), "", user=configuration.user)
    yield MasterContext(records.application_id(id_), staged, "", "127.0.0.1", 1)

    async def kill() -> None:
        async with ResourceManagerClient(configuration) as rm:
            await rm.kill(id_)

    asyncio.run(kill())


def test_a_gang_that_was_given_back_is_placed_again(context: MasterContext, sandbox: Sandbox) -> None:
    async def gang(driver: Driver) -> dict[str, set[str]]:
        """Ask for all, in an order in which nothing is there yet that the others want to be near to."""
        before = len(driver.granted)
        for role in ("chief", "ps", "worker"):
            driver.allocator.request(role, ROLES[role].replicas)
        await driver.until(lambda: len(driver.granted) == before + 6, limit=90)
        granted = driver.granted[before:]
        return {role: {one.node for one in granted if one.role == role} for role in ROLES}

    async def play(driver: Driver) -> list[dict[str, set[str]]]:
        first = await gang(driver)
        one, *_ = (container for container in driver.granted if container.role == "worker")
        driver.allocator.release(one.id)
        (another,) = await driver.get("worker")
        assert {another.node} == first["worker"]
        await asyncio.to_thread(sandbox.stop, "rm")
        try:
            for container in driver.granted:
                driver.allocator.release(container.id)
        finally:
            await asyncio.to_thread(sandbox.start, "rm")
        return [first, await gang(driver)]

    try:
        gangs = drive(YarnAllocator, context, play)
    finally:
        sandbox.wait_nodes(3)  # the next test needs them
    for where in gangs:
        assert len(where["worker"]) == 1
        assert not where["worker"] & (where["ps"] | where["chief"])
        assert where["chief"] <= where["ps"]
