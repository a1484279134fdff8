"""Tests what a command prints whose output goes to a full disk, or that has a fault: one line, or a traceback, and its
exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOWDAH = [sys.executable, "-c", "import sys; from howdah.cli import main; main(sys.argv[1:])"]
COMMAND = [*HOWDAH, "--help"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_no_room_for_what_it_prints_is_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(COMMAND, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        both = subprocess.run(COMMAND, stdout=full, stderr=full, timeout=60)
    assert (done.returncode, both.returncode) == (66, 66)
    (line,) = done.stderr.splitlines()
    assert "No space left on device" in line
    assert "goes on" in line


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(("words", "code"), [(["nosuch"], 64), (["plan", "/nosuch.yaml"], 66)])
def test_no_room_for_an_error_leaves_its_exit_code(words: list[str], code: int) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*HOWDAH, *words], stdout=full, stderr=full, timeout=60)
    assert done.returncode == code


def test_a_fault_keeps_its_traceback_and_is_no_failed_job() -> None:
    program = "from howdah.cli import COMMANDS, main; COMMANDS['list'] = ('json:missing', ''); main(['list'])"
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 70
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert done.stderr.endswith("AttributeError: module 'json' has no attribute 'missing'\n")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["logs", "nosuch", "--grep"], 66, "no job has the name 'nosuch'"),
        (["trace"], 66, r"had caf\udce9"),
        (["config", "set", "queue"], 64, r"queue: has '\udce9', which is not UTF-8"),
    ],
)
def test_an_argument_that_is_not_utf8_is_one_line(words: list[str], code: int, told: str, tmp_path: Path) -> None:
    env = {**os.environ, "HOWDAH_HOME": str(tmp_path)}
    done = subprocess.run([*HOWDAH, *words, b"caf\xe9"], env=env, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, len(done.stderr.splitlines())) == (code, 1), done.stderr
    assert told in done.stderr
