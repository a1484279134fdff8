"""Tests what YARN's exit statuses become, with diagnostics as Hadoop writes them."""

from __future__ import annotations

import signal

import pytest

from howdah.engines.yarn.exit_codes import STATUSES, explain, refused_image

PMEM = (
    "[2026-11-21 12:00:00.000]Container [pid=71,containerID=c] is running 63762432B beyond the "
    "'PHYSICAL' memory limit. Current usage: 316.8 MB of 256 MB physical memory used; 2.4 GB of 537.6 MB virtual "
    "memory used. Killing container.\nDump of the process-tree for container_1_0001_01_000002 :\n\t|- PID PPID\n"
)
OLD_PMEM = (
    "Container [pid=1,containerID=c] is running beyond physical memory limits. Current usage: 1.1 GB of 1 GB physical "
    "memory used; 2.2 GB of 2.1 GB virtual memory used. Killing container.\n"
)
FAILED = (
    "[2026-11-21 12:00:01.123]Exception from container-launch.\nContainer id: c\nExit code: 127\n\n"
    "[2026-11-21 12:00:01.124]Container exited with a non-zero exit code 127. Error file: prelaunch.err.\n"
    "Last 4096 bytes of prelaunch.err :\nLast 4096 bytes of stderr :\n/bin/bash: line 1: exec: nopython: not found\n\n"
)


@pytest.mark.parametrize("diagnostics", [PMEM, OLD_PMEM])
def test_memory_is_named_with_figures(diagnostics: str) -> None:
    found = explain(-104, diagnostics)
    expected = "316.8 MiB of 256 MiB" if diagnostics is PMEM else "1.1 GiB of 1 GiB"
    assert (found.cause, found.detail) == ("memory", f"killed by the node, used {expected}")


def test_virtual_memory_has_its_own_figures() -> None:
    assert explain(-103, PMEM).detail == "killed by the node, used 2.4 GiB of 537.6 MiB of virtual memory"


def test_memory_without_figures() -> None:
    assert explain(-104, "killed by cgroups").detail == "killed by the node for using too much memory"


@pytest.mark.parametrize(
    ("status", "cause"),
    [(-100, "lost"), (-101, "lost"), (-102, "preempted"), (-105, "stopped"), (-106, "stopped"), (-107, "stopped"),
     (-108, "preempted"), (-109, "logs"), (-1000, "localise"), (-777, "lost")],
)  # fmt: skip
def test_yarns_statuses_have_causes(status: int, cause: str) -> None:
    found = explain(status, "")
    assert found.cause == cause
    assert not found.ok
    assert found.detail


def test_the_reason_is_kept() -> None:
    found = explain(-100, "Container released on a *lost* node")
    assert found.detail == f"{STATUSES[-100][1]}: Container released on a *lost* node"


def test_the_process_own_status() -> None:
    assert explain(0, "").ok
    found = explain(127, FAILED)
    assert (found.cause, found.code, found.lines) == ("exit", 127, ("/bin/bash: line 1: exec: nopython: not found",))


def test_statuses_above_128_are_signals() -> None:
    found = explain(143, "")
    assert (found.cause, found.signal) == ("signal", signal.SIGTERM)
    assert "out of memory" in explain(137, "").detail


def test_an_image_that_is_refused_without_a_word() -> None:
    docker = {"YARN_CONTAINER_RUNTIME_TYPE": "docker", "YARN_CONTAINER_RUNTIME_DOCKER_IMAGE": "tf:1"}
    found = refused_image(-1000, "", docker, "n1")
    assert found is not None
    assert found.cause == "image"
    assert found.detail.startswith("image 'tf:1' is refused: the NodeManager of n1 starts no such container")
    assert refused_image(-1000, "", {}, "n1") is None
    assert refused_image(-1000, "Failed to download hdfs:///a", docker, "n1") is None
    assert refused_image(1, "", docker, "n1") is None


def test_what_the_container_runtime_said() -> None:
    diagnostics = (
        "[2026-11-22 19:52:36.645]Exception from container-launch.\nContainer id: c\nExit code: 125\n"
        "Exception message: Launch container failed\nShell error output: docker: no image 'nosuch:1'.\n\n"
        "[2026-11-22 19:52:36.649]Container exited with a non-zero exit code 125. \n"
    )
    assert explain(125, diagnostics).lines == ("docker: no image 'nosuch:1'.",)


def test_full_disks_are_told_as_every_program_tells_a_full_disk() -> None:
    said = "DiskErrorException: No space available in any of the local directories.\n\tat org.apache.hadoop.fs.X\n"
    found = explain(-1000, said)
    assert found.cause == "localise"
    assert found.detail.endswith("No space left on device: DiskErrorException: " + said[20:].partition("\n")[0])
