"""Runs the small inputs of tests/cases: each is a user's case that went wrong once, and says what is right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = sorted(path.parent for path in (Path(__file__).parents[1] / "cases").glob("*/run.sh"))
SKIPPED = 77
LIMIT_S = 240


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_case(case: Path, howdah_home: Path, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HOWDAH_HOME": str(howdah_home), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [case / "run.sh"], env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
