"""Tests how the master's loop carries out actions."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from howdah.engines.local.allocator import LocalAllocator
from howdah.master.app import JobMaster, MasterIdentity
from howdah.spec import JobSpec, Role, StagedJob


def test_an_action_that_nothing_carries_out_is_refused_and_is_not_the_end(tmp_path: Path) -> None:
    staged = StagedJob(JobSpec({"worker": Role("train")}), home=f"file://{tmp_path}")
    identity = MasterIdentity("job-1", "fake", f"file://{tmp_path}", "127.0.0.1", staged, b"k" * 32, {})

    async def perform() -> bool:
        master = JobMaster(identity, LocalAllocator)
        with pytest.raises(TypeError, match="nothing carries out 'unknown'"):
            master._perform("unknown")  # type: ignore[arg-type]
        return master._finished.done()

    assert not asyncio.run(perform())
