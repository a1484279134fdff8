"""Tests that the temporary directory of a killed process is removed when the next one is made."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from howdah.localfiles.temporary_directory import TemporaryDirectory

MAKES_ONE = (
    "import sys; from howdah.localfiles.temporary_directory import TemporaryDirectory\n"
    "made = TemporaryDirectory('howdah-test-', sys.argv[1])\n"
    "print(made.path, flush=True); sys.stdin.read()"
)


def test_the_directory_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAKES_ONE, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        (theirs / "file").write_text("x")
        ours = TemporaryDirectory("howdah-test-", str(tmp_path))
        assert (theirs / "file").exists(), "it lives"
        process.kill()
    other = TemporaryDirectory("howdah-other-", str(tmp_path))
    assert theirs.exists(), "it is of another kind"
    TemporaryDirectory("howdah-test-", str(tmp_path)).remove()
    assert set(tmp_path.iterdir()) == {ours.path, other.path}
    ours.remove()
    ours.remove()
    del other
    assert list(tmp_path.iterdir()) == []


def test_an_old_directory_without_a_lock_is_removed(tmp_path: Path) -> None:
    new, old, link = (tmp_path / f"howdah-test-{name}" for name in ("new", "old", "link"))
    new.mkdir()
    old.mkdir()
    os.utime(old, (time.time() - 3600, time.time() - 3600))
    link.symlink_to(new)
    TemporaryDirectory("howdah-test-", str(tmp_path)).remove()
    assert set(tmp_path.iterdir()) == {new, link}
