"""Tests that a command's terminal is free for its client's return as soon as the client is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from howdah.executor.process.process_tree import Reaper
from howdah.executor.relay import command_session
from howdah.executor.relay.command_session import CommandSession
from howdah.wire.helper_messages import CommandContext
from howdah.wire.relay_messages import CommandRequest

LIMIT_S = 1.0


class SwallowsCancellation:
    """`wait_for` of Python 3.11, when what it waits for comes together with its cancellation."""

    def __init__(self) -> None:
        self.swallowed = 0

    async def __call__(self, wanted: Awaitable[Any], limit_s: float) -> Any:
        task = asyncio.ensure_future(wanted)
        try:
            await asyncio.wait((task,), timeout=limit_s)
        except asyncio.CancelledError:
            if self.swallowed:
                raise
            self.swallowed += 1
        finally:
            task.cancel()


def test_a_cancellation_that_is_lost_keeps_no_client_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = SwallowsCancellation()
    monkeypatch.setattr(command_session.asyncio, "wait_for", lost)

    async def lose_the_client() -> bool:
        context = CommandContext("127.0.0.1:1", variables={"PATH": os.environ["PATH"]}, directory=str(tmp_path))
        reaper = Reaper()
        session = CommandSession("s", CommandRequest(argv=("cat",), terminal=True), context, reaper)
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=theirs)
        serving = asyncio.ensure_future(session.serve(reader, writer, 0))
        await asyncio.sleep(0)
        ours.shutdown(socket.SHUT_WR)  # it reads on, as what has not noticed the client's end does
        await asyncio.wait((serving,), timeout=10 * LIMIT_S)
        is_left = not session.attached
        ours.close()
        os.killpg(session.pid, signal.SIGKILL)
        while not reaper.reap():
            await asyncio.sleep(0.01)
        session._end_reading()
        return is_left

    assert asyncio.run(lose_the_client())
    assert lost.swallowed == 1
