"""Tests that the list of deliberate mistakes (tests/mutants) fits the source as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_mistake_can_still_be_made() -> None:
    command = [sys.executable, str(ROOT / "tools" / "mutants.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
