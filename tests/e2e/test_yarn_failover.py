"""Tests jobs with two ResourceManagers: clients find the active one, and jobs survive a failover.

No ZooKeeper watches over them: a test says itself which one serves, as an administrator does.
"""

from __future__ import annotations

import asyncio
import re
import signal
import sys
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from howdah.engines.yarn.conf import load
from howdah.engines.yarn.engine import YarnEngine
from howdah.engines.yarn.rm.application_client_protocol import FAILOVER_S, ResourceManagerClient
from howdah.errors import EngineUnavailable
from howdah.sandbox import Sandbox
from howdah.spec import JobReport, JobSpec, Resources, Role, StagedJob, State
from howdah.spec.event_lines import read_lines
from howdah.spec.events import Event, JobFinished, JobStarted, Noted, Started
from howdah.staging.runtime_archive import stage_runtime
from howdah.storage.content_cache import local_directory
from howdah.storage.factory import filesystem

T = TypeVar("T")
JARS = local_directory()  # as it is before another module's fixture moves HOWDAH_HOME
LIMIT_S = 240


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    directory = tmp_path_factory.mktemp("failover")
    with Sandbox(directory / "run", nodes=1, resourcemanagers=2, cache=JARS) as sandbox:
        yield sandbox


@dataclass(frozen=True)
class Pair:
    """Two ResourceManagers, and howdah with their configuration."""

    sandbox: Sandbox
    engine: YarnEngine

    @property
    def addresses(self) -> list[str]:
        return [f"{rm.host}:{rm.port}" for rm in load(str(self.sandbox.conf_dir)).resourcemanagers()]

    def submit(self, command: str, replicas: int = 1, python: str = sys.executable) -> str:
        spec = JobSpec({"worker": Role(command, replicas, Resources(128, 1))}, name="failover")
        staged = StagedJob(spec, self.engine.home, runtime=(stage_runtime(self.engine.home),), python=python)
        return self.engine.submit(self.engine.plan(staged), {})

    def ended(self, id_: str) -> JobReport:
        def look() -> JobReport | None:
            try:
                return next((report for report in self.engine.describe(id_) if report.state.ended), None)
            except EngineUnavailable as error:  # asked again, if it has had all the patience that it should have
                waited = re.search(r"no ResourceManager within (\d+) s: ", str(error))
                if not waited or int(waited[1]) < FAILOVER_S - 2:
                    raise
                return None

        return eventually(look)

    def events(self, id_: str) -> list[Event]:
        """The event log as it is in HDFS by now."""
        uri = f"{self.engine.home}/jobs/{id_}/events.jsonl"
        files = filesystem(uri, str(self.sandbox.conf_dir))
        return list(read_lines(files.read_bytes(uri).decode().splitlines())) if files.exists(uri) else []


@pytest.fixture
def pair(running: Sandbox) -> Pair:
    """Both up, one of them active, and the node known to it."""
    for name in ("rm1", "rm2"):
        running.start(name)
    if not running.active():
        running.failover()
    running.wait_nodes(1)
    return Pair(running, YarnEngine({"hadoop_conf_dir": str(running.conf_dir)}))


def eventually(look: Callable[[], T | None]) -> T:
    """What `look` finds, once it finds something."""
    deadline = time.monotonic() + LIMIT_S
    while not (found := look()):
        assert time.monotonic() < deadline, f"nothing within {LIMIT_S} s"
        time.sleep(0.05)
    return found


def held(directory: Path) -> str:
    """A program that writes its pid and runs until it is let go."""
    return f"echo $$ >{directory}/$HOWDAH_INDEX; until [ -e {directory}/go ]; do sleep 0.1; done; echo done by $$"


def pids(directory: Path, count: int) -> list[int] | None:
    """Of `count` programs, once all of them run."""
    written = [path.read_text() for index in range(count) if (path := directory / str(index)).exists()]
    return [int(text) for text in written] if len(written) == count and all(written) else None


def kinds(found: list[Event], *wanted: type[Event]) -> list[Event]:
    return [event for event in found if isinstance(event, wanted)]


def test_the_active_one_is_found_whichever_it_is(pair: Pair) -> None:
    first = pair.submit("echo one")
    assert pair.ended(first).state is State.SUCCEEDED
    other = pair.sandbox.failover()
    assert pair.sandbox.active() == other
    second = pair.submit("echo two")
    assert pair.ended(second).state is State.SUCCEEDED
    assert {first, second} <= {report.id for report in pair.engine.describe()}
    assert [piece for _, piece in pair.engine.logs(first, None, "stdout")] == [b"one\n"]
    assert [piece for _, piece in pair.engine.logs(second, None, "stdout")] == [b"two\n"]


def test_a_running_job_outlives_its_manager(pair: Pair, tmp_path: Path) -> None:
    id_ = pair.submit(held(tmp_path), replicas=2)
    before = eventually(lambda: pids(tmp_path, 2))
    pair.sandbox.stop(eventually(pair.sandbox.active), signal.SIGKILL)
    time.sleep(2)
    taken_over_by = pair.sandbox.failover()
    report = eventually(lambda: next((r for r in pair.engine.describe(id_) if r.state is State.RUNNING), None))

    def page() -> str:
        """The new one's proxy may not know its master yet."""
        with suppress(OSError), urllib.request.urlopen(f"{report.tracking_url}api/v1/jobs/{id_}", timeout=60) as answer:
            return str(answer.read().decode())
        return ""

    assert id_ in eventually(page)
    eventually(lambda: [event for event in kinds(pair.events(id_), Noted) if "answers again" in event.text])
    pair.sandbox.wait_nodes(1)
    (tmp_path / "go").touch()
    assert pair.ended(id_).state is State.SUCCEEDED
    found = pair.events(id_)
    assert [event.attempt for event in kinds(found, Started)] == [1, 1]
    assert sorted(event.pid for event in kinds(found, Started)) == sorted(before)
    gap, back = [event.text for event in kinds(found, Noted) if re.search("trying again|answers again", event.text)]
    assert gap.endswith("containers run on, trying again for 15 min")
    assert re.search(rf"\.{taken_over_by}\) answers again after \d+ s$", back)
    printed: defaultdict[str, bytes] = defaultdict(bytes)
    for task, piece in pair.engine.logs(id_, None, "stdout"):
        printed[task] += piece
    assert sorted(printed.values()) == sorted(b"done by %d\n" % pid for pid in before)


def test_a_job_may_begin_and_end_while_none_is_active(pair: Pair, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\ntouch {tmp_path}/up; until [ -e {tmp_path}/begin ]; do sleep 0.1; done; exec {sys.executable} "$@"'
    )
    python.chmod(0o755)
    id_ = pair.submit(held(tmp_path), python=str(python))
    eventually((tmp_path / "up").exists)
    pair.sandbox.stop(eventually(pair.sandbox.active), signal.SIGKILL)
    (tmp_path / "begin").touch()
    time.sleep(2)
    none_until = time.time()
    pair.sandbox.failover()
    eventually(lambda: pids(tmp_path, 1))
    pair.sandbox.standby(eventually(pair.sandbox.active))
    (tmp_path / "go").touch()
    eventually(lambda: kinds(pair.events(id_), JobFinished))
    with ThreadPoolExecutor(1) as pool:  # whoever asks meanwhile is answered afterwards
        asked = pool.submit(pair.ended, id_)
        time.sleep(1)
        assert not asked.done()
        pair.sandbox.failover()
        assert asked.result().state is State.SUCCEEDED
    (started,) = kinds(pair.events(id_), JobStarted)
    assert started.time > none_until


def test_none_is_active(pair: Pair) -> None:
    pair.sandbox.standby(eventually(pair.sandbox.active))

    async def ask() -> None:
        async with ResourceManagerClient(load(str(pair.sandbox.conf_dir)), limit_s=2) as rm:
            await rm.reports()

    with pytest.raises(EngineUnavailable, match=r"^no ResourceManager within \d s: ") as caught:
        asyncio.run(ask())
    assert all(address in str(caught.value) for address in pair.addresses)
    pair.sandbox.failover()  # a NodeManager takes its leave of an active one only
