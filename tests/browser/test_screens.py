"""Tests that the documents' pictures are those that frontend/dev/screens.py makes of real jobs, in both languages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("playwright")
from browser import ROOT, missing

LIMIT_S = 6300.0
"""It builds environments of TensorFlow and PyTorch, runs six examples, each of which may take 900 s, and takes the
pictures."""

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(LIMIT_S + 60)]


def test_real_jobs_make_each_picture(tmp_path: Path) -> None:
    tool = ROOT / "frontend" / "dev" / "screens.py"
    done = subprocess.run([sys.executable, str(tool), str(tmp_path)], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == sorted(path.name for path in (ROOT / "docs" / "screens").glob("*.webp"))
    assert {f"zh-{name}" for name in made if not name.startswith("zh-")} == {n for n in made if n.startswith("zh-")}


def test_each_picture_stands_in_a_document() -> None:
    pages = [*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    pictures = {path.name for path in (ROOT / "docs" / "screens").iterdir()}
    assert {name for name in pictures if f"screens/{name})" not in text} == set()
