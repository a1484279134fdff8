"""Tests which files the cleaning of the cache removes."""

from __future__ import annotations

import os
from pathlib import Path

from howdah.spec import uris
from howdah.storage.content_cache import Cache

DIGEST = "0123456789abcdef" * 4
NOW = 2e9


def test_only_entries_are_removed(tmp_path: Path) -> None:
    """The home may be a directory in which its user keeps another `cache`, as `slurm.home: /shared/me` may."""
    gone = [f"01/{DIGEST}-a.whl", f"01/.{DIGEST}-b.whl.1234abcd.part", f"unpacked/{DIGEST}-c.zip/bin/python"]
    stay = ["huggingface/model.bin", "01/notes", "0123/model", f"models/{DIGEST}-x", "model.bin"]
    for name in (*gone, *stay):
        path = tmp_path / "cache" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for path in (tmp_path / "cache").rglob("*"):
        os.utime(path, (1e9, 1e9))
    assert Cache(uris.of_local(tmp_path)).clean(86400, now=NOW, limit_s=60) == 3
    assert [(tmp_path / "cache" / name).exists() for name in (*gone, *stay)] == [False] * 3 + [True] * 5
