"""Tests that a sandbox's ResourceManager keeps its files to itself, so that two that start at once do not meet."""

from __future__ import annotations

from pathlib import Path

import psutil

from howdah.sandbox import Sandbox


def test_what_it_keeps_is_below_its_run_directory(resourcemanager: Sandbox) -> None:
    (daemon,) = resourcemanager.status()
    opened = {Path(file.path) for file in psutil.Process(daemon.pid).open_files()}
    written = {path for path in opened if path.suffix not in (".jar", ".so") and "/jvm/" not in str(path)}
    run = resourcemanager.run_dir
    assert run / "attributes" / "nodeattribute.mirror" in set((run / "attributes").iterdir())
    assert [path for path in written if not path.is_relative_to(run) and path.is_relative_to("/tmp")] == []
