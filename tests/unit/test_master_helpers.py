"""Tests that a master's helper ends with its master, which starts another, and has time as long as it goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from howdah.master.helper_process import read_to_end, run_helper
from howdah.outputs.commit import CommitReply, CommitRequest

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


def test_a_helper_that_is_killed_while_it_goes_on_has_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = "import os, signal\nprint('{\"done_files\": 3}', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    (tmp_path / "killed_helper.py").write_text(killed)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with pytest.raises(ValueError, match="killed_helper ended with status -9 without an answer"):
        asyncio.run(run_helper("killed_helper", "commit", CommitRequest(()), CommitReply, LIMIT_S))


class SkippingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock a test sets forward."""

    skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped


class Output(asyncio.StreamReader):
    """What a helper writes: a piece every `pause_s` seconds."""

    def __init__(self, pieces: list[bytes], pause_s: float) -> None:
        super().__init__()
        self.pieces, self.pause_s = pieces, pause_s

    async def read(self, _: int = -1) -> bytes:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SkippingLoop)
        loop.skipped += self.pause_s
        for _turn in range(5):
            await asyncio.sleep(0)
        return self.pieces.pop(0)


def read(pause_s: float) -> bytes:
    async def whole() -> bytes:
        return await read_to_end(Output([b"moved\n", b"moved\n", b"answer\n", b""], pause_s), 600.0)

    loop = SkippingLoop()
    try:
        return loop.run_until_complete(whole())
    finally:
        loop.close()


def test_a_helper_that_goes_on_may_take_longer_than_one_that_is_silent() -> None:
    assert read(400.0) == b"moved\nmoved\nanswer\n"
    with pytest.raises(asyncio.TimeoutError):
        read(900.0)
