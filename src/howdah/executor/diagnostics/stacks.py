"""Stacks of the program on demand: asked for like a log, answered when a process beside the executor has looked."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any, Callable, List, Mapping, Sequence, Set, Tuple

from howdah.executor.diagnostics import stack_dump
from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess
from howdah.executor.process.process_tree import Reaper
from howdah.spec.staged import PY_SPY
from howdah.wire.messages import LogChunk, LogRequest

STREAMS = ("stacks", "stacks-native")
LIMIT_S = 20.0


class StackDumps:
    """`pids()` are the processes of the program now, `answer` sends a chunk; `secrets` are shown to nobody."""

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
        self._taken: Set[int] = set()

    def want(self, requests: Tuple[LogRequest, ...], path: str) -> None:
        """Take those that are asked for and were not taken yet; `path` is the program's PATH.

        What is not asked any more is forgotten: another master counts anew.
        """
        fresh = [one for one in requests if one.stream in STREAMS and one.request not in self._taken]
        self._taken = {one.request for one in requests}
        for one in fresh:
            _Look(self, one, tool(self.directory, path))


class _Look:
    """One answer."""

    def __init__(self, stacks: StackDumps, wanted: LogRequest, found: str) -> None:
        self.stacks, self.wanted, self.text = stacks, wanted, ""
        request = stack_dump.request_of(stacks.pids(), found, wanted.stream == "stacks-native", stacks.secrets)
        if not request["pids"]:
            self._ended("no program runs here now")
            return
        try:
            argv = ("howdah.executor.diagnostics.stack_dump",)
            helper = HelperProcess(stacks.loop, stacks.reaper, argv, request, self._told, self._ended)
        except OSError as error:
            self._ended(str(error))
        else:
            stacks.loop.call_later(LIMIT_S, helper.kill)

    def _told(self, message: Mapping[str, Any]) -> None:
        self.text = str(message.get("text", self.text))

    def _ended(self, problem: str) -> None:
        text = self.text or f"no stacks: {problem}\n"
        data = text.encode("utf-8", "replace")
        self.stacks.answer(LogChunk(self.wanted.request, 0, len(data), data.decode("latin-1")))


def tool(directory: str, path: str) -> str:
    """py-spy: the one that came with the job, that of our own Python, or the program's; "" when there is none."""
    shipped = os.path.join(directory, PY_SPY)
    if os.access(shipped, os.X_OK):
        return shipped
    beside = os.path.join(os.path.dirname(sys.executable), "py-spy")
    return beside if os.access(beside, os.X_OK) else shutil.which("py-spy", path=path) or ""
