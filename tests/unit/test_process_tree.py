"""Tests finding processes, as the executor and the local engine do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from howdah.engines.local.cgroup import MemoryGroup
from howdah.engines.processes import MARK, alive, kill_marked, processes_of_containers, start_of
from howdah.executor.process import process_tree

NESTED = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"


def test_descendants_are_found_either_way() -> None:
    command = [sys.executable, "-c", NESTED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = process_tree.tree(child.pid)
        assert len(found) == 2
        assert process_tree.children_by_parent()[child.pid] == found[1:]
        child.communicate(b"\n")
    assert process_tree.tree(child.pid) == [child.pid]


def test_a_file_of_several_pages_is_read_to_its_end() -> None:
    """The kernel returns it page by page, each with whole lines only."""
    size = len(Path("/proc/self/smaps").read_bytes())
    assert size > 3 * 4096
    assert len(process_tree.read("/proc/self/smaps")) > size - 4096  # memory is mapped between the two
    assert process_tree.read("/proc/self/no-such-file") == b""


def test_a_process_is_known_by_its_start() -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as child:
        start = start_of(child.pid)
        assert alive(child.pid, start)
        assert not alive(child.pid, start + 1)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not alive(child.pid, start), "a zombie is not alive"


def test_marked_processes_are_killed() -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, env={MARK: "test-marked.1"}) as child:
        assert list(processes_of_containers("test-marked.")) == [child.pid]
        assert kill_marked("test-marked.") == 1
    assert child.returncode == -9


def test_a_version_2_group_tells_its_verdict(tmp_path: Path) -> None:
    """The files as cgroup-v2.rst of the kernel describes them."""
    files = {"memory.events": "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n", "memory.max": "67108864\n"}
    for name, text in {**files, "memory.peak": "67108864\n"}.items():
        (tmp_path / name).write_text(text)
    assert MemoryGroup.at(str(tmp_path)).oom_kill_text() == "killed by the kernel: used 64 MiB of 64 MiB"
    (tmp_path / "memory.events").write_text("oom_kill 0\n")
    assert MemoryGroup.at(str(tmp_path)).oom_kill_text() == ""
