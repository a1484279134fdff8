"""The handler of the merged log: the ends of the logs of several tasks, in the order of time."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from howdah.api import schemas
from howdah.api.handlers.logs import INDEX_TAIL_BYTES, AttemptReader
from howdah.api.routes import ApiRequest
from howdah.api.sources import JobSource
from howdah.errors import RequestRefused
from howdah.logs.lines import LogLine, merge_by_time, split_lines
from howdah.logs.query import tasks_of
from howdah.logs.stream_index import BOTH
from howdah.spec import TaskId
from howdah.spec.message import message

MAX_TASKS, MAX_MERGED_BYTES, MAX_TASK_BYTES = 64, 512 << 10, 64 << 10
"""The most tasks whose logs are merged, and the most bytes that are read of all logs and of one."""
INDEX_SHARE = 2
"""Bytes of a task's index that may be read for each byte of its log, if that is more than INDEX_TAIL_BYTES. They
suffice for lines of 25 bytes, because the index has at most about 50 bytes for each line."""
MAX_SHOWN = 500
"""Bytes that are shown of a line whose beginning is not read."""
MAX_MERGES = 2
"""Merges of this process at a time; others wait."""
_merges = asyncio.Semaphore(MAX_MERGES)


class LogEnd(NamedTuple):
    """The end of a task's output."""

    lines: list[LogLine]
    """The whole lines."""
    cut: bool = False
    """There are lines before these."""
    since: float = 0.0
    """The time at which the first of these lines with a known time was printed, 0 if there is none."""
    problem: str = ""
    """Why the log can't be read."""


async def merged(call: ApiRequest) -> schemas.MergedLines:
    """Return the last lines of several tasks in the order in which they were printed."""
    tasks = tasks_of(call.job.view, call.query.get("task", ""))
    chosen = tasks[:MAX_TASKS]
    limit = min(MAX_TASK_BYTES, MAX_MERGED_BYTES // max(1, len(chosen)))
    async with _merges:
        ends = await asyncio.gather(*(_read_end(call.job, task, limit) for task in chosen))
    lines = merge_by_time(end.lines for end in ends)
    return {
        "lines": [
            {
                "task": line.task,
                "attempt": line.attempt,
                "stream": line.stream,
                "offset": line.offset,
                "time": line.time or None,
                "text": line.text.decode("utf-8", "replace"),
            }
            for line in lines
        ],
        "complete_since": max((end.since for end in ends if end.cut), default=0.0),
        "tasks": len(chosen),
        "left_out": len(tasks) - len(chosen),
        "problems": [end.problem for end in ends if end.problem],
    }


async def _read_end(job: JobSource, task: TaskId, limit: int) -> LogEnd:
    """Read the last `limit` bytes of both streams of a task, as far as they are whole lines."""
    attempt = job.view.tasks[task].attempt
    reader = AttemptReader(job, task, attempt)
    try:
        offset, data = await reader.read(BOTH, -limit, limit)
    except RequestRefused as refused:
        return LogEnd([], problem=message("{task}: {what}", task=task, what=str(refused)))
    index = await reader.index(BOTH, offset, max(INDEX_TAIL_BYTES, INDEX_SHARE * limit))
    lines = [*split_lines([data], lambda at: index.when(BOTH, at) or 0.0, str(task), attempt, "", offset)]
    known = max(0, index.place(BOTH, 0)[0] - offset) if len(index) else 0  # nothing is known of the bytes before
    unknown_lines = data.count(b"\n", 0, known)
    streams = dict(await reader.streams(index, offset + known, data[known:]))
    current = ""
    for number, line in enumerate(lines):
        current = streams.get(number - unknown_lines, current)
        lines[number] = line._replace(stream=current)
    if offset and len(lines) > 1:
        lines = lines[1:]
    elif offset and lines:  # a line whose beginning is cut off, such as a progress bar: keep its last state
        shown = lines[0].text.rstrip(b"\r").rpartition(b"\r")[2]
        lines = [lines[0]._replace(text=shown[-MAX_SHOWN:], time=index.when(BOTH, offset + len(data) - 1) or 0.0)]
    return LogEnd(lines, cut=offset > 0, since=next((line.time for line in lines if line.time), 0.0))
