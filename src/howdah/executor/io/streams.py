"""`ProgramStreams` connects one run of the program to its input streams, and to the output that it prints.

The bytes go between the program and the helpers' pipes directly, never through the executor. The program sees the end
of its input only when all of it has been read: the executor holds the pipe open until the helper says so.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess, OnEnd, OnMessage
from howdah.executor.identity import Identity
from howdah.executor.io.log_tail import LogTail
from howdah.executor.process.program import wide_pipe
from howdah.spec.staged import Feed
from howdah.spec.usage import Usage
from howdah.wire.helper_messages import FeedRequest, StdoutWriterRequest
from howdah.wire.messages import Assignment, StdoutOutput

_OWN_FORMATS = ("text", "whole", "csv", "jsonl", "sequencefile", "tfrecord", "gzip")
"""Formats that need no library but howdah."""
_GRACE_S, _REMOVE_S = 2.0, 10.0


class ProgramStreams:
    """The streams of one run; `finish` must be called in the end, whatever happened.

    `on_failure(problem)` is called, at most once, when a stream fails while the program runs.
    """

    def __init__(
        self,
        loop: EventLoop,
        assignment: Assignment,
        identity: Identity,
        directory: str,
        python: str,
        on_failure: OnEnd,
    ) -> None:
        self.loop, self.on_failure = loop, on_failure
        self.stdin: Optional[int] = None
        self.stdout: Optional[int] = None
        """The program's end of the pipe; None if it has no output stream."""
        self.progress: Optional[float] = None
        """Position in the input, 0 to 1; None without an input, or if the input has no known end."""
        self.streamed_bytes = self.local_bytes = self.printed_bytes = 0
        self.starved_s = 0.0
        """Seconds for which the input's pipe was empty."""
        self.stdout_output = assignment.stdout_output
        self._tail = LogTail()
        self._stdin_writer: Optional[int] = None
        self._exit_ok_fd: Optional[int] = None
        self._feeder: Optional[HelperProcess] = None
        self._stdout_writer: Optional[HelperProcess] = None
        self._problem, self._stopped = "", ""
        self._running, self._abandoned = True, False
        self._on_end: Optional[OnEnd] = None
        self._python = python if assignment.program_path else ""
        self._identity, self._directory, self._stall_s = identity, directory, assignment.stall_s
        if assignment.feeds:
            self._feed(assignment.feeds)
        if assignment.stdout_output is not None:
            self._start_stdout_writer(assignment.stdout_output)

    @property
    def outputs(self) -> Tuple[str, ...]:
        """Return the URI of the output that the program printed, if it printed anything."""
        return (self.stdout_output.uri,) if self.stdout_output is not None and self.printed_bytes else ()

    def added_to(self, usage: Usage) -> Usage:
        """Add the streams' figures to the usage. If the program reports no progress, its progress is its position in
        the input."""
        progress = usage.progress
        if progress is None and self.progress is not None:
            progress = round(self.progress, 2)
        return replace(
            usage,
            progress=progress,
            streamed_bytes=self.streamed_bytes,
            local_bytes=self.local_bytes,
            starved_s=self.starved_s,
        )

    def _feed(self, feeds: Sequence[Feed]) -> None:
        self.stdin, self._stdin_writer = wide_pipe()
        request = FeedRequest(
            feeds=tuple(feeds),
            to=self._stdin_writer,
            task=self._identity.task,
            host=self._identity.host,
            directory=self._directory,
            stall_s=self._stall_s,
        )
        module, formats = "howdah.inputs.streaming.stdin_feeder", [feed.format for feed in feeds]
        on_message, on_end = self._feeder_message, self._feeder_ended
        self._feeder = self._start_helper(module, request, on_message, on_end, (self._stdin_writer,), formats)

    def _start_stdout_writer(self, output: StdoutOutput) -> None:
        source, self.stdout = wide_pipe()
        verdict, self._exit_ok_fd = os.pipe()
        request = StdoutWriterRequest(
            output, source=source, verdict=verdict, directory=self._directory, stall_s=self._stall_s
        )
        self._stdout_writer = self._start_helper(
            "howdah.outputs.stdout_writer",
            request,
            self._stdout_writer_message,
            self._stdout_writer_ended,
            (source, verdict),
            [output.format],
        )
        os.close(source)
        os.close(verdict)

    def _start_helper(
        self,
        module: str,
        request: object,
        on_message: OnMessage,
        on_end: OnEnd,
        files: Sequence[int],
        formats: Sequence[str],
    ) -> HelperProcess:
        """Start a helper. For formats that need libraries or are plugins, use the job's own Python if it has one."""
        python = "" if all(name in _OWN_FORMATS for name in formats) else self._python
        return HelperProcess(self.loop, (module,), request, on_end, on_message, inherited=files, python=python)

    @property
    def lines(self) -> Tuple[str, ...]:
        """Return the last lines that went to the output, once `finish` is done."""
        return self._tail.lines()

    def handed_over(self) -> None:
        """Close our copies of the program's ends, so that each side notices when the other one ends."""
        for file in (self.stdin, self.stdout):
            if file is not None:
                os.close(file)
        self.stdin = self.stdout = None

    def stop(self, grace_s: float) -> None:
        """End the helpers; what they have stored of standard output is not used."""
        self._stopped = "stopped before what the program printed was kept"
        for helper in self._helpers():
            helper.stop(min(grace_s, _GRACE_S))

    def finish(self, keep: bool, on_end: OnEnd) -> None:
        """End the input, and complete the output that the program printed, or throw the output away unless it is to be
        kept.

        This is called when the program has ended, or was never started.
        """
        self._running, self._on_end = False, on_end
        self.handed_over()
        if self._exit_ok_fd is not None:
            if keep:
                with contextlib.suppress(BrokenPipeError):  # the helper has failed, and reported it
                    os.write(self._exit_ok_fd, b"k")
            os.close(self._exit_ok_fd)
            self._exit_ok_fd = None
        self._close_stdin()
        if self._feeder is not None:
            self._feeder.stop()
        if self._stdout_writer is not None and not keep:
            self._abandoned = True
            self.loop.call_later(_REMOVE_S, self._stdout_writer.stop)
        self._finish_if_over()

    def _helpers(self) -> List[HelperProcess]:
        return [helper for helper in (self._feeder, self._stdout_writer) if helper is not None]

    def _close_stdin(self) -> None:
        if self._stdin_writer is not None:
            os.close(self._stdin_writer)
            self._stdin_writer = None

    def _feeder_message(self, message: Mapping[str, Any]) -> None:
        self.streamed_bytes = int(message.get("bytes", self.streamed_bytes))
        self.local_bytes = int(message.get("local", self.local_bytes))
        self.starved_s = float(message.get("starved_s", self.starved_s))
        self.progress = message.get("progress", self.progress)
        if message.get("ok"):
            self._close_stdin()

    def _feeder_ended(self, problem: str) -> None:
        self._feeder = None
        if self._running and problem:
            self._fail(problem)
        self._finish_if_over()

    def _stdout_writer_message(self, message: Mapping[str, Any]) -> None:
        self.printed_bytes = int(message.get("bytes", self.printed_bytes))
        if "error" in message:
            self._fail(str(message["error"]))
        if "tail" in message:
            self._tail.feed(str(message["tail"]).encode("latin-1"))

    def _stdout_writer_ended(self, problem: str) -> None:
        self._stdout_writer = None
        if problem and not self._abandoned:
            self._fail(problem)
        self._finish_if_over()

    def _fail(self, problem: str) -> None:
        if not self._problem:
            self._problem = problem
            if self._running:
                self.on_failure(problem)

    def _finish_if_over(self) -> None:
        if self._on_end is not None and not self._helpers():
            on_end, self._on_end = self._on_end, None
            on_end(self._stopped or self._problem)
