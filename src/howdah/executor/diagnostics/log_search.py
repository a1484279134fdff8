"""Searches this task's output on request, by a helper process beside the executor.

The helper inherits the descriptors of the logs, so that a log directory that was deleted does no harm.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Mapping, Set, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess
from howdah.executor.identity import Identity
from howdah.executor.io.task_output import TaskOutput
from howdah.executor.process.process_tree import Reaper
from howdah.logs.query import LogQuery, LogSearchRequest, SearchedStream
from howdah.logs.stream_index import BOTH, STREAMS
from howdah.spec.codec import decode
from howdah.wire.messages import SEARCH, LogChunk, LogRequest

LIMIT_S = 60.0
MAX_SEARCHES = 2
"""Searches of one task at the same time."""


class LogSearches:
    """Answers each search request once; `answer` sends a chunk whose text is the JSON of what was found."""

    def __init__(
        self,
        loop: EventLoop,
        reaper: Reaper,
        identity: Identity,
        output: TaskOutput,
        answer: Callable[[LogChunk], None],
    ) -> None:
        self.loop, self.reaper, self.identity, self.output, self.answer = loop, reaper, identity, output, answer
        self._known: Set[int] = set()
        self._running = 0

    def obey(self, requests: Tuple[LogRequest, ...]) -> None:
        """Begin the searches that are new.

        A request that is not repeated is forgotten: another master counts from the beginning.
        """
        new = [request for request in requests if request.stream == SEARCH and request.request not in self._known]
        self._known = {request.request for request in requests}
        for request in new:
            if self._running < MAX_SEARCHES:
                self._search(request)
            else:
                task = self.identity.task
                self._answer(request, f"{task} is being searched {MAX_SEARCHES} times already: try again later")

    def _answer(self, request: LogRequest, problem: str, text: str = "") -> None:
        text = text or json.dumps({"hits": [], "scanned_bytes": 0, "complete": False, "error": problem})
        self.answer(LogChunk(request=request.request, offset=0, size=len(text), text=text))

    def _search(self, request: LogRequest) -> None:
        text = ""

        def on_message(message: Mapping[str, Any]) -> None:
            nonlocal text
            text = json.dumps(message)

        def on_end(problem: str) -> None:
            self._running -= 1
            self._answer(request, problem, text)

        self._running += 1
        query = dict(json.loads(request.search))
        files = self._files(str(query.pop("stream", BOTH)))
        HelperProcess(
            self.loop,
            self.reaper,
            ("howdah.logs.search",),
            LogSearchRequest(files, decode(LogQuery, query)),
            on_end,
            on_message,
            limit_s=LIMIT_S,
            inherited=sorted({file.file for file in files}),
        )

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
