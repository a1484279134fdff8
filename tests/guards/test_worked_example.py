"""Tests docs/add-a-framework.md by following it: its files, its run, its test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from source import ROOT, text

PAGE = text(ROOT / "docs" / "add-a-framework.md")


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)[number]


def test_the_page_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, work = tmp_path / "site", tmp_path / "work"
    metadata = site / "ring_framework-1.0.dist-info"
    metadata.mkdir(parents=True)
    work.mkdir()
    (site / "ring_framework.py").write_text(block("python"))
    group, row = re.findall(r'entry-points."([\w.]+)"\]\n(.*)', block("toml"))[0]
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{row.replace(chr(34), '')}\n")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ring-framework\nVersion: 1.0\n")
    (work / "job.yaml").write_text(block("yaml"))
    environment = {**os.environ, "PYTHONPATH": str(site), "HOWDAH_HOME": str(tmp_path / "home")}

    howdah = Path(sys.executable).with_name("howdah")
    done = subprocess.run(
        [howdah, "run", "--logs", "all", "job.yaml"],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    for line in block("text").splitlines():
        assert line in done.stdout + done.stderr

    monkeypatch.syspath_prepend(site)
    page_test: dict[str, Any] = {}
    exec(f"from ring_framework import Ring\n{block('python', 1)}", page_test)
    (name,) = (name for name in page_test if name.startswith("test_"))
    page_test[name]()
