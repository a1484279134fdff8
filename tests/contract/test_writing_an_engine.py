"""Tests docs/writing-an-engine.md by following it: its package passes the contracts, as the page says."""

from __future__ import annotations

import atexit
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "writing-an-engine.md").read_text(encoding="utf-8")
FILES = ("yard/__init__.py", "yard/engine.py", "yard/allocator.py", "yard/checks.py", "test_yard.py")
"""The files that the page's Python blocks are, in their order."""
SITE = Path(tempfile.mkdtemp(prefix="howdah-yard-"))
"""Where the page's package is installed."""
LIMIT_S = 120.0


def install() -> None:
    """Write the page's files to SITE, as pip would install them."""
    for name, text in zip(FILES, re.findall(r"```python\n(.*?)```", PAGE, re.S), strict=True):
        (SITE / name).parent.mkdir(exist_ok=True)
        (SITE / name).write_text(text)
    group, row = re.findall(r'entry-points."([\w.]+)"\]\n(.*)', PAGE)[0]
    metadata = SITE / "yard_engine-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: yard-engine\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{row.replace(chr(34), '')}\n")


atexit.register(shutil.rmtree, SITE, ignore_errors=True)
install()
sys.path.insert(0, str(SITE))
suites = importlib.import_module("test_yard")
sys.path.remove(str(SITE))  # tests of other modules do not find the engine
TestYardAllocator, TestYardEngine = suites.TestYardAllocator, suites.TestYardEngine


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process and those that it starts find the package."""
    monkeypatch.syspath_prepend(SITE)
    monkeypatch.setenv("PYTHONPATH", str(SITE))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)


def test_the_doctor_makes_its_checks(tmp_path: Path) -> None:
    variables = {"HOWDAH_HOME": str(tmp_path), "HOWDAH_YARD_HOSTS": "north,south", "HOWDAH_LANGUAGE": "en"}
    command = [Path(sys.executable).with_name("howdah"), "doctor", "--on", "yard"]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=LIMIT_S)
    assert "ok    yard: hosts: north, south" in done.stdout.splitlines(), done.stdout + done.stderr
