"""Tests which `sftp-server` an ssh into a task gets: distributions have it in different directories."""

from __future__ import annotations

import subprocess
from pathlib import Path

from howdah.interactive.ssh_proxy import sftp_command


def test_the_first_that_the_node_has(tmp_path: Path) -> None:
    directories = [str(tmp_path / name) for name in ("one", "two", "three")]
    for name in ("two", "three"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sftp-server").write_text(f"#!/bin/sh\necho {name}\n")
        (tmp_path / name / "sftp-server").chmod(0o700)
    done = subprocess.run(sftp_command(directories), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "two\n")


def test_a_node_without_one_says_so(tmp_path: Path) -> None:
    done = subprocess.run(sftp_command([str(tmp_path)]), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (127, "howdah: this node has no sftp-server\n")
