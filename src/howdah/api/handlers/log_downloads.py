"""Handlers that answer with files of several logs: an archive of the logs of all tasks, and the matches of a search.

The rule: the archive is made while it is sent. Only one piece of one log, and the names of logs that are left out, are
in memory.
"""

from __future__ import annotations

import asyncio
import zipfile
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from howdah.api.answer_language import request_language
from howdah.api.handlers.logs import PIECE_BYTES, CountedDownload, attachment, safe_name
from howdah.api.http_server import Response
from howdah.api.routes import ApiRequest
from howdah.api.sources import JobSource
from howdah.errors import RequestRefused
from howdah.locale.messages import render
from howdah.logs.output_text import plain
from howdah.logs.query import MAX_HITS, search_arguments, tasks_of
from howdah.logs.stream_index import STREAMS
from howdah.spec import TaskId
from howdah.spec.message import message

MAX_ARCHIVE_BYTES = (2 << 30) - 1
"""The most bytes of logs in one archive."""
LEFT_OUT, MAX_LEFT_OUT = "LEFT-OUT.txt", 10_000
"""The file in the archive that names the logs that are left out, and the most lines of it."""


class ArchiveSink:
    """Takes the bytes that the archive writes. It cannot seek, so in the archive the sizes of files come after the
    files."""

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: bytes) -> int:
        self._data += data
        return len(data)

    def flush(self) -> None:
        """Do nothing: `take` returns what was written."""

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def take(self) -> bytes:
        """Return what was written since the last call."""
        data, self._data = bytes(self._data), bytearray()
        return data


class LogArchiveDownload(CountedDownload):
    """Makes a zip archive of the output of all attempts of `tasks`."""

    def __init__(self, job: JobSource, tasks: list[TaskId], language: str) -> None:
        super().__init__()
        self._job, self._tasks, self._language = job, tasks, language
        self._bytes, self._left_out = 0, list[str]()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        sink = ArchiveSink()
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for task, attempt, stream in self._streams():
                name = f"{safe_name(task.slug)}/{attempt}/{stream}.txt"
                first = await self._first_piece(name, task, attempt, stream)
                if not first[1]:
                    continue
                with archive.open(name, "w") as file:
                    async for data in self._pieces(name, task, attempt, stream, *first):
                        await asyncio.to_thread(file.write, data)
                        yield sink.take()
            if self._left_out:
                archive.writestr(LEFT_OUT, "".join(f"{line}\n" for line in self._left_out))
        yield sink.take()

    def _streams(self) -> Iterator[tuple[TaskId, int, str]]:
        for task in self._tasks:
            for attempt in dict.fromkeys(each.attempt for each in self._job.view.tasks[task].attempts):
                for stream in STREAMS:
                    yield task, attempt, stream

    async def _first_piece(self, name: str, task: TaskId, attempt: int, stream: str) -> tuple[int, bytes, int]:
        """Return offset and bytes of the first piece, and the size of the stream; no bytes if there are none."""
        if self._bytes >= MAX_ARCHIVE_BYTES:
            self._note(name, message("the archive has its {most} bytes already", most=MAX_ARCHIVE_BYTES))
            return 0, b"", 0
        try:
            chunk = await self._job.log(task, stream, attempt, 0, PIECE_BYTES)
        except RequestRefused as refused:
            self._note(name, str(refused))
            return 0, b"", 0
        return chunk.offset, chunk.text.encode("latin-1"), chunk.size

    async def _pieces(
        self, name: str, task: TaskId, attempt: int, stream: str, offset: int, data: bytes, size: int
    ) -> AsyncIterator[bytes]:
        """Yield the stream up to the length that it had at the beginning."""
        while data:
            room = MAX_ARCHIVE_BYTES - self._bytes
            self._bytes += len(data)
            yield data[:room]
            if len(data) > room:
                self._note(name, message("ends early: the archive has its {most} bytes", most=MAX_ARCHIVE_BYTES))
                return
            offset += len(data)
            if offset >= size:
                return
            try:
                chunk = await self._job.log(task, stream, attempt, offset, min(PIECE_BYTES, size - offset))
            except RequestRefused as refused:
                self._note(name, str(refused))
                return
            offset, data = chunk.offset, chunk.text.encode("latin-1")

    def _note(self, name: str, reason: str) -> None:
        """Note that a file is missing, or not complete."""
        if len(self._left_out) < MAX_LEFT_OUT:
            self._left_out.append(f"{name}: {render(reason, self._language)}")


async def archive(call: ApiRequest) -> Response:
    """Answer with an archive of the logs of all tasks, or of those that are named."""
    tasks = tasks_of(call.job.view, call.query.get("task", ""))
    pieces = LogArchiveDownload(call.job, tasks, request_language(call.http))
    headers = attachment(f"{safe_name(call.job.view.id)}-logs.zip")
    return Response(200, content_type="application/zip", headers=headers, pieces=pieces)


async def search_matches(call: ApiRequest) -> Response:
    """Answer with the matches of a search as a file: a line each, its columns separated by tabs."""
    arguments = search_arguments(call.job.view, {"limit": f"{MAX_HITS}", **call.query})
    found = await call.job.search(*arguments)
    lines = ["\t".join(("time", "task", "attempt", "stream", "line", "text")), *map(_match_line, found["hits"])]
    notes = [str(problem) for problem in found.get("problems", ())]
    if not found["complete"] and not notes:
        notes.append(message("there are more matches than these {count}", count=len(found["hits"])))
    lines += [f"[howdah: {render(note, request_language(call.http))}]" for note in notes]
    body = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
    headers = attachment(f"{safe_name(call.job.view.id)}-matches.txt")
    return Response(200, body, "text/plain; charset=utf-8", headers)


def _match_line(hit: Mapping[str, Any]) -> str:
    when = datetime.fromtimestamp(hit["time"], timezone.utc).isoformat(timespec="milliseconds") if hit["time"] else ""
    text = plain(hit["text"].encode("utf-8", "backslashreplace")).decode("utf-8", "replace")
    return "\t".join((when, *(str(hit[name]) for name in ("task", "attempt", "stream", "line")), text))
