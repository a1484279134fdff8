"""Tests that a running job on a real cluster takes no harm when another account calls its master."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from commandline import CommandLine, eventually, processes, read
from test_attacks import forged, head, pour

from howdah.sandbox import Sandbox

CALLERS = 400
BODY = 4 << 20
MOST_MIB = 128
"""Of the 512 that the master's container has; without callers it needs a third of this."""


@pytest.fixture
def howdah(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(sandbox.conf_dir))
    line = CommandLine(sandbox, tmp_path)
    yield line
    line.end_all()


def test_a_job_outlives_four_hundred_callers(howdah: CommandLine, tmp_path: Path) -> None:
    running = howdah.run(f"while ! test -e {tmp_path}/go; do sleep 0.2; done; echo it goes on")
    eventually(lambda: "RUNNING" in [task["state"] for task in howdah.status(running.job)["tasks"]], "running")
    address = urlsplit(howdah.status(running.job)["master"])
    callers = [socket.create_connection((address.hostname, address.port), 30) for _ in range(CALLERS)]
    for one in callers:
        one.setblocking(False)
    pour(callers[::2], head(BODY) + bytes(BODY - 1))
    pour(callers[1::2], head(BODY, forged()) + bytes(BODY - 1))
    (master,) = processes(running.job, "-m howdah.master --engine")
    maximum = re.search(rb"VmHWM:\s+(\d+) kB", read(master, "status"))
    assert maximum is not None
    assert int(maximum[1]) < MOST_MIB << 10
    (tmp_path / "go").touch()
    done = running.done()
    for one in callers:
        one.close()
    assert done.code == 0, done.text
    assert "it goes on" in done.text
    assert "attempt 2 of the master" not in done.text
