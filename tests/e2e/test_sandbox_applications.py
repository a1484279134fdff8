"""Tests applications in the sandbox of every Hadoop version: output reaches HDFS, and no process outlives it."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import hdfs_native
import pytest

from howdah.engines.yarn import records
from howdah.engines.yarn.conf import load
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.rm.application_client_protocol import ResourceManagerClient
from howdah.sandbox import Sandbox
from howdah.sandbox.install import TRIED
from howdah.sandbox.process import Process, with_variable_below
from howdah.storage.content_cache import local_directory

JARS = local_directory()  # as it is before the session's fixture moves HOWDAH_HOME

LIMIT_S = 120
pytestmark = pytest.mark.timeout(900)  # where Hadoop is fetched first


@pytest.fixture(params=TRIED)
def one_node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(tmp_path / "run", hadoop=request.param, nodes=1, cache=JARS) as running:
        yield running


def submit(sandbox: Sandbox, command: str) -> pb.ApplicationId:
    """Run `command` as an application's master on the cluster."""

    async def run() -> pb.ApplicationId:
        async with ResourceManagerClient(load(str(sandbox.conf_dir))) as client:
            id_ = (await client.new_application()).id
            resource = records.to_resource({records.MEMORY: 256, records.VCORES: 1})
            master = pb.LaunchContext(command=[f"{command} >><LOG_DIR>/stdout 2>&1"])
            wanted = pb.SubmissionContext(
                application_id=id_, name="e2e", queue="default", master=master, max_attempts=1, resource=resource
            )
            await client.submit(wanted)
            return id_

    return asyncio.run(run())


def eventually(what: str, found):
    """What `found()` returns once that is true."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        value = found()
        if value:
            return value
        time.sleep(0.2)
    raise AssertionError(f"no {what} within {LIMIT_S} s")


def test_output_is_aggregated_and_a_killed_nodes_containers_end(one_node: Sandbox) -> None:
    id_ = submit(one_node, "echo carried by an elephant")
    hdfs = hdfs_native.Client(config_dir=str(one_node.conf_dir))

    def logs() -> list[str]:
        files = hdfs.list_status("/logs", recursive=True)
        complete = [found.path for found in files if not found.isdir and not found.path.endswith(".tmp")]
        return [path for path in complete if records.application_id(id_) in path]

    [log] = eventually("aggregated log", logs)
    with hdfs.read(log) as aggregated:
        assert b"carried by an elephant" in aggregated.read()

    submit(one_node, "exec sleep 300")
    [sleeping] = eventually("container", lambda: sleepers(one_node))
    one_node.stop("nm1", signal.SIGKILL)
    assert sleeping.alive()
    said: list[str] = []
    one_node.down(progress=said.append)
    assert not sleeping.alive()
    assert "that a killed NodeManager had left" in said[0]


def sleepers(sandbox: Sandbox) -> list[Process]:
    found = with_variable_below("LOCAL_DIRS", sandbox.run_dir)
    return [one for one in found if command_of(one) == b"sleep\x00300\x00"]


def command_of(process: Process) -> bytes:
    try:
        return Path(f"/proc/{process.pid}/cmdline").read_bytes()
    except OSError:
        return b""
