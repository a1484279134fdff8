"""Tests that Ctrl-C, wherever it comes, neither leaves the lock of this machine's jobs behind nor gets lost."""

from __future__ import annotations

import fcntl
import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from howdah.supervisor import held_interrupts, state
from howdah.supervisor.state import MachineState

LIMIT_S = 20.0
FILES = (state.__file__, held_interrupts.__file__)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[MachineState]:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    machine = MachineState(str(tmp_path))
    with machine.change() as change:
        change.entries["job"] = {"ticket": 1}
    yield machine
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def is_locked(machine: MachineState) -> bool:
    lock = os.open(machine.lock_file, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def interrupt_at(machine: MachineState, number: int) -> tuple[bool, KeyboardInterrupt | None]:
    """Change the state, with SIGINT where the change runs its line or call of this number. Return whether the change
    has that many, and what was raised."""
    events = itertools.count(1)
    sent = False

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal sent
        if frame.f_code.co_filename not in FILES or frame.f_code.co_name == "_on_signal":
            return None
        if next(events) == number:
            sent = True
            signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with machine.change() as change:
            change.entries["job"]["ticket"] += 1
    except KeyboardInterrupt as interrupt:
        return sent, interrupt  # a caller that keeps it keeps its traceback, and what is held by that
    finally:
        sys.settrace(before)
    return sent, None


def test_an_interrupt_at_any_place(machine: MachineState) -> None:
    for number in itertools.count(1):
        sent, raised = interrupt_at(machine, number)
        if not sent:
            break
        assert raised is not None, f"the interrupt at place {number} was lost"
        assert not is_locked(machine), f"the interrupt at place {number} left the lock"
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert number > 50


def test_waiting_for_the_lock_can_be_interrupted(machine: MachineState) -> None:
    program = (
        "import sys; from howdah.supervisor.state import MachineState\n"
        "try:\n    MachineState(sys.argv[1]).change().__enter__()\nexcept KeyboardInterrupt:\n    print('interrupted')"
    )
    with machine.change():
        waiting = subprocess.Popen([sys.executable, "-c", program, machine.directory], stdout=subprocess.PIPE)
        try:
            inode = f":{Path(machine.lock_file).stat().st_ino} "
            limit = threading.Event()
            timer = threading.Timer(LIMIT_S, limit.set)
            timer.start()
            while not any("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines()):
                assert not limit.wait(0.02), "the process never waited for the lock"
            timer.cancel()
            waiting.send_signal(signal.SIGINT)
            assert waiting.communicate(timeout=LIMIT_S)[0] == b"interrupted\n"
        finally:
            waiting.kill()
            waiting.wait()
    assert not is_locked(machine)


def test_another_thread_changes_the_state(machine: MachineState) -> None:
    """Signals are no matter of its."""
    thread = threading.Thread(target=lambda: machine.change().__enter__().__exit__(None))
    thread.start()
    thread.join(LIMIT_S)
    assert not is_locked(machine)
