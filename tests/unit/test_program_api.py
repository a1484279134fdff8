"""Tests programs' requests to the master: changes are confirmed once they are recorded, and sizes have limits."""

from __future__ import annotations

import asyncio
import json
import os
import time
from typing import Any

import pytest

from howdah.errors import Conflict, LimitExceeded, NotReady
from howdah.master.program_api.handlers import ProgramApi
from howdah.spec import Exit, Role
from howdah.spec.events import Ended
from howdah.spec.view import JobView
from howdah.storage.factory import filesystem
from howdah.testing import Gang, job
from howdah.wire.program_protocol import MAX_POINTS, PROGRAM

VALUE = {"value": "v", "binary": False}
ONE = f"{PROGRAM}worker:0/1/1"


def calls_of_one(directory: str) -> ProgramApi:
    """For a job whose one program runs."""
    gang = Gang(job(roles={"worker": Role("train")}))
    gang.form()
    return ProgramApi(gang.state, directory, JobView(), lambda _: None, lambda _: None)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("put", {"key": "k", "life": "job", "op": "1", **VALUE}),
        ("swap", {"key": "k", "life": "job", "op": "1", "expected": None, "new": VALUE}),
        ("delete", {"key": "there"}),
    ],
)
def test_a_change_that_cannot_be_written_down_is_not_confirmed(call: str, message: dict[str, Any]) -> None:
    directory = f"memory://here/{os.getpid()}-{time.monotonic_ns()}"

    async def ask() -> Any:
        calls = calls_of_one(directory)
        there = {"key": "there", "life": "job", "op": "0", **VALUE}
        await calls.answer(ONE, "put", json.dumps(there).encode())
        filesystem(directory).delete(f"{directory}/here.jsonl")
        filesystem(directory).mkdirs(f"{directory}/here.jsonl")  # it is in the way
        return await calls.answer(ONE, call, json.dumps(message).encode())

    with pytest.raises(NotReady, match=r"here\.jsonl can't be written at the moment"):
        asyncio.run(ask())


@pytest.mark.parametrize("changes", [{"success": "50%"}, {"success": "any", "on_failure": "ignore"}])
@pytest.mark.parametrize("waits", [True, False])
def test_a_barrier_expects_none_whose_failure_the_job_passes_over(changes: dict[str, str], waits: bool) -> None:
    gang = Gang(
        job(
            roles={"worker": Role("train", replicas=2, on_failure=changes.get("on_failure", "fail"))},
            success=changes["success"],
        )
    )
    gang.form()

    async def meet() -> Any:
        calls = ProgramApi(gang.state, "memory://here/barrier", JobView(), lambda _: None, lambda _: None)
        message = {"name": "end", "round": 1, "who": "one", "wait": 20 if waits else 0}
        if not waits:
            gang.end("worker:1", Exit("exit", 3))
        answer = asyncio.ensure_future(calls.answer(ONE, "barrier", json.dumps(message).encode()))
        await asyncio.sleep(0)
        if waits:
            gang.end("worker:1", Exit("exit", 3))
            calls.observe(gang.recorded(Ended)[-1])
        return await answer

    with pytest.raises(Conflict, match="barrier 'end': worker:1 will not come: exit code 3"):
        asyncio.run(meet())


def test_points_have_a_limit() -> None:
    async def ask(count: int) -> Any:
        points = [["loss", number, 0.5, 1.0] for number in range(count)]
        calls = calls_of_one("memory://here/points")
        return await calls.answer(ONE, "metrics", json.dumps({"points": points}).encode())

    assert asyncio.run(ask(MAX_POINTS)) == {"problem": ""}
    with pytest.raises(LimitExceeded):
        asyncio.run(ask(MAX_POINTS + 1))
