"""Lines of this task's output that somebody looks for: found by a process beside the executor, in its own time.

The descriptors of the logs are handed to it, so that a log directory that was deleted does no harm.
"""

from __future__ import annotations

import json
from typing import Any, Callable, List, Mapping, Set, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess
from howdah.executor.identity import Identity
from howdah.executor.io.task_output import TaskOutput
from howdah.executor.process.process_tree import Reaper
from howdah.logs.stream_index import BOTH, STREAMS
from howdah.wire.messages import SEARCH, LogChunk, LogRequest

LIMIT_S = 60.0
AT_ONCE = 2


class LogSearches:
    """`answer` sends a chunk, whose text is the JSON of what was found."""

    def __init__(
        self,
        loop: EventLoop,
        reaper: Reaper,
        identity: Identity,
        printed: TaskOutput,
        answer: Callable[[LogChunk], None],
    ) -> None:
        self.loop, self.reaper, self.identity, self.printed, self.answer = loop, reaper, identity, printed, answer
        self._taken: Set[int] = set()
        self._running = 0

    def want(self, requests: Tuple[LogRequest, ...]) -> None:
        """Begin with those that are new. What is not asked any more is forgotten: another master counts anew."""
        fresh = [one for one in requests if one.stream == SEARCH and one.request not in self._taken]
        self._taken = {one.request for one in requests}
        for one in fresh:
            self._begin(one)

    def _begin(self, wanted: LogRequest) -> None:
        found = _Found(self, wanted.request)
        if self._running >= AT_ONCE:
            found.ended(f"{self.identity.task} is being searched {AT_ONCE} times already: try again later")
            return
        self._running += 1
        wish = dict(json.loads(wanted.search))
        files = self._files(str(wish.pop("stream", BOTH)))
        request = {"files": files, "wish": wish}
        passed = sorted({int(one["file"]) for one in files})
        try:
            helper = HelperProcess(
                self.loop, self.reaper, ("howdah.logs.search",), request, found.told, found.over, passed
            )
        except OSError as error:
            found.over(str(error))
        else:
            self.loop.call_later(LIMIT_S, helper.kill)

    def _files(self, stream: str) -> List[Mapping[str, Any]]:
        index = self.printed.times
        times = index.read(0, index.size)[1].decode("ascii")
        return [
            {
                "task": self.identity.task,
                "attempt": self.identity.attempt,
                "stream": name,
                "file": file,
                "from": start,
                "to": end,
                "lines": lines,
                "times": times,
            }
            for name in STREAMS
            if stream in (BOTH, name)
            for file, start, end, lines in self.printed.logs[name].kept
            if end > start
        ]

    def over(self) -> None:
        """One search has ended."""
        self._running -= 1


class _Found:
    """The answer to one request, while it is looked for."""

    def __init__(self, searches: LogSearches, request: int) -> None:
        self.searches, self.request = searches, request
        self.text = ""

    def told(self, message: Mapping[str, Any]) -> None:
        self.text = json.dumps(message)

    def over(self, problem: str) -> None:
        self.searches.over()
        self.ended(problem)

    def ended(self, problem: str) -> None:
        text = self.text or json.dumps({"hits": [], "scanned_bytes": 0, "complete": False, "error": problem})
        self.searches.answer(LogChunk(self.request, 0, len(text), text))
