"""Tests that results of functions that nobody has read are removed when they are old, and nothing else is."""

from __future__ import annotations

import os
import time
from pathlib import Path

from howdah.functions.results import KEPT_S, Results, new_place
from howdah.spec import uris


def aged(directory: Path, days: float, days_of_files: float) -> Path:
    """Make a directory of results whose last change was some days ago."""
    file = directory / "worker-0" / "result.pickle"
    file.parent.mkdir(parents=True)
    file.touch()
    for path, age in ((file, days_of_files), (file.parent, days), (directory, days)):
        os.utime(path, (time.time() - age * 86400,) * 2)
    return directory


def test_results_of_killed_clients_are_removed_after_a_week(tmp_path: Path) -> None:
    assert KEPT_S == 7 * 86400
    results = tmp_path / "results"
    old = [aged(results / f"{digit * 32}{end}", 8, 8) for digit, end in (("0", ""), ("1", ".failed"))]
    newer = [aged(results / ("2" * 32), 6, 6), aged(results / ("3" * 32), 8, 6)]
    running = aged(results / ".howdah-job_17-0", 30, 30)
    others = aged(results / "models", 30, 30)
    place = new_place(uris.of_local(tmp_path))
    Results(place, (), "").prepare()
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in (*newer, running, others))


def test_old_results_with_a_link_that_leads_nowhere_are_removed(tmp_path: Path) -> None:
    old = aged(tmp_path / "results" / ("0" * 32), 8, 8)
    (old / "worker-0" / "result.pickle").unlink()
    (old / "worker-0" / "gone").symlink_to("nowhere")
    Results(new_place(uris.of_local(tmp_path)), (), "").prepare()
    assert not old.exists()
