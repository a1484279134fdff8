"""Tests that a package's README names files and packages that exist, and all of its packages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from source import SOURCE

READMES = sorted((SOURCE / "howdah").rglob("README.md"))


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_what_a_readme_names_exists(readme: Path) -> None:
    rows = re.findall(r"^\| (`[^|]*) \|", readme.read_text(encoding="utf-8"), re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert sorted(name for name in names if not (readme.parent / name).exists()) == []
    rooms = {f"{init.parent.name}/" for init in readme.parent.glob("*/__init__.py")} - {"proto/"}
    assert sorted(rooms - names) == []
