"""Searches this task's output on request, by a helper process beside the executor.

The helper inherits the descriptors of the logs, so that a log directory that was deleted does no harm.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Mapping, Optional, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess
from howdah.executor.identity import Identity
from howdah.executor.io.task_output import TaskOutput
from howdah.logs.query import LogQuery, LogSearchRequest, SearchedStream
from howdah.logs.stream_index import BOTH, STREAMS
from howdah.spec.codec import decode
from howdah.wire.messages import LogChunk, LogRequest

MAX_SEARCH_S = 60.0
MAX_SEARCHES = 2
"""Searches of one task at the same time."""


class LogSearches:
    """Searches the output of one task; `answer` sends a chunk whose text is the JSON of what was found."""

    def __init__(
        self, loop: EventLoop, identity: Identity, output: TaskOutput, answer: Callable[[LogChunk], None]
    ) -> None:
        self.loop, self.identity, self.output, self.answer = loop, identity, output, answer
        self._running = 0

    def search(self, request: LogRequest) -> None:
        """Start a helper that answers one request, unless `MAX_SEARCHES` are running."""
        if self._running == MAX_SEARCHES:
            task = self.identity.task
            self._answer(request, f"{task} is being searched {MAX_SEARCHES} times already: try again later")
            return

        def on_end(problem: str) -> None:
            self._running -= 1
            self._answer(request, problem, helper.answer)

        self._running += 1
        query = dict(json.loads(request.search))
        files = self._files(str(query.pop("stream", BOTH)))
        helper = HelperProcess(
            self.loop,
            ("howdah.logs.search",),
            LogSearchRequest(files, decode(LogQuery, query)),
            on_end,
            limit_s=MAX_SEARCH_S,
            inherited=sorted({file.file for file in files}),
        )

    def _answer(self, request: LogRequest, problem: str, result: Optional[Mapping[str, Any]] = None) -> None:
        text = json.dumps(result or {"hits": [], "scanned_bytes": 0, "complete": False, "error": problem})
        self.answer(LogChunk(request=request.request, offset=0, size=len(text), text=text))

    def _files(self, stream: str) -> Tuple[SearchedStream, ...]:
        """List the parts of the streams that are on disk, as the helper reads them."""
        index = self.output.times
        times = index.read(0, index.size)[1].decode("ascii")
        return tuple(
            SearchedStream(
                task=self.identity.task,
                attempt=self.identity.attempt,
                stream=name,
                file=file,
                start=start,
                end=end,
                lines=lines,
                times=times,
            )
            for name in STREAMS
            if stream in (BOTH, name)
            for file, start, end, lines in self.output.logs[name].kept
            if end > start
        )
