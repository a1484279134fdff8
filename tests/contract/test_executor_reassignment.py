"""Tests that one executor process can be reassigned to other tasks, again and again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conductor import LIMIT_S, Conductor
from test_executor import gone, marked, program

from howdah.wire.messages import Assignment, Goal, Phase

TIMES = 4
HIDES = (
    "import os, time\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        time.sleep(600)\n"
    "    os._exit(0)\n"
    "print('up', flush=True)\n"
    "time.sleep(600)\n"
)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Conductor]:
    """Its executor runs in a container of YARN's kind, where nobody but the executor's orphan killer cleans up."""
    master = Conductor(tmp_path, Assignment("echo up; sleep 0.2"))
    master.start({"HOWDAH_CONTAINER": f"container_{os.getpid()}_01"})
    yield master
    master.close()


def reassign(master: Conductor, number: int) -> None:
    """The executor, whose program has ended, becomes that of another task."""
    master.reassign(f"worker:{number}", 2)
    master.phase(Phase.JOINED)


def test_an_executor_is_reassigned_again_and_again(master: Conductor) -> None:
    pids = set()
    for number in range(2, 2 + TIMES):
        ended = master.run()
        assert ended.exit is not None
        assert ended.exit.ok, master.log()
        pids.add(ended.pid)
        reassign(master, number)
    assert master.leave() == 0
    assert len(pids) == 1, "it stays the same process"
    assert "were killed" not in master.log(), "its own orphan killer is nothing that a program left"
    assert "Traceback" not in master.log()
    assert gone(f"container_{os.getpid()}_01")


def test_a_killed_executor_leaves_nothing_however_often_it_was_reassigned(master: Conductor) -> None:
    for number in range(2, 2 + TIMES):
        master.phase(Phase.JOINED)
        reassign(master, number)
    master.assignment = Assignment(program(HIDES))
    reassign(master, 2 + TIMES)
    master.set_orders(Goal.RUN)
    master.phase(Phase.RUNNING)
    deadline = time.monotonic() + LIMIT_S
    while b"up" not in master.output():
        assert time.monotonic() < deadline, "the program did not print"
        time.sleep(0.02)
    assert master.executor is not None
    master.executor.kill()
    master.executor.wait()
    assert gone(f"container_{os.getpid()}_01")


def test_an_executor_whose_orphan_killer_was_killed_ends_in_order(master: Conductor) -> None:
    """The kernel may choose any process when it is out of memory."""
    master.phase(Phase.JOINED)
    assert master.executor is not None
    (killer,) = {*marked(f"container_{os.getpid()}_01")} - {master.executor.pid}
    os.kill(killer, signal.SIGKILL)
    deadline = time.monotonic() + LIMIT_S
    while killer in marked(f"container_{os.getpid()}_01"):
        assert time.monotonic() < deadline, "the orphan killer did not end"
        time.sleep(0.02)
    assert master.leave() == 0
    assert "Traceback" not in master.log()
