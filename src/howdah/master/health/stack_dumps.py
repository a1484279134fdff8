"""Dumps the stacks of the programs: all executors are asked at once, and the answers become one file in the job's
directory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from howdah.errors import HowdahError, RequestRefused
from howdah.master.health.stack_suspects import find_suspect
from howdah.master.state import GangState
from howdah.spec import TaskId
from howdah.spec.events import StacksTaken
from howdah.storage.factory import filesystem
from howdah.wire.messages import LogChunk

ReadLog = Callable[[TaskId, str, int, int, float], Awaitable[LogChunk]]
"""`MasterServer.log_of`: returns a piece of a task's log, by task, stream, offset, limit and the seconds to wait."""
WAIT_S = 30.0
"""An executor gives up after 20 s."""
MAX_PARALLEL_REQUESTS, MAX_NATIVE_TASKS = 64, 4
MAX_BYTES = 1 << 20
DIRECTORY_NAME = "stacks"


async def collect_stacks(read_log: ReadLog, tasks: Iterable[TaskId], native: bool = False) -> dict[TaskId, str]:
    """Return the stacks of these tasks' programs; for a program that cannot be inspected, why not."""
    turns = asyncio.Semaphore(MAX_PARALLEL_REQUESTS)
    stream = "stacks-native" if native else "stacks"

    async def one(task: TaskId) -> tuple[TaskId, str]:
        async with turns:
            try:
                chunk = await read_log(task, stream, 0, MAX_BYTES, WAIT_S)
            except RequestRefused as refused:
                return task, f"no stacks: {refused}\n"
        return task, chunk.text.encode("latin-1").decode("utf-8", "replace")

    return dict(await asyncio.gather(*map(one, tasks)))


async def save_stacks(directory: str, stacks: Mapping[TaskId, str], now: float) -> str:
    """Write the stacks to a file; return its URI.

    Raises:
        StagingError, EngineUnavailable: the file cannot be written.
    """
    name = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    uri = f"{directory.rstrip('/')}/{DIRECTORY_NAME}/{name}-{int(now * 1000) % 1000:03d}.txt"
    text = "\n".join(f"==> {task} <==\n{said}" for task, said in stacks.items())

    def write() -> None:
        files = filesystem(uri)
        files.mkdirs(uri.rpartition("/")[0], 0o700)
        files.write_bytes(uri, text.encode(), 0o600)

    await asyncio.to_thread(write)
    return uri


async def investigate_stall(
    state: GangState, read_log: ReadLog, directory: str, tasks: Sequence[TaskId], stalled: Iterable[TaskId]
) -> StacksTaken:
    """Dump the stacks of all these tasks for a stall, and find the suspects among the tasks that were nearly as long
    without progress."""
    idle = {task: state.tasks[task].idle_s for task in tasks if state.tracked(task)}
    longest = max((idle.get(task, 0.0) for task in stalled), default=0.0)
    idle = {task: seconds for task, seconds in idle.items() if 2 * seconds >= longest}
    found = await collect_stacks(read_log, tasks)
    suspect = find_suspect({task: text for task, text in found.items() if task in idle}, idle)
    # A program that will be ended cannot be asked later; for one that goes on, `howdah stacks --native` costs less.
    ending = [task for task in suspect.tasks if state.role(task).on_stall in ("restart", "fail")][:MAX_NATIVE_TASKS]
    for task, text in (await collect_stacks(read_log, ending, native=True)).items():
        found[task] += f"\nwith native frames:\n{text}"
    try:
        uri, problem = await save_stacks(directory, found, time.time()), ""
    except HowdahError as error:
        uri, problem = "", f"they can't be kept: {error}"
    return StacksTaken(time.time(), by="", uri=uri, suspects=suspect.tasks, reason=suspect.reason, problem=problem)
