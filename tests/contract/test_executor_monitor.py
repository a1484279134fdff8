"""Tests how an executor monitors its program: forwards warnings, dumps stacks on request, notices silence."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conductor import Conductor
from test_executor import Start, conduct, program

from howdah.executor.diagnostics.stack_dump import REFUSED, describe_processes, explain_failure, kernel_state
from howdah.wire.messages import SEARCH, Goal, LogRequest, Phase, PreemptionNotice, Status

__all__ = ["conduct"]
SOON = PreemptionNotice(number=1, kind="preemption", within_s=3000.0, text="YARN is about to preempt it", signal="USR1")
WORLD = {
    **{"HOWDAH_JOB_ID": "j", "HOWDAH_JOB_NAME": "n", "HOWDAH_TASK": "worker:1", "HOWDAH_ROLE": "worker"},
    **{"HOWDAH_INDEX": "1", "HOWDAH_RANK": "1", "HOWDAH_WORLD_SIZE": "2", "HOWDAH_EPOCH": "1", "HOWDAH_ATTEMPT": "1"},
}
SAVES = """
import signal, sys, time
from howdah import here

def told(*_):
    notice = here.notice()
    print(notice.kind, 2000 < notice.seconds <= 3000, notice.text)
    sys.exit(75)

signal.signal(signal.SIGUSR1, told)
print(here.notice(), flush=True)
time.sleep(600)
"""
HANGS = """
import threading, time

def take_the_lock():
    lock.acquire()

lock = threading.Lock()
lock.acquire()
print("up", flush=True)
take_the_lock()
"""


def begin(master: Conductor, words: str = "") -> Status:
    """Its program runs, and has printed `words`."""
    master.world = WORLD
    master.start()
    master.phase(Phase.JOINED)
    master.set_orders(Goal.RUN)
    return master.until(lambda status: status.phase is Phase.RUNNING and status.usage.log_bytes >= len(words))


@contextlib.contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has printed `up`, and is killed in the end."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        try:
            assert one.stdout is not None
            assert one.stdout.readline() == b"up\n"
            yield one
        finally:
            one.kill()


class TestNotices:
    def test_the_program_is_told_and_its_end_is_understood(self, conduct: Start) -> None:
        master = conduct(program(SAVES))
        begin(master, "None\n")
        master.announce(SOON)
        ended = master.phase(Phase.ENDED)
        assert ended.exit is not None
        assert (ended.exit.cause, ended.exit.code) == ("preempted", 75)
        assert ended.exit.detail == "it ended after this notice: YARN is about to preempt it"
        assert master.output() == b"None\npreemption True YARN is about to preempt it\n"
        assert master.output("stderr") == b"[howdah: YARN is about to preempt it; SIGUSR1 tells the program]\n"

    @pytest.mark.parametrize("number", ["URG", "CONT", "none"])
    def test_one_that_does_not_care_goes_on(self, conduct: Start, number: str) -> None:
        master = conduct("echo up; until [ -e go ]; do sleep 0.02; done; echo done")
        begin(master, "up\n")
        master.announce(
            PreemptionNotice(number=1, kind="decommission", within_s=0.0, text="the node goes", signal=number)
        )
        master.until(lambda status: "notice1" in status.orders_digest)
        (master.work / "go").touch()
        ended = master.phase(Phase.ENDED)
        assert ended.exit is not None
        assert ended.exit.ok
        assert master.output() == b"up\ndone\n"

    def test_who_dies_of_it_was_preempted(self, conduct: Start) -> None:
        master = conduct(program("print('up', flush=True); import time; time.sleep(600)"))
        begin(master, "up\n")
        master.announce(SOON)
        ended = master.phase(Phase.ENDED)
        assert ended.exit is not None
        assert (ended.exit.cause, ended.exit.signal) == ("preempted", signal.SIGUSR1)


class TestStacks:
    def test_where_each_thread_is(self, conduct: Start) -> None:
        master = conduct(program(HANGS))
        begin(master, "up\n")
        text = master.ask_log("stacks", 0, 1 << 20).text
        assert "take_the_lock (<string>:5)" in text
        assert "<module> (<string>:10)" in text
        assert "take_the_lock" in master.ask_log("stacks-native", 0, 1 << 20).text

    def test_a_program_that_is_no_python(self, conduct: Start) -> None:
        master = conduct("echo up; sleep 600 & wait")
        begin(master, "up\n")
        text = master.ask_log("stacks", 0, 1 << 20).text
        assert "What the kernel says of its threads:" in text
        assert "sleep 600" in text

    def test_nothing_runs(self, conduct: Start) -> None:
        master = conduct("true")
        master.run()
        assert master.ask_log("stacks", 0, 100).text == "no stacks: no program runs here now\n"

    @pytest.mark.parametrize("stream", ["stacks", "stacks-native"])
    def test_secrets_in_arguments_are_not_shown(self, conduct: Start, stream: str) -> None:
        words = ("--api-key", "sk-1", "--token=sk-2", "--url", "http://ann:sk-3@h/", "line\nend", "--password", "sk-4")
        master = conduct((sys.executable, "-c", HANGS, *words))
        begin(master, "up\n")
        text = master.ask_log(stream, 0, 1 << 20).text
        assert "take_the_lock (<string>:5)" in text
        assert "sk-" not in text

    def test_secrets_in_arguments_of_what_is_no_python_are_not_shown(self, conduct: Start) -> None:
        master = conduct("echo up; sleep 600 --api-key sk-1 2>/dev/null; sleep 600; : --api-key sk-1")
        begin(master, "up\n")
        text = master.ask_log("stacks", 0, 1 << 20).text
        assert "--api-key ***" in text
        assert "sk-1" not in text

    def test_the_jobs_own_secrets_are_shown_nowhere(self) -> None:
        command = ["sh", "-c", "echo up; read x", "--plain", "its-value"]
        with running(command) as one:
            (text,) = describe_processes([one.pid], "/bin/true", False, ["its-value"])
        assert "--plain ***" in text

    def test_stacks_without_permission_are_refused(self) -> None:
        """As py-spy says it where ptrace is refused."""
        said = "Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'"
        assert explain_failure(said) == REFUSED
        assert explain_failure("Error: Failed to find python version from target process\n").startswith(
            "py-spy: Error: Failed"
        )

    def test_without_py_spy(self) -> None:
        with running([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]) as one:
            first, second = describe_processes([one.pid], "", False)
        assert first.startswith("py-spy is not here")
        assert "time.sleep(600)" in second
        assert kernel_state(one.pid).endswith(": gone\n")
        assert list(describe_processes([one.pid], "/bin/true", False)) == []

    def test_native_frames_where_they_can_be_had(self, conduct: Start) -> None:
        master = conduct(program(HANGS))
        begin(master, "up\n")
        text = master.ask_log("stacks-native", 0, 1 << 20).text
        assert "take_the_lock (<string>:5)" in text
        assert re.search(r"^    \w.* \((libc|libpthread|ld-linux|libpython|python)[^:]*\)$", text, re.MULTILINE), text
        assert "no native frames" not in text

    def test_python_frames_where_native_ones_cannot(self, tmp_path: Path) -> None:
        """A py-spy of a platform without them, as it says so."""
        tool = tmp_path / "py-spy"
        said = "error: Found argument '--native' which wasn't expected"
        tool.write_text(
            f'#!/bin/sh\ncase "$*" in *--native*) echo "{said}" >&2; exit 1;; esac\necho "Process $3: frames"\n'
        )
        tool.chmod(0o755)
        (text,) = describe_processes([os.getpid()], str(tool), True)
        assert text.startswith(f"Process {os.getpid()}: frames\n(no native frames")

    def test_a_tool_that_fails(self, tmp_path: object) -> None:
        assert f"Process {os.getpid()}: py-spy gave no output" in next(
            describe_processes([os.getpid()], "/bin/false", False)
        )
        assert "can't be run: No such file" in next(describe_processes([os.getpid()], f"{tmp_path}/none", False))


@pytest.mark.parametrize(
    ("stream", "search", "answer"),
    [("stacks", "", "no program runs here now"), (SEARCH, json.dumps({"text": "found"}), "found it")],
)
def test_another_master_which_counts_its_questions_anew_is_answered_too(
    conduct: Start, stream: str, search: str, answer: str
) -> None:
    master = conduct("echo found it")
    master.run()
    assert answer in master.ask_log(stream, 0, 100, search).text
    master.chunks.clear()
    assert answer in master.ask_log(stream, 0, 100, search).text


def test_silence_grows_and_ends_with_a_word(conduct: Start) -> None:
    source = (
        "import pathlib, time; from howdah import here; print('up', flush=True)\n"
        "while True:\n    time.sleep(0.2)\n    if pathlib.Path('go').exists(): here.alive()"
    )
    master = conduct(program(source))
    begin(master, "up\n")
    silent = master.until(lambda status: status.idle_s > 1.5)
    (master.work / "go").touch()
    again = master.until(lambda status: status.sequence > silent.sequence and status.idle_s < silent.idle_s)
    assert again.phase is Phase.RUNNING


def test_large_pieces_of_logs_travel_in_messages_of_their_own(conduct: Start) -> None:
    """A byte that is no ASCII is six in JSON, and a message has a limit."""
    piece = 1 << 20
    master = conduct((sys.executable, "-c", f"import os, time; os.write(1, b'\\xff' * {4 * piece}); time.sleep(600)"))
    master.start()
    master.phase(Phase.JOINED)
    master.set_orders(Goal.RUN)
    master.until(lambda status: status.usage.log_bytes >= 4 * piece)
    asked = [LogRequest(request=number, stream="stdout", offset=number * piece, limit=piece) for number in (1, 2, 3)]
    chunks = master.ask_logs(*asked)
    assert [(chunk.request, chunk.offset) for chunk in chunks] == [(one.request, one.offset) for one in asked]
    assert all(chunk.text == "\xff" * piece for chunk in chunks)
    carried = [sum(len(chunk.text) for chunk in status.chunks) for status in master.statuses]
    assert max(carried) == piece
