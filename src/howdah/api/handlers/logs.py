"""Handlers of logs: a piece of a task's log, a search of the logs of all tasks, and a whole log as a file."""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import AsyncIterator
from typing import Any

from howdah.api import schemas
from howdah.api.http_server import Response
from howdah.api.routes import ApiRequest
from howdah.api.sources import JobSource
from howdah.errors import InvalidRequest, NotFound, NotReady, RequestRefused
from howdah.logs.line_places import first_line_number, line_streams, line_times, reaches_index_end
from howdah.logs.query import search_arguments, stream_of
from howdah.logs.stream_index import BOTH, TIMES, StreamIndex
from howdah.spec import TaskId
from howdah.wire.messages import LogChunk

MAX_LOG_BYTES = 1 << 20
MAX_CHARACTER_BYTES = 4
INDEX_TAIL_BYTES = 16 << 10
"""Bytes of the end of an index, which suffice for a page that follows the end of a log."""
PIECE_BYTES, MAX_BYTES = 512 << 10, 2 << 30
"""Bytes of a piece of a download, and the most bytes of a download."""
MAX_DOWNLOADS = 4
"""The most downloads of this process at a time: each has a few pieces in memory."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


async def logs(call: ApiRequest) -> schemas.Log:
    """Return a piece of a task's log as text; a byte that is part of no character becomes U+FFFD."""
    task = task_of(call)
    stream = stream_of(call.query, "stdout")
    limit = max(MAX_CHARACTER_BYTES, call.number("limit", 65536, 1, MAX_LOG_BYTES))
    view = call.job.view.tasks[task]
    # Read everything from one attempt, even if the task gets another container meanwhile.
    attempt = call.number("attempt", 0, minimum=0) or view.attempt
    chunk = await call.job.log(task, stream, attempt, call.number("offset", -limit), limit)
    view = call.job.view.tasks[task]
    complete = view.state.ended or attempt not in (0, view.attempt)
    offset, text, end = whole_characters(chunk, complete)
    first_line, times, streams = None, list[list[Any]](), list[list[Any]]()
    if text and call.number("lines", 0):
        data = chunk.text[offset - chunk.offset : end - chunk.offset].encode("latin-1")
        reader = AttemptReader(call.job, task, attempt)
        index = await reader.index(stream, offset)
        times = [[*pair] for pair in line_times(index, stream, offset, data)]
        if stream == BOTH:
            streams = [[*pair] for pair in await reader.streams(index, offset, data)]
        first_line = await first_line_number(index, stream, offset, data, functools.partial(reader.read, stream))
    return {
        "offset": offset,
        "size": chunk.size,
        "next": end,
        "text": text,
        "first_line": first_line,
        "times": times,
        "streams": streams,
        "complete": complete and end >= chunk.size,
        "attempts": list(dict.fromkeys(each.attempt for each in view.attempts)),
    }


class AttemptReader:
    """Reads the output of one attempt, and the index of its streams."""

    def __init__(self, job: JobSource, task: TaskId, attempt: int) -> None:
        self._job, self._task, self._attempt = job, task, attempt

    async def read(self, stream: str, offset: int, limit: int) -> tuple[int, bytes]:
        """Return up to `limit` bytes of a stream, and the offset at which they begin.

        Raises:
            RequestRefused: the stream can't be read.
        """
        chunk = await self._job.log(self._task, stream, self._attempt, offset, limit)
        return chunk.offset, chunk.text.encode("latin-1")

    async def index(self, stream: str, offset: int, limit: int = MAX_LOG_BYTES) -> StreamIndex:
        """Return the end of the index of the streams: INDEX_TAIL_BYTES, or `limit` bytes if the bytes of `stream` from
        `offset` on need more; an empty one where there is none."""
        try:
            begin, data = await self.read(TIMES, -INDEX_TAIL_BYTES, INDEX_TAIL_BYTES)
            if not begin:
                return StreamIndex.parse(data)
            end = StreamIndex.parse(data.partition(b"\n")[2])
            if limit <= INDEX_TAIL_BYTES or (len(end) and end.place(stream, 0)[0] <= offset):
                return end
            begin, data = await self.read(TIMES, -limit, limit)
            return StreamIndex.parse(data.partition(b"\n")[2] if begin else data)
        except RequestRefused:
            return StreamIndex()

    async def streams(self, index: StreamIndex, offset: int, data: bytes) -> list[tuple[int, str]]:
        """Return the streams of the lines of `data`, as `line_streams` does; none where they are not known."""
        stdout_bytes = 1 << 62
        if reaches_index_end(index, offset + len(data)):
            try:
                stdout_bytes = (await self._job.log(self._task, "stdout", self._attempt, -1, 1)).size
            except RequestRefused:
                return []
        return line_streams(index, stdout_bytes, offset, data)


def whole_characters(chunk: LogChunk, complete: bool) -> tuple[int, str, int]:
    """Return where the first whole character of a piece begins, the piece as text, and where its last character ends.

    The first bytes of a character at the end of the piece are left for the next piece, unless none will come: the
    stream ends here and is `complete`, or the piece holds nothing else before a gap.
    """
    data, end = chunk.text.encode("latin-1"), chunk.offset + len(chunk.text)
    # Bytes of a character that began in the previous piece; none if this is not UTF-8.
    heads = (number for number, byte in enumerate(data[:MAX_CHARACTER_BYTES]) if byte & 0xC0 != 0x80)
    begin = next(heads, 0) if chunk.offset else 0
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data[begin:])
    rest = len(decoder.getstate()[0])
    nothing_follows = complete if end >= chunk.size else not text
    if rest and nothing_follows:
        return chunk.offset + begin, text + decoder.decode(b"", final=True), end
    return chunk.offset + begin, text, end - rest


def task_of(call: ApiRequest) -> TaskId:
    """Return the task that the path of a call names.

    Raises:
        InvalidRequest, NotFound: the job has no task of this name.
    """
    name = call.path_params["task"]
    try:
        task = TaskId.parse(name)
    except ValueError as error:
        raise InvalidRequest(str(error), "task") from None
    if task not in call.job.view.tasks:
        raise NotFound(f"the job has no task {name[:80]}", "task")
    return task


async def search(call: ApiRequest) -> Any:
    """Find log lines that contain a text, or are of a level."""
    return await call.job.search(*search_arguments(call.job.view, call.query))


class CountedDownload:
    """Counts as one of the downloads of this process; at most MAX_DOWNLOADS are open at a time.

    Raises:
        NotReady: as many are open.
    """

    open_downloads = 0

    def __init__(self) -> None:
        if CountedDownload.open_downloads >= MAX_DOWNLOADS:
            raise NotReady(f"{MAX_DOWNLOADS} logs are being downloaded, which is the limit: try again later")
        CountedDownload.open_downloads += 1

    async def aclose(self) -> None:
        """Close the file, so that another download may begin."""
        CountedDownload.open_downloads -= 1


class Download(CountedDownload):
    """Reads a whole stream up to the length that it had at the beginning, a piece at a time."""

    def __init__(self, job: JobSource, task: TaskId, stream: str, attempt: int) -> None:
        super().__init__()
        self._source = job, task, stream, attempt
        self._offset, self._end, self._first = 0, MAX_BYTES, b""

    async def begin(self) -> None:
        """Fetch the first piece.

        Raises:
            RequestRefused: there is no such log.
        """
        try:
            self._first = await self._piece()
        except BaseException:
            await self.aclose()
            raise

    async def __aiter__(self) -> AsyncIterator[bytes]:
        piece, self._first = self._first, b""
        while piece:
            yield piece
            piece = await self._piece() if self._offset < self._end else b""

    async def _piece(self) -> bytes:
        job, task, stream, attempt = self._source
        chunk = await job.log(task, stream, attempt, self._offset, min(PIECE_BYTES, self._end - self._offset))
        self._offset = chunk.offset + len(chunk.text)
        self._end = min(self._end, chunk.size)
        return chunk.text.encode("latin-1")


def safe_name(text: str) -> str:
    """Return a part of a file's name that is safe in headers, archives and file systems."""
    return _UNSAFE.sub("_", text)


def attachment(file_name: str) -> dict[str, str]:
    """Return the headers for a file that the browser stores and does not show."""
    return {
        "Content-Disposition": f'attachment; filename="{file_name}"',
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
        "Cache-Control": "no-store",
    }


async def download(call: ApiRequest) -> Response:
    """Answer with a whole stream of one attempt as a file to download."""
    task, stream = task_of(call), stream_of(call.query, BOTH)
    attempt = call.number("attempt", 0, minimum=0)
    pieces = Download(call.job, task, stream, attempt)
    await pieces.begin()
    file_name = f"{safe_name(task.slug)}-{attempt or call.job.view.tasks[task].attempt}-{stream}.txt"
    return Response(200, content_type="text/plain; charset=utf-8", headers=attachment(file_name), pieces=pieces)
