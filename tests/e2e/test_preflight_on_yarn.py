"""Tests pre-flight on a real cluster: a node whose disk is too small is replaced before anything runs."""

from __future__ import annotations

import getpass
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import CommandLine

from howdah.sandbox import Sandbox

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")
SMALL = {"127.0.0.12": "nm2", "127.0.0.13": "nm3"}


@pytest.fixture
def yarn(sandbox: Sandbox, tmp_path: Path) -> Iterator[CommandLine]:
    line = CommandLine(sandbox, tmp_path)
    yield line
    line.end_all()


@pytest.fixture
def small_disks(sandbox: Sandbox) -> Iterator[dict[str, Path]]:
    """Two nodes of three have their containers' working directories on file systems of 96 MiB.

    Two, because a preference is only that: the one large node alone would have to report four times in a row.
    """
    places = {
        node: sandbox.run_dir / daemon / "local" / "usercache" / getpass.getuser() / "appcache"
        for node, daemon in SMALL.items()
    }
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m,mode=710", "tmpfs", str(place)], check=True)
    yield places
    for place in places.values():
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_node_with_too_small_a_disk_gets_no_task(yarn: CommandLine, small_disks: dict[str, Path]) -> None:
    job = yarn.job_file(
        'echo "$HOWDAH_TASK ran"',
        replicas=2,
        role={"placement": {"prefer": [*SMALL]}},
        preflight={"checks": ["disk", "memory", "all-reduce"], "disk": "200MiB"},
    )
    done = yarn("run", "--on", "yarn", "--logs", "all", job)
    assert done.code == 0, done.text
    found = [node for node in SMALL if f"on {node}: pre-flight: disk: " in done.text]
    assert found, done.text
    for node in found:
        assert f"free on {small_disks[node]}, wanted 200 MiB" in done.text
        assert f"{node} did not pass pre-flight: it gets no more tasks" in done.text
    assert "pre-flight passed on " in done.text
    assert "worker:0 | worker:0 ran" in done.text
    assert "worker:1 | worker:1 ran" in done.text
    assert not [node for node in SMALL if f"joined on {node}" in done.text]
    assert not yarn.left(done.job)
