"""Compiles a library with NVIDIA's name from C source that a test gives."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def compile_nvml(directory: Path, source: str) -> str:
    """Make `libnvidia-ml.so.1` in `directory`, and return its path; without a C compiler the test is skipped."""
    if not shutil.which("cc"):
        pytest.skip("no C compiler (cc) here")
    (directory / "stub.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "libnvidia-ml.so.1", "stub.c"], cwd=directory, check=True)
    return str(directory)
