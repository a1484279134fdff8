"""Tests that a process raises the limit of its open files, and that programs keep theirs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_RAISE = """import resource, subprocess
from howdah.localfiles.open_files import raise_open_files_limit
before = raise_open_files_limit()
print(before, *resource.getrlimit(resource.RLIMIT_NOFILE))
subprocess.run(["sh", "-c", f"ulimit -S -n {before}; ulimit -S -n; ulimit -H -n"])
"""


@pytest.mark.parametrize(("soft", "expected"), [(64, ["64", "128", "128", "64", "128"]), (128, ["128"] * 5)])
def test_the_limit_is_raised_and_can_be_given_back_to_programs(soft: int, expected: list[str]) -> None:
    limited = f'ulimit -S -n {soft}; ulimit -H -n 128; exec "$0" -c "$1"'
    done = subprocess.run(
        ["sh", "-c", limited, sys.executable, _RAISE],
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == expected
