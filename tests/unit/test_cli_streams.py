"""Tests that a command whose output goes to a full disk prints one line, and no traceback."""

from __future__ import annotations

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
