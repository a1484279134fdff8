"""Run what needs large libraries in processes of its own: the libraries do not stay in the master's memory, and the
master does not wait."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from howdah.master.decisions.actions import (
    CommitDone,
    DiscardSnapshot,
    FindCheckpoint,
    NoteNodeFailures,
    PublishSnapshot,
    SnapshotPublished,
)
from howdah.master.decisions.outputs import commit_request
from howdah.master.state import GangState
from howdah.spec import JobSpec, StagedJob
from howdah.spec.events import CheckpointFound, Event, Noted

LIMIT_S, COMMIT_S = 120.0, 600.0
COMMIT_TRIES, COMMIT_AGAIN_S = 3, 5.0
"""A helper that was killed, or could not start, has said nothing about the outputs: another one is started."""
FIND_TRIES, FIND_AGAIN_S = 3, 5.0
"""A job does not fail because the file system did not answer once."""
BackgroundAction = PublishSnapshot | DiscardSnapshot | FindCheckpoint | NoteNodeFailures


async def run_action(chore: BackgroundAction, staged: StagedJob, job_id: str) -> Event | None:
    """Carry out the action; return the event that reports it, if there is one."""
    if isinstance(chore, NoteNodeFailures):
        request = {"home": staged.home, "id": job_id, "strikes": chore.failures}
        problem = (await _answer("howdah.engines.node_penalties", "note", request)).get("error")
        return Noted(time.time(), f"later jobs are not told of bad nodes: {problem}") if problem else None
    if isinstance(chore, PublishSnapshot):
        return await _publish(chore)
    if isinstance(chore, FindCheckpoint):
        return await _find(chore, staged.job)
    answer = await _answer("howdah.outputs.snapshots.snapshot", "discard", {"temporary": chore.temporary})
    left = f"an unfinished copy is left at {chore.temporary}: {answer.get('error')}"
    return Noted(time.time(), left) if answer.get("error") else None


async def commit(keep: bool, state: GangState) -> CommitDone:
    """Move the outputs to their places (`keep`), or remove them."""
    verb, answer = "commit" if keep else "discard", dict[str, Any]()
    request = commit_request(state)
    for number in range(COMMIT_TRIES):
        await asyncio.sleep(COMMIT_AGAIN_S if number else 0.0)
        try:
            answer = await asyncio.wait_for(run_helper("howdah.outputs.commit", verb, request), COMMIT_S)
        except (TimeoutError, asyncio.TimeoutError):
            answer = {"error": f"{verb}: no answer within {COMMIT_S:.0f} s"}
        except (OSError, ValueError) as error:
            answer = {"error": f"{verb}: {error or type(error).__name__}"}
            continue
        break
    committed, kept = (tuple(answer.get(name, ())) for name in ("committed", "kept"))
    return CommitDone(time.time(), committed, str(answer.get("error", "")), kept)


async def _publish(chore: PublishSnapshot) -> SnapshotPublished:
    request = {"temporary": chore.temporary, "final": chore.final, "to": chore.to, "keep": chore.keep}
    answer = await _answer("howdah.outputs.snapshots.snapshot", "publish", request)
    return SnapshotPublished(
        time.time(),
        output=chore.output,
        error=str(answer.get("error", "")),
        empty=bool(answer.get("empty")),
        removed=tuple(answer.get("removed", ())),
        problem=str(answer.get("problem", "")),
    )


async def _find(chore: FindCheckpoint, job: JobSpec) -> CheckpointFound:
    request = {"directory": job.checkpoint.path, "valid": job.checkpoint.valid}
    answer = await _answer("howdah.checkpoints.discovery", "find", request)
    for _ in range(FIND_TRIES - 1):
        if not answer.get("error"):
            break
        await asyncio.sleep(FIND_AGAIN_S)
        answer = await _answer("howdah.checkpoints.discovery", "find", request)
    return CheckpointFound(
        time.time(),
        epochs=chore.epochs,
        uri=str(answer.get("uri", "")),
        format=str(answer.get("format", "")),
        skipped=tuple(answer.get("skipped", ())),
        error=str(answer.get("error", "")),
    )


async def _answer(module: str, verb: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the helper's answer; its `error` says what went wrong."""
    try:
        return await asyncio.wait_for(run_helper(module, verb, request), LIMIT_S)
    except (TimeoutError, asyncio.TimeoutError):
        return {"error": f"{verb}: no answer within {LIMIT_S:.0f} s"}
    except (OSError, ValueError) as error:
        return {"error": f"{verb}: {error or type(error).__name__}"}


async def run_helper(module: str, verb: str, request: Any) -> dict[str, Any]:
    """Run one of our own modules in a process of its own, and return its answer.

    Raises:
        OSError: the process cannot be started.
        ValueError: the process ended without an answer.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        verb,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        output, _ = await process.communicate(json.dumps(request).encode())
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise
    lines = output.decode("utf-8", "replace").strip().splitlines()
    if not lines:
        raise ValueError(f"{module} ended with status {process.returncode} and said nothing")
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer
