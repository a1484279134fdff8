"""Tests that what a test leaves behind is found, ended and charged to that test, by a run of pytest of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import psutil

PLUGINS = Path(__file__).parents[1] / "plugins"
LIMIT_S = 120


def outcomes(directory: Path, source: str, *options: str) -> tuple[str, dict[str, Any]]:
    """Run `source` as test_some.py; return what pytest printed, and what became of the tests."""
    (directory / "test_some.py").write_text(textwrap.dedent(source))
    (directory / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    command = [sys.executable, "-m", "pytest", "-p", "leftovers", "-p", "outcomes", "-p", "no:cacheprovider"]
    command += ["--outcomes=outcomes.json", "--ending-limit=0.1", f"--basetemp={directory}/base"]
    done = subprocess.run(
        [*command, "test_some.py", *options],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(PLUGINS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    printed = done.stdout + done.stderr
    assert (directory / "outcomes.json").exists(), printed
    found: dict[str, Any] = json.loads((directory / "outcomes.json").read_text())
    return printed, found


def test_a_process_fails_the_test_that_left_it_and_is_ended(tmp_path: Path) -> None:
    source = """
        import subprocess, sys

        SLEEP = "import os, time; os.fork() and os._exit(0); print(os.getpid(), flush=True); time.sleep(600)"

        def test_first(): pass

        def test_leaves_one():
            with open("pid", "w") as pid:
                subprocess.run([sys.executable, "-c", SLEEP], stdout=pid, start_new_session=True)

        def test_last(): pass
        """
    printed, found = outcomes(tmp_path, source)
    assert found["failed"] == ["test_some.py::test_leaves_one"], printed
    assert "test_some.py::test_leaves_one left process" in printed
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int((tmp_path / "pid").read_text())).wait(LIMIT_S)


def test_a_process_that_has_dropped_its_mark_is_known_by_the_directory_that_it_names(tmp_path: Path) -> None:
    source = """
        import subprocess

        def test_leaves_one(tmp_path):
            (tmp_path / "log").touch()
            subprocess.run(["setsid", "--fork", "tail", "-f", "/dev/null", str(tmp_path / "log")], env={}, check=True)
        """
    (tmp_path / "test_other.py").write_text("def test_after_it(): pass\n")
    printed, found = outcomes(tmp_path, source, "test_other.py")
    assert found["failed"] == ["test_some.py::test_leaves_one"], printed
    assert "who used test_leaves_one0 left process" in printed


def test_processes_of_the_session_may_live_as_long_as_it(tmp_path: Path) -> None:
    source = """
        import subprocess
        import pytest

        @pytest.fixture(scope="session")
        def server():
            with subprocess.Popen(["sleep", "600"]) as process:
                yield process
                process.kill()

        def test_with_it(server): pass
        """
    (tmp_path / "test_other.py").write_text("def test_beside(): pass\n")
    printed, found = outcomes(tmp_path, source, "test_other.py")
    assert (found["tests"], found["failed"]) == (2, []), printed


def test_what_is_not_closed_fails_the_test_that_made_it(tmp_path: Path) -> None:
    source = """
        import socket

        class Ring:
            def __init__(self):
                self.me, self.socket = self, socket.socket()

        def test_leaves_a_socket(): Ring()

        def test_is_innocent(): pass
        """
    printed, found = outcomes(tmp_path, source)
    assert found["failed"] == ["test_some.py::test_leaves_a_socket"], printed
    assert "unclosed <socket" in printed


def test_what_outlives_its_test_fails_the_test_that_drops_it_or_ends_its_file_or_the_session(tmp_path: Path) -> None:
    source = """
        import socket
        import kept, pytest

        class Ring:
            def __init__(self):
                self.me, self.socket = self, socket.socket()

        @pytest.fixture(scope="module")
        def ring():
            return Ring()

        def test_makes_rings(ring):
            kept.rings = [Ring(), Ring()]

        def test_drops_one(): kept.rings.pop()

        def test_is_innocent(): pass

        def test_ends_the_file(): pass
        """
    (tmp_path / "kept.py").write_text("rings = []\n")
    (tmp_path / "test_other.py").write_text(
        "import kept\ndef test_drops_one(): kept.rings.clear()\ndef test_ends_the_session(): pass\n"
    )
    printed, found = outcomes(tmp_path, source, "test_other.py")
    assert found["failed"] == [
        "test_some.py::test_drops_one",
        "test_some.py::test_ends_the_file",
        "test_other.py::test_ends_the_session",
    ], printed


def test_what_a_failed_test_keeps_alive_fails_no_other(tmp_path: Path) -> None:
    source = """
        import socket

        def test_fails():
            left = socket.socket()
            assert left.fileno() < 0

        def test_is_innocent(): pass
        """
    printed, found = outcomes(tmp_path, source)
    assert found["failed"] == ["test_some.py::test_fails"], printed
