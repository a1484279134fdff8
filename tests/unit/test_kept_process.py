"""Tests processes that outlive their master, and whose end the next master learns."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from howdah.engines.kept_process import KeptProcess

T = TypeVar("T")


def play(act: Callable[[], Awaitable[T]]) -> T:
    async def within() -> T:
        return await asyncio.wait_for(act(), 60)

    return asyncio.run(within())


def run(line: str, output: Path) -> Awaitable[KeptProcess]:
    return KeptProcess.run(["/bin/sh", "-c", line], os.environ, output)


async def run_until_it_speaks(line: str, output: Path) -> KeptProcess:
    """Start a line that says something first; return when it has: from then on a signal reaches it."""
    process = await run(line, output)
    while not output.read_text():
        await asyncio.sleep(0.01)
    return process


@pytest.mark.parametrize(("line", "status"), [("exit 0", 0), ("echo said; exit 3", 3), ("kill -9 $$", 137)])
def test_the_status_is_that_of_the_command(tmp_path: Path, line: str, status: int) -> None:
    async def act() -> int | None:
        return await (await run(line, tmp_path / "a.log")).wait()

    assert play(act) == status
    assert ("said\n" in (tmp_path / "a.log").read_text()) == ("said" in line)


def test_the_next_master_learns_the_status(tmp_path: Path) -> None:
    async def act() -> tuple[bool, int | None, int | None]:
        first = await run("read line; exit 4", tmp_path / "a.log")  # its input is empty: it ends at once
        second = KeptProcess.from_json(first.to_json())
        return await first.wait() == 4, await second.wait(), second.status()

    assert play(act) == (True, 4, 4)


def test_a_process_whose_end_nobody_saw_has_no_status(tmp_path: Path) -> None:
    async def act() -> tuple[bool, int | None, int | None]:
        process = await run("sleep 600", tmp_path / "a.log")
        lived = process.lives
        os.killpg(process.pid, signal.SIGKILL)
        return lived, await process.wait(), await KeptProcess.from_json(process.to_json()).wait()

    assert play(act) == (True, -signal.SIGKILL, None)


def test_a_later_process_with_the_same_number_is_another(tmp_path: Path) -> None:
    async def act() -> tuple[bool, bool]:
        process = await run_until_it_speaks("echo up; exec sleep 600", tmp_path / "a.log")
        other = KeptProcess(process.pid, process.start - 1, process.status_file)
        other.signal(signal.SIGKILL)
        found = other.lives, process.lives
        await process.end()
        return found

    assert play(act) == (False, True)


def test_what_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("howdah.engines.kept_process.STOP_S", 0.2)

    async def act() -> bool:
        line = "trap '' TERM; echo up; while true; do sleep 0.1; done"
        process = await run_until_it_speaks(line, tmp_path / "a.log")
        await process.end()
        return process.lives

    assert play(act) is False


def test_a_stop_at_the_start_is_heeded_whenever_it_comes(tmp_path: Path) -> None:
    async def act() -> None:
        for number in range(40):
            process = await run("exec sleep 600", tmp_path / f"{number}.log")
            await asyncio.sleep(number * 0.0001)
            process.signal(signal.SIGTERM)
            assert await process.wait() in (-signal.SIGTERM, 128 + signal.SIGTERM)

    play(act)
