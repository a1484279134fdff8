"""Runs helper processes for what needs large libraries: the libraries do not stay in the master's memory, and the
master does not wait."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from typing import TypeVar

from howdah.checkpoints.discovery import FindCheckpointReply, FindCheckpointRequest
from howdah.engines.node_penalties import WritePenaltiesRequest
from howdah.master.decisions import actions
from howdah.master.decisions.outputs import commit_request
from howdah.master.state import GangState
from howdah.outputs.commit import CommitReply
from howdah.outputs.snapshot import DiscardSnapshotRequest, PublishSnapshotReply, PublishSnapshotRequest
from howdah.spec import JobSpec, StagedJob
from howdah.spec.codec import decode, encode
from howdah.spec.events import CheckpointFound, Event, Noted
from howdah.spec.message import message
from howdah.wire.helper_main import PARENT, HelperReply

MAX_ANSWER_S, MAX_COMMIT_S = 120.0, 600.0
COMMIT_TRIES, COMMIT_AGAIN_S = 3, 5.0
"""Attempts to move the outputs, and seconds between them. A helper that was killed, or could not start, has reported
nothing about the outputs, so another one is started."""
FIND_TRIES, FIND_AGAIN_S = 3, 5.0
"""Attempts to find a checkpoint, and seconds between them: a job does not fail because the file system did not answer
once."""
BackgroundAction = actions.PublishSnapshot | actions.DiscardSnapshot | actions.FindCheckpoint | actions.NoteNodeFailures
Reply = TypeVar("Reply", bound=HelperReply)


async def run_action(action: BackgroundAction, staged: StagedJob, job_id: str) -> Event | None:
    """Carry out the action; return the event that reports it, if there is one."""
    if isinstance(action, actions.PublishSnapshot):
        return await _publish_snapshot(action)
    if isinstance(action, actions.FindCheckpoint):
        return await _find_checkpoint(action, staged.job)
    if isinstance(action, actions.NoteNodeFailures):
        penalties = WritePenaltiesRequest(staged.home, job_id, action.failures)
        problem = (await _reply_or_error("howdah.engines.node_penalties", "write", penalties, HelperReply)).error
        text = message("bad nodes can't be recorded for later jobs: {reason}", reason=problem)
    else:
        unfinished = DiscardSnapshotRequest(action.temporary)
        problem = (await _reply_or_error("howdah.outputs.snapshot", "discard", unfinished, HelperReply)).error
        text = message(
            "an unfinished snapshot at {uri} can't be removed: {reason}", uri=action.temporary, reason=problem
        )
    return Noted(time.time(), text) if problem else None


async def commit(keep: bool, state: GangState, again_s: float = COMMIT_AGAIN_S) -> actions.CommitDone:
    """Move the outputs to their places (`keep`), or remove them."""
    verb, request, reply = "commit" if keep else "discard", commit_request(state), CommitReply()
    for number in range(COMMIT_TRIES):
        await asyncio.sleep(again_s if number else 0.0)
        try:
            reply = await run_helper("howdah.outputs.commit", verb, request, CommitReply, MAX_COMMIT_S)
        except asyncio.TimeoutError:
            reply = CommitReply(error=f"{verb}: no answer within {MAX_COMMIT_S:.0f} s")
        except (OSError, ValueError) as error:
            reply = CommitReply(error=f"{verb}: {error or type(error).__name__}")
            continue
        break
    return actions.CommitDone(time.time(), reply.committed, reply.error, reply.kept, reply.replaced)


async def _publish_snapshot(action: actions.PublishSnapshot) -> actions.SnapshotPublished:
    request = PublishSnapshotRequest(action.temporary, action.final, action.to, action.keep)
    reply = await _reply_or_error("howdah.outputs.snapshot", "publish", request, PublishSnapshotReply)
    return actions.SnapshotPublished(
        time.time(),
        output=action.output,
        error=reply.error,
        empty=reply.empty,
        removed=reply.removed,
        problem=reply.problem,
    )


async def _find_checkpoint(action: actions.FindCheckpoint, job: JobSpec) -> CheckpointFound:
    request, reply = FindCheckpointRequest(job.checkpoint.path, job.checkpoint.valid), FindCheckpointReply()
    for number in range(FIND_TRIES):
        await asyncio.sleep(FIND_AGAIN_S if number else 0.0)
        reply = await _reply_or_error("howdah.checkpoints.discovery", "find", request, FindCheckpointReply)
        if not reply.error:
            break
    return CheckpointFound(
        time.time(), epochs=action.epochs, uri=reply.uri, format=reply.format, skipped=reply.skipped, error=reply.error
    )


async def _reply_or_error(module: str, verb: str, request: object, reply_type: type[Reply]) -> Reply:
    """Return the helper's reply. If there is none, return a reply whose `error` says why."""
    try:
        return await run_helper(module, verb, request, reply_type, MAX_ANSWER_S)
    except asyncio.TimeoutError:
        return reply_type(error=f"{verb}: no answer within {MAX_ANSWER_S:.0f} s")
    except (OSError, ValueError) as error:
        return reply_type(error=f"{verb}: {error or type(error).__name__}")


async def run_helper(module: str, verb: str, request: object, reply_type: type[Reply], limit_s: float) -> Reply:
    """Run one of howdah's modules in a process of its own (`howdah.wire.helper_main`).

    Raises:
        OSError: the process can't be started.
        ValueError: it ended without an answer.
        asyncio.TimeoutError: it wrote nothing for `limit_s`, neither its answer nor that it goes on, and was killed.
    """
    pipe, environment = asyncio.subprocess.PIPE, {**os.environ, PARENT: str(os.getpid())}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, verb, stdin=pipe, stdout=pipe, env=environment
    )
    try:
        text = json.dumps(encode(request)).encode()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(text)
        process.stdin.close()  # when all is sent
        output = await read_to_end(process.stdout, limit_s)
        await asyncio.wait_for(process.wait(), limit_s)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    lines = output.decode("utf-8", "replace").strip().splitlines()
    answer = json.loads(lines[-1]) if lines else {}
    if "ok" not in answer and "error" not in answer:  # the last line is a sign of life
        raise ValueError(f"{module} ended with status {process.returncode} without an answer")
    return decode(reply_type, answer)


async def read_to_end(output: asyncio.StreamReader, limit_s: float) -> bytes:
    """Return all that a helper writes. A move in an object store copies each file, however long that takes in all.

    Raises:
        asyncio.TimeoutError: nothing came for `limit_s` seconds.
    """
    read = bytearray()
    while piece := await asyncio.wait_for(output.read(1 << 16), limit_s):
        read += piece
    return bytes(read)
