"""Tests that a notebook's kernel leaves no job behind which nobody reaches."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpec

import howdah
from howdah.errors import EngineUnavailable
from howdah.jupyter.kernel_provisioner import HowdahProvisioner
from howdah.spec import JobSpec, Resources, Role, State


class UnreachableKernel(HowdahProvisioner):
    """Finds no way to the node of its kernel."""

    def _reach(self, host: str, ports: Any) -> tuple[str, dict[str, int]]:
        raise EngineUnavailable(f"no way to {host}")


def test_a_kernel_that_is_not_reached_is_cancelled(howdah_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(howdah_home))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    client = howdah.Client(engine="local")
    job = client.submit(JobSpec(roles={"worker": Role("sleep 1000", resources=Resources(memory_mib=64))}))
    kernel = UnreachableKernel(kernel_id="k", kernel_spec=KernelSpec(), job_id=job)
    with pytest.raises(EngineUnavailable, match=r"no way to 127\.0\.0\.1"):
        asyncio.run(kernel._await_start())
    assert client.job(job).state is State.CANCELLED
