"""Tests that every process of a program that is stopped has the time to save, however the program started it."""

from __future__ import annotations

import os
import re
import shlex
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conductor import LIMIT_S
from test_executor import PYTHON, Start, conduct, program, wait_for_output  # noqa: F401 - a fixture

from howdah.executor.executor import TERMINATED
from howdah.executor.process.process_tree import tree
from howdah.executor.process.program import Program
from howdah.spec import uris
from howdah.wire.launch_messages import TERM_GRACE_S, TERM_TO_ALL
from howdah.wire.messages import NOT_HEARD, CheckpointSyncOrder, Goal, Phase, PreemptionNotice


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


TRAINER = """
import os, signal, sys, time

def save(number, frame):
    print("saving", flush=True)
    open("begun", "a").write("1")
    time.sleep(1)
    open("saved", "a").write("1")
    print("saved", flush=True)
    sys.exit(0)

signal.signal(signal.SIGTERM, save)
print("up", flush=True)
while True:
    time.sleep(0.05)
"""
TRAIN = f"{shlex.quote(PYTHON)} -c {shlex.quote(TRAINER)}"
WRAPPER = f"import subprocess; subprocess.run([{PYTHON!r}, '-c', {TRAINER!r}], start_new_session=True)"
LAUNCHER = f"""
import signal, subprocess
child = subprocess.Popen([{PYTHON!r}, "-c", {TRAINER!r}], start_new_session=True)
signal.signal(signal.SIGTERM, lambda number, frame: child.terminate())
child.wait()
"""


@pytest.mark.parametrize(
    "command",
    [
        TRAIN,
        f"set -e; {TRAIN}; echo done",
        f"{TRAIN} && echo done",
        f"{TRAIN} 2>&1 | tee log",
        f"{TRAIN} | sed -u s,x,x, | tee log",
        f"setsid --wait {TRAIN}",
        f"sh -c {shlex.quote(f'sh -c {shlex.quote(TRAIN)}; true')}; true",
        f"{TRAIN} & wait",
        program(WRAPPER),
        program(LAUNCHER),
    ],
    ids=["alone", "script", "and", "tee", "two filters", "session", "shells", "wait", "wrapper", "launcher"],
)
def test_the_trainer_saves_once(conduct: Start, command: object) -> None:  # noqa: F811
    master = conduct(command)
    master.start()
    master.phase(Phase.JOINED)
    master.set_orders(Goal.RUN)
    wait_for_output(master)
    master.set_orders(Goal.STOP, stop_s=60.0)
    ended = master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.cause == "stopped"
    written = {path.name: path.read_text() for path in Path(master.work).rglob("*") if path.name in ("begun", "saved")}
    assert written == {"begun": "1", "saved": "1"}
    assert master.output("stdout").endswith(b"saved\n")


@pytest.mark.parametrize("command", [TRAIN, f"{TRAIN} && echo done", f"setsid --wait {TRAIN}", program(WRAPPER)])
def test_an_engine_that_tells_all_processes_to_end_lets_them_save(conduct: Start, command: object) -> None:  # noqa: F811
    """As Slurm does: `scancel`, the time limit."""
    master = conduct(command)
    master.start({TERM_GRACE_S: "60", TERM_TO_ALL: "1"})
    master.phase(Phase.JOINED)
    master.set_orders(Goal.RUN, stop_s=60.0)
    wait_for_output(master)
    assert master.executor is not None
    for pid in tree(master.executor.pid):
        os.kill(pid, signal.SIGTERM)
    assert master.executor.wait(LIMIT_S) == TERMINATED
    written = {path.name: path.read_text() for path in Path(master.work).rglob("*") if path.name in ("begun", "saved")}
    assert written == {"begun": "1", "saved": "1"}


@pytest.mark.parametrize("command", [TRAIN, f"{TRAIN} && echo done", f"setsid --wait {TRAIN}", program(LAUNCHER)])
def test_an_engine_that_tells_the_executor_alone_lets_the_program_save(conduct: Start, command: object) -> None:  # noqa: F811
    """As Kubernetes does: `kubectl drain`, `kubectl delete pod`."""
    master = conduct(command)
    master.start({TERM_GRACE_S: "60"})
    master.phase(Phase.JOINED)
    master.set_orders(Goal.RUN, stop_s=60.0)
    wait_for_output(master)
    assert master.executor is not None
    master.executor.send_signal(signal.SIGTERM)
    assert master.executor.wait(LIMIT_S) == TERMINATED
    causes = {status.exit.cause for status in master.statuses if status.exit is not None}
    assert causes <= {"withdrawn"}, "nobody is blamed, and no retry is used up"
    written = {path.name: path.read_text() for path in Path(master.work).rglob("*") if path.name in ("begun", "saved")}
    assert written == {"begun": "1", "saved": "1"}


def test_a_program_whose_notice_was_term_gets_no_second_one(conduct: Start) -> None:  # noqa: F811
    master = conduct(TRAIN)
    master.start({TERM_GRACE_S: "60"})
    master.phase(Phase.JOINED)
    master.set_orders(Goal.RUN, stop_s=60.0)
    wait_for_output(master)
    master.notice = PreemptionNotice(1, "decommission", 15.0, "the node is drained", "TERM")
    master.set_orders(Goal.RUN, stop_s=60.0)
    wait_until(lambda: (master.work / "begun").exists())
    assert master.executor is not None
    master.executor.send_signal(signal.SIGTERM)
    assert master.executor.wait(LIMIT_S) == TERMINATED
    assert [(master.work / name).read_text() for name in ("begun", "saved")] == ["1", "1"]


@pytest.mark.parametrize("ends", ["by the signal", "at its notice"])
def test_the_last_copy_is_made_in_the_time_that_the_engine_gives(conduct: Start, tmp_path: Path, ends: str) -> None:  # noqa: F811
    sync = CheckpointSyncOrder("ckpt", uris.of_local(tmp_path / "stored"), every_s=600.0)
    save = "echo 1 > ckpt/model; exit 3"
    run = "sleep 600 & wait" if ends == "by the signal" else save
    master = conduct(f"trap {shlex.quote(save)} TERM; mkdir -p ckpt; echo up; {run}", checkpoint_sync=sync)
    master.start({TERM_GRACE_S: "60"})
    master.phase(Phase.JOINED)
    master.set_orders(Goal.RUN, stop_s=60.0)
    wait_for_output(master)
    assert master.executor is not None
    if ends == "at its notice":
        wait_until(lambda: (master.work / "ckpt/model").exists())
        wait_until(lambda: any(b"directory_sync" in command_line(pid) for pid in tree(master.executor.pid)))  # type: ignore[union-attr]
    master.executor.send_signal(signal.SIGTERM)
    assert master.executor.wait(LIMIT_S) == TERMINATED
    assert (tmp_path / "stored" / "model").read_text() == "1\n"


def test_a_process_whose_parent_ends_while_all_are_listed_is_not_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    listings = iter([[10], [10, 11], [10, 11]])
    program = object.__new__(Program)
    monkeypatch.setattr(program, "_terminated", set(), raising=False)
    monkeypatch.setattr(program, "processes", lambda: next(listings))
    program._note_told_processes()
    assert program._terminated == {10, 11}


def test_a_lost_master_ends_the_time_that_the_engine_gives(conduct: Start) -> None:  # noqa: F811
    """Another attempt may begin three seconds after the lease."""
    master = conduct("trap '' TERM; echo up; sleep 600", lease_s=1.0)
    master.start({TERM_GRACE_S: "60"})
    master.phase(Phase.JOINED)
    master.set_orders(Goal.RUN, stop_s=60.0)
    wait_for_output(master)
    assert master.executor is not None
    master.executor.send_signal(signal.SIGTERM)
    master.fall_silent(1.0)
    assert master.exit_status(40.0) == NOT_HEARD


def test_what_is_left_in_the_background_saves(conduct: Start) -> None:  # noqa: F811
    master = conduct(f"{TRAIN} & while [ ! -e up ]; do sleep 0.02; done")
    master.start()
    master.phase(Phase.JOINED)
    master.set_orders(Goal.RUN, stop_s=60.0)
    wait_for_output(master)
    (master.work / "up").touch()
    ended = master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.ok
    assert (master.work / "saved").read_text() == "1"
    assert b"what it has left in the background is stopped" in master.output("stderr")


def test_what_ignores_the_signal_is_killed_in_time(conduct: Start) -> None:  # noqa: F811
    master = conduct("trap 'exit 0' TERM; (trap '' TERM; echo up; exec sleep 600) & wait")
    master.start()
    master.phase(Phase.JOINED)
    master.set_orders(Goal.RUN)
    wait_for_output(master)
    master.set_orders(Goal.STOP, stop_s=0.3)
    ended = master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.cause == "stopped"
    assert re.search("the program left 1 processes, which were killed: (sleep|bash|sh)", master.log())
