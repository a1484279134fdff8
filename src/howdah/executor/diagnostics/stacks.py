"""Takes stacks of the program on demand: the master asks for them as for a log, and a helper process answers."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Callable, List, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess
from howdah.spec.staged import PY_SPY
from howdah.wire.helper_messages import StackDumpRequest
from howdah.wire.messages import LogChunk, LogRequest

NATIVE = "stacks-native"
STREAMS = ("stacks", NATIVE)
MAX_DUMP_S = 20.0


class StackDumps:
    """Dumps the stacks of the processes that `pids()` lists, and sends them to the master by `answer`.

    `path` is the program's PATH; `secrets` are left out of the dump.
    """

    def __init__(
        self,
        loop: EventLoop,
        directory: str,
        path: str,
        pids: Callable[[], List[int]],
        answer: Callable[[LogChunk], None],
        secrets: Tuple[str, ...],
    ) -> None:
        self.loop, self.directory, self.path, self.pids, self.answer = loop, directory, path, pids, answer
        self.secrets = secrets

    def dump(self, request: LogRequest) -> None:
        """Start a helper that answers one request."""
        pids = tuple(self.pids())
        if not pids:
            self._answer(request, "no stacks: no program runs here now\n")
            return

        def on_end(problem: str) -> None:
            self._answer(request, str(helper.answer.get("text", "")) or f"no stacks: {problem}\n")

        order = StackDumpRequest(pids, py_spy(self.directory, self.path), request.stream == NATIVE, self.secrets)
        argv = ("howdah.executor.diagnostics.stack_dump",)
        helper = HelperProcess(self.loop, argv, order, on_end, limit_s=MAX_DUMP_S)

    def _answer(self, request: LogRequest, text: str) -> None:
        data = text.encode("utf-8", "replace")
        self.answer(LogChunk(request=request.request, offset=0, size=len(data), text=data.decode("latin-1")))


def py_spy(directory: str, path: str) -> str:
    """Find py-spy: the one that came with the job, that of our own Python, or the program's; "" when there is none."""
    shipped = os.path.join(directory, PY_SPY)
    if os.access(shipped, os.X_OK):
        return shipped
    beside = os.path.join(os.path.dirname(sys.executable), "py-spy")
    return beside if os.access(beside, os.X_OK) else shutil.which("py-spy", path=path) or ""
