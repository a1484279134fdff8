"""Takes stacks of the program on demand: the master asks for them as for a log, and a helper process answers."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any, Callable, List, Mapping, Sequence, Set, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess
from howdah.executor.process.process_tree import Reaper
from howdah.spec.staged import PY_SPY
from howdah.wire.helper_messages import StackDumpRequest
from howdah.wire.messages import LogChunk, LogRequest

STREAMS = ("stacks", "stacks-native")
LIMIT_S = 20.0


class StackDumps:
    """Answers each request for stacks once.

    `pids()` lists the program's processes, `answer` sends a chunk to the master; `secrets` are shown to nobody.
    """

    def __init__(
        self,
        loop: EventLoop,
        reaper: Reaper,
        directory: str,
        pids: Callable[[], List[int]],
        answer: Callable[[LogChunk], None],
        secrets: Sequence[str],
    ) -> None:
        self.loop, self.reaper, self.directory, self.pids, self.answer = loop, reaper, directory, pids, answer
        self.secrets = secrets
        self._known: Set[int] = set()

    def obey(self, requests: Tuple[LogRequest, ...], path: str) -> None:
        """Answer the requests that are new; `path` is the program's PATH.

        A request that is not repeated is forgotten: another master counts from the beginning.
        """
        new = [request for request in requests if request.stream in STREAMS and request.request not in self._known]
        self._known = {request.request for request in requests}
        for request in new:
            self._dump(request, py_spy(self.directory, path))

    def _dump(self, request: LogRequest, tool: str) -> None:
        text = ""

        def on_message(message: Mapping[str, Any]) -> None:
            nonlocal text
            text = str(message.get("text", text))

        def on_end(problem: str) -> None:
            data = (text or f"no stacks: {problem}\n").encode("utf-8", "replace")
            self.answer(LogChunk(request=request.request, offset=0, size=len(data), text=data.decode("latin-1")))

        pids = self.pids()
        if not pids:
            on_end("no program runs here now")
            return
        order = StackDumpRequest(
            pids=tuple(pids), tool=tool, native=request.stream == "stacks-native", secrets=tuple(self.secrets)
        )
        argv = ("howdah.executor.diagnostics.stack_dump",)
        HelperProcess(self.loop, self.reaper, argv, order, on_end, on_message, limit_s=LIMIT_S)


def py_spy(directory: str, path: str) -> str:
    """Find py-spy: the one that came with the job, that of our own Python, or the program's; "" when there is none."""
    shipped = os.path.join(directory, PY_SPY)
    if os.access(shipped, os.X_OK):
        return shipped
    beside = os.path.join(os.path.dirname(sys.executable), "py-spy")
    return beside if os.access(beside, os.X_OK) else shutil.which("py-spy", path=path) or ""
