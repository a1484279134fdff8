"""What flows into one run of the program and out of it: its input streams, and what it prints when that is an output.

The bytes go between the program and the helpers' pipes directly, never through the executor. The end of the input is
seen by the program only when all of it has been read: the executor holds the pipe open until the helper says so.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess, OnEnd, OnMessage
from howdah.executor.identity import Identity
from howdah.executor.io.log_tail import LogTail
from howdah.executor.process.process_tree import Reaper
from howdah.executor.process.program import wide_pipe
from howdah.spec.staged import Feed
from howdah.wire.helper_messages import FeedRequest, StdoutWriterRequest
from howdah.wire.messages import Assignment, StdoutOutput, Usage

_OURS = ("text", "whole", "csv", "jsonl", "sequencefile", "tfrecord", "gzip")
"""Formats that take no library but howdah's."""
_GRACE_S, _REMOVE_S = 2.0, 10.0


class ProgramStreams:
    """Of one run. `broke(problem)` is called, at most once, when they fail while the program runs; `finish` must be
    called in the end, whatever happened. `stdin` and `stdout` are the program's ends, None where it has no stream.

    `progress` (0..1, None without end or input), `streamed_bytes` and `local_bytes` are of the input,
    `starved_s` for how long its pipe was empty.
    """

    def __init__(
        self,
        loop: EventLoop,
        reaper: Reaper,
        assignment: Assignment,
        identity: Identity,
        directory: str,
        python: str,
        broke: OnEnd,
    ) -> None:
        self.loop, self.reaper, self.broke = loop, reaper, broke
        self.stdin: Optional[int] = None
        self.stdout: Optional[int] = None
        self.progress: Optional[float] = None
        self.streamed_bytes = self.local_bytes = self.printed_bytes = 0
        self.starved_s = 0.0
        self.capture = assignment.capture
        self._tail = LogTail()
        self._held: Optional[int] = None
        self._verdict: Optional[int] = None
        self._feeder: Optional[HelperProcess] = None
        self._capturer: Optional[HelperProcess] = None
        self._problem, self._stopped = "", ""
        self._running, self._abandoned = True, False
        self._done: Optional[OnEnd] = None
        self._python = python if assignment.program_path else ""
        self._identity, self._directory, self._stall_s = identity, directory, assignment.stall_s
        if assignment.feeds:
            self._feed(assignment.feeds)
        if assignment.capture is not None:
            self._record(assignment.capture)

    @property
    def outputs(self) -> Tuple[str, ...]:
        """The output that holds what the program printed, if it printed anything."""
        return (self.capture.uri,) if self.capture is not None and self.printed_bytes else ()

    def added_to(self, usage: Usage) -> Usage:
        """What its streams were used for; where a program tells no progress of its own, how far they are."""
        progress = usage.progress
        if progress is None and self.progress is not None:
            progress = round(self.progress, 2)
        read = (self.streamed_bytes, self.local_bytes, self.starved_s)
        return replace(usage, progress=progress, streamed_bytes=read[0], local_bytes=read[1], starved_s=read[2])

    def _feed(self, feeds: Sequence[Feed]) -> None:
        self.stdin, self._held = wide_pipe()
        request = FeedRequest(
            feeds=tuple(feeds),
            to=self._held,
            task=self._identity.task,
            host=self._identity.host,
            directory=self._directory,
            stall_s=self._stall_s,
        )
        python = self._reading(*(feed.format for feed in feeds))
        self._feeder = self._helper(
            "inputs.streaming.stdin_feeder", request, self._fed, self._feeder_ended, (self._held,), python
        )

    def _record(self, capture: StdoutOutput) -> None:
        source, self.stdout = wide_pipe()
        verdict, self._verdict = os.pipe()
        request = StdoutWriterRequest(
            uri=capture.uri,
            name=capture.name,
            format=capture.format,
            options=capture.options,
            source=source,
            verdict=verdict,
            directory=self._directory,
            stall_s=self._stall_s,
        )
        python, passed = self._reading(capture.format), (source, verdict)
        self._capturer = self._helper(
            "outputs.stdout_writer", request, self._captured, self._capturer_ended, passed, python
        )
        os.close(source)
        os.close(verdict)

    def _helper(
        self,
        name: str,
        request: object,
        on_message: OnMessage,
        on_end: OnEnd,
        files: Sequence[int],
        python: str,
    ) -> HelperProcess:
        argv = (f"howdah.{name}",)
        return HelperProcess(self.loop, self.reaper, argv, request, on_end, on_message, inherited=files, python=python)

    def _reading(self, *formats: str) -> str:
        """The interpreter for them: the job's, if it brings one, where they take libraries or are somebody's own."""
        return "" if all(name in _OURS for name in formats) else self._python

    @property
    def lines(self) -> Tuple[str, ...]:
        """The last lines that went to an output stream, once `finish` is done."""
        return self._tail.lines()

    def handed_over(self) -> None:
        """The program has its ends, or never will: ours are closed, so that each side notices when the other goes."""
        for file in (self.stdin, self.stdout):
            if file is not None:
                os.close(file)
        self.stdin = self.stdout = None

    def stop(self, grace_s: float) -> None:
        """End them; what was captured does not count."""
        self._stopped = "stopped before what the program printed was kept"
        for helper in self._living():
            helper.stop(min(grace_s, _GRACE_S))

    def finish(self, keep: bool, done: OnEnd) -> None:
        """The program has ended, or was never started: nothing more is fed; what it printed is made complete, or if not
        to be kept thrown away. Then `done(problem)` is called, "" when all is well."""
        self._running, self._done = False, done
        self.handed_over()
        if self._verdict is not None:
            if keep:
                _say_keep(self._verdict)
            os.close(self._verdict)
            self._verdict = None
        self._let_go()
        if self._feeder is not None:
            self._feeder.stop()
        if self._capturer is not None and not keep:
            self._abandoned = True
            self.loop.call_later(_REMOVE_S, self._capturer.stop)
        self._finish_if_over()

    def _living(self) -> List[HelperProcess]:
        return [one for one in (self._feeder, self._capturer) if one is not None]

    def _let_go(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _fed(self, message: Mapping[str, Any]) -> None:
        self.streamed_bytes = int(message.get("bytes", self.streamed_bytes))
        self.local_bytes = int(message.get("local", self.local_bytes))
        self.starved_s = float(message.get("starved_s", self.starved_s))
        self.progress = message.get("progress", self.progress)
        if message.get("ok"):
            self._let_go()

    def _feeder_ended(self, problem: str) -> None:
        self._feeder = None
        if self._running and problem:
            self._break(problem)
        self._finish_if_over()

    def _captured(self, message: Mapping[str, Any]) -> None:
        self.printed_bytes = int(message.get("bytes", self.printed_bytes))
        if "error" in message:
            self._break(str(message["error"]))
        if "tail" in message:
            self._tail.feed(str(message["tail"]).encode("latin-1"))

    def _capturer_ended(self, problem: str) -> None:
        self._capturer = None
        if problem and not self._abandoned:
            self._break(problem)
        self._finish_if_over()

    def _break(self, problem: str) -> None:
        if not self._problem:
            self._problem = problem
            if self._running:
                self.broke(problem)

    def _finish_if_over(self) -> None:
        if self._done is not None and not self._living():
            done, self._done = self._done, None
            done(self._stopped or self._problem)


def _say_keep(verdict: int) -> None:
    try:
        os.write(verdict, b"k")
    except BrokenPipeError:
        return  # it has failed, and said so
