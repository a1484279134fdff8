"""Tests that a program which a held job runs has the time to save, whoever ends it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from howdah.interactive import hold

LIMIT_S = 120.0
PROGRAM = """
import os, signal, time

def save(*_):
    with open("saves", "a") as file:
        file.write("1")

signal.signal(signal.SIGTERM, save)
open("up", "w").close()
while not os.path.exists("go"):
    time.sleep(0.02)
open("saved", "w").close()
raise SystemExit(7)
"""


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, hold.__file__, *options, "--", sys.executable, "-c", PROGRAM]
        started.append(subprocess.Popen(command, cwd=tmp_path, start_new_session=True))
        wait_until((tmp_path / "up").exists)
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_who_stops_the_task_tells_the_program_once_and_ends_it(
    held: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    process = held("--for", "3600", "--stop", "0")
    os.killpg(process.pid, signal.SIGTERM)
    wait_until((tmp_path / "saves").exists)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2 * hold.LOOK_S)
    (tmp_path / "go").touch()
    assert process.wait(LIMIT_S) == 7
    assert (tmp_path / "saves").read_text() == "1"


def test_the_end_of_the_time_leaves_the_program_its_time_to_stop(
    held: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    process = held("--for", "3600", "--stop", "600")
    (tmp_path / hold.UNTIL).write_text("0")
    wait_until((tmp_path / "saves").exists)
    (tmp_path / "go").touch()
    assert process.wait(LIMIT_S) == 0
    assert (tmp_path / "saved").exists()
    assert (tmp_path / "saves").read_text() == "1"


def test_a_program_that_does_not_stop_in_time_is_killed(
    held: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    process = held("--for", "3600", "--stop", "0.2")
    (tmp_path / hold.UNTIL).write_text("0")
    assert process.wait(LIMIT_S) == 0
    assert not (tmp_path / "saved").exists()


def test_who_tidies_the_directory_ends_nothing(held: Callable[..., subprocess.Popen[bytes]], tmp_path: Path) -> None:
    process = held("--for", "3600")
    wait_until((tmp_path / hold.STATIC / hold.LIMIT_FILE).exists)
    before = (tmp_path / hold.UNTIL).read_text()
    shutil.rmtree(tmp_path / hold.STATIC)
    (tmp_path / hold.UNTIL).unlink()
    wait_until((tmp_path / hold.UNTIL).exists)
    assert (tmp_path / hold.UNTIL).read_text() == before
    (tmp_path / hold.UNTIL).write_text(f"{float(before) + 60:.0f}")  # which cannot be published
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2 * hold.LOOK_S)
    (tmp_path / "go").touch()
    assert process.wait(LIMIT_S) == 7
