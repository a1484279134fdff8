"""Tests that a process which writes to a full disk goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.wire.stderr import FullDiskIgnored

SAYS = "print('one', file=sys.stderr, flush=True)\ntry: 1 / 0\nexcept ZeroDivisionError: traceback.print_exc()"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    ("before", "code"), [("from howdah.wire.stderr import ignore_full_disk; ignore_full_disk()", 0), ("pass", 1)]
)
def test_a_full_disk_does_not_end_it(before: str, code: int) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", f"import sys, traceback\n{before}\n{SAYS}"], stderr=full)
    assert (done.returncode == 0) == (code == 0)


def test_what_has_room_is_written_at_once() -> None:
    reader, writer = os.pipe()
    stream = FullDiskIgnored(writer)
    assert print("ein Wört \udcff", file=stream) is None
    assert os.read(reader, 100).decode() == "ein Wört \\udcff\n"
    assert stream.fileno() == writer
    os.close(reader)
    os.close(writer)
