"""Tests that a master's helper ends with its master: the next master starts another one for the same work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil

LIMIT_S = 60.0
MASTER = """
import asyncio, sys
from howdah.checkpoints.discovery import FindCheckpointReply, FindCheckpointRequest
from howdah.master.helper_process import run_helper
request = FindCheckpointRequest("pipe", "")
asyncio.run(run_helper("waiting_helper", "find", request, FindCheckpointReply, 60.0))
"""
HELPER = """
import os, time
from howdah.checkpoints.discovery import FindCheckpointReply, FindCheckpointRequest
from howdah.wire.helper_main import run_helper_main
def find(request: FindCheckpointRequest) -> FindCheckpointReply:
    os.write(2, b"helper %d\\n" % os.getpid())
    time.sleep(60)
    return FindCheckpointReply()
run_helper_main({"find": find})
"""


def test_a_helper_ends_with_its_master(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "waiting_helper.py").write_text(HELPER)
    variables = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    with subprocess.Popen([sys.executable, "-c", MASTER], env=variables, stderr=subprocess.PIPE, text=True) as master:
        assert master.stderr is not None
        helper = psutil.Process(int(master.stderr.readline().split()[1]))
        master.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + LIMIT_S
        while helper.is_running() and helper.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline, "the helper outlives its master"
            time.sleep(0.05)
