"""Tests that programs of tests start with the default signal dispositions, however pytest was started."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[1] / "conftest.py"
CHILD = "import signal; print(signal.getsignal(signal.SIGHUP).name)"
TESTS = f"""
import runpy, subprocess, sys
runpy.run_path({str(CONFTEST)!r})
subprocess.run([sys.executable, "-c", {CHILD!r}])
"""


def test_programs_do_not_inherit_ignored_signals() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TESTS],
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "SIG_DFL\n", done.stderr
