"""Tests `tools/kubernetes.py`, which builds Kubernetes before the tests that need it, or says why it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.sandbox.kubernetes.build import VERSION

TOOL = Path(__file__).parents[2] / "tools" / "kubernetes.py"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a sandbox of Kubernetes needs root")


def run(home: Path) -> list[str]:
    """Run the tool without Go's modules, and without anything on PATH, and return what it says."""
    environment = {"HOME": str(home), "HOWDAH_HOME": str(home), "PATH": "/nowhere", "GOPROXY": "off"}
    done = subprocess.run([sys.executable, TOOL], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")
    return done.stderr.splitlines()


def test_what_is_built_is_not_built_again(tmp_path: Path) -> None:
    (tmp_path / "cache" / f"kubernetes-{VERSION}").mkdir(parents=True)
    assert run(tmp_path) == []


def test_a_line_says_why_it_cannot_be_built(tmp_path: Path) -> None:
    assert run(tmp_path)[-1].startswith("Kubernetes is not there for the tests: ")
