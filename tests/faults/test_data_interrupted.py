"""Tests that a `howdah data` command which is interrupted leaves nothing that is half done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.spec import uris

HOWDAH = str(Path(sys.executable).with_name("howdah"))
LIMIT_S = 60.0
HUGE = 1 << 40  # a hole: it takes no room, and its copying does not end by itself


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory with a small file, which is copied at once, and files that are copied for hours."""
    directory = tmp_path / "source"
    directory.mkdir()
    (directory / "small").write_text("1")
    for number in range(2):
        (directory / f"huge{number}").touch()
        os.truncate(directory / f"huge{number}", HUGE)
    return directory


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "target"
    for path in (tmp_path / "target").rglob("*"):
        if path.is_file():
            path.unlink()


def half_done(target: Path) -> list[Path]:
    return [path for path in target.rglob("*.part") if path.stat().st_blocks]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_a_put_leaves_nothing_half_done(source: Path, target: Path, number: signal.Signals) -> None:
    command = [HOWDAH, "data", "put", str(source), uris.of_local(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        until = time.monotonic() + LIMIT_S
        while len(half_done(target)) < 2 or not (target / "small").exists():
            assert time.monotonic() < until, "the copies did not begin"
            time.sleep(0.01)
        process.send_signal(number)
        printed = process.communicate(timeout=LIMIT_S)[0]
    assert (process.returncode, printed) == (130, "interrupted: what is half done is removed\n")
    assert [path.name for path in target.iterdir()] == ["small"]


def test_a_put_of_which_one_file_fails_leaves_nothing_half_done(source: Path, target: Path) -> None:
    (source / "zzz").mkdir()
    (source / "zzz/file").write_text("1")
    target.mkdir()
    (target / "zzz").write_text("in the way of a directory")
    command = [HOWDAH, "data", "put", str(source), uris.of_local(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 66
    assert "zzz" in done.stderr
    assert sorted(path.name for path in target.iterdir() if path.name != "small") == ["zzz"]
