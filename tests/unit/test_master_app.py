"""Tests how the master's loop carries out actions."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest

from howdah.engines import Allocator
from howdah.engines.kubernetes.allocator import KubernetesAllocator
from howdah.engines.local.allocator import LocalAllocator
from howdah.engines.yarn.allocator import YarnAllocator
from howdah.master.app import JobMaster, MasterIdentity
from howdah.master.decisions.actions import StartRecorded
from howdah.spec import JobSpec, Role, StagedJob
from howdah.spec.events import Noted
from howdah.spec.job import Timeouts


def test_an_action_that_nothing_carries_out_is_refused_and_is_not_the_end(tmp_path: Path) -> None:
    staged = StagedJob(JobSpec({"worker": Role("train")}), home=f"file://{tmp_path}")
    identity = MasterIdentity("job-1", "fake", f"file://{tmp_path}", "127.0.0.1", staged, b"k" * 32, {})

    async def perform() -> bool:
        master = JobMaster(identity, LocalAllocator)
        with pytest.raises(TypeError, match="nothing carries out 'unknown'"):
            master._perform("unknown")  # type: ignore[arg-type]
        return master._finished.done()

    assert not asyncio.run(perform())


def test_a_full_disk_of_this_machine_keeps_no_program_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = StagedJob(JobSpec({"worker": Role("train")}), home=f"file://{tmp_path}")
    identity = MasterIdentity("job-1", "fake", f"file://{tmp_path}", "127.0.0.1", staged, b"k" * 32, {})
    (tmp_path / "events.jsonl").symlink_to("/dev/full")

    async def record() -> list[object]:
        master, applied = JobMaster(identity, LocalAllocator), list[object]()
        monkeypatch.setattr(master, "apply", applied.append)
        master.log.append(Noted(1.0, "a line"))
        await asyncio.wait_for(master._record_start(1), 60)
        master.log.close()
        return applied

    (told,) = asyncio.run(record())
    assert isinstance(told, StartRecorded)
    assert told.problem == ""


@pytest.mark.parametrize(
    ("allocator", "image", "localise_s", "limit_s"),
    [
        (KubernetesAllocator, "", 600.0, 720.0),
        (KubernetesAllocator, "", 0.0, math.inf),
        (YarnAllocator, "torch:2", 600.0, 720.0),
        (YarnAllocator, "", 600.0, 120.0),
        (LocalAllocator, "torch:2", 600.0, 120.0),
    ],
)
def test_an_executor_may_wait_for_the_image_that_its_node_pulls(
    tmp_path: Path, allocator: type[Allocator], image: str, localise_s: float, limit_s: float
) -> None:
    job = JobSpec({"worker": Role("train", image=image)}, timeouts=Timeouts(localise_s=localise_s))
    staged = StagedJob(job, home=f"file://{tmp_path}")
    identity = MasterIdentity("job-1", "fake", f"file://{tmp_path}", "127.0.0.1", staged, b"k" * 32, {})

    async def begin() -> float:
        return JobMaster(identity, allocator).state.greet_s

    assert asyncio.run(begin()) == limit_s
