"""Tests which files the cleaning of the cache removes."""

from __future__ import annotations

import math
import os
from pathlib import Path

from howdah.spec import uris
from howdah.storage.content_cache import Cache, max_unused_s

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
    assert Cache(uris.of_local(tmp_path)).clean(86400, lambda: math.inf, now=NOW, limit_s=60) == 3
    assert [(tmp_path / "cache" / name).exists() for name in (*gone, *stay)] == [False] * 3 + [True] * 5


def test_what_an_unfinished_job_may_need_stays(tmp_path: Path) -> None:
    path, asked = tmp_path / "cache" / "01" / f"{DIGEST}-a.whl", []
    path.parent.mkdir(parents=True)
    path.touch()
    os.utime(path, (NOW, 1e9))  # used then

    def clean(now: float, oldest_job: float) -> int:
        def ask() -> float:
            asked.append(now)
            return oldest_job

        return Cache(uris.of_local(tmp_path)).clean(10.0, ask, now=now, limit_s=60)

    assert clean(NOW + 10, math.inf) == 0
    assert not asked, "nothing was old"
    assert clean(NOW + 99, NOW + 10) == 0
    assert clean(NOW + 99, NOW + 11) == 1
    assert asked == [NOW + 99, NOW + 99]


def test_a_submission_that_is_under_way_keeps_its_files() -> None:
    days = [max_unused_s({"cache_days": text}) / 86400 for text in ("0", "1", "7", "")]
    assert days == [1, 1, 7, 30]
    assert max_unused_s({}) == 30 * 86400
