"""`TaskOutput` keeps what a task's programs print: two streams, their order and times, and both as one."""

from __future__ import annotations

import json
import os
from typing import Dict, Optional, Protocol, Tuple

from howdah.executor.io.log_file import StreamLog
from howdah.executor.io.log_times import LogTimes, MergedLog
from howdah.executor.own_log import log
from howdah.executor.process import process_tree
from howdah.logs.stream_index import BOTH, STREAMS, TIMES
from howdah.spec.message import Sentence, message
from howdah.wire.messages import PROCESSES

MAX_WARNINGS = 50
"""The most warnings of one executor that are sent to the master."""


class Readable(Protocol):
    """Has `size` bytes so far. `read` returns bytes and the offset of the first one; a negative offset counts from the
    end."""

    @property
    def size(self) -> int:
        """Return the number of bytes that were printed."""

    def read(self, offset: int, limit: int) -> Tuple[int, bytes]: ...


class ProcessList:
    """Lists the pids below the executor in JSON, whenever it is read."""

    size = 0

    def read(self, offset: int, limit: int) -> Tuple[int, bytes]:
        """Return the whole list; `limit` is meant for logs, and is ignored."""
        data = json.dumps([os.getpid(), *process_tree.descendants()]).encode()
        self.size = len(data)
        return 0, data


class TaskOutput:
    """Writes both streams to files in `directory`, `limit` bytes of each.

    `readable` holds, by name, everything that the master may ask for.

    Raises:
        OSError: a file can't be created.
    """

    def __init__(self, directory: str, limit: int) -> None:
        self.logs = {name: StreamLog(os.path.join(directory, name), limit) for name in STREAMS}
        self.times = LogTimes(directory, self.logs)
        self.readable: Dict[str, Readable] = {**self.logs, BOTH: MergedLog(self.times), TIMES: self.times}
        self.readable[PROCESSES] = ProcessList()
        self.warnings: Tuple[Sentence, ...] = ()
        self.program_offset: Optional[int] = None
        """Bytes of both streams before the output of the present program; None before the first program."""

    def program_starts(self) -> None:
        """Note that all later output is that of another program, or of another run of the same one."""
        self.program_offset = self.readable[BOTH].size

    def tell(self, text: str) -> None:
        """Write a line to the executor's log and to the task's stderr, which users read."""
        log(text)
        self.logs["stderr"].write(f"[howdah: {text}]\n".encode("utf-8", "backslashreplace"))

    def warn(self, text: Sentence) -> None:
        """Warn users, in the client and on the page, too, that files of the program could not be kept."""
        self.tell(text)
        if text not in self.warnings and len(self.warnings) < MAX_WARNINGS:
            self.warnings = (*self.warnings, text)

    def add_last(self, lines: Tuple[str, ...]) -> None:
        """Add the last lines of a standard output that was stored as an output of the job."""
        if lines:
            self.logs["stdout"].write("".join(f"{line}\n" for line in ("[howdah: its last lines]", *lines)).encode())

    def warn_of_lost(self) -> None:
        """Warn, when a program has ended, how many bytes of its output were lost because the disk was full."""
        for stream in self.logs.values():
            stream.write(b"")  # there may be room again
        lost = [(name, stream.lost, stream.problem) for name, stream in self.logs.items() if stream.lost]
        for name, count, reason in lost:  # the warning itself may lose more
            template = "{count} bytes of {stream} are missing at the end: {reason}"
            self.warn(message(template, count=count, stream=name, reason=reason))

    def close(self) -> None:
        """Complete the files."""
        self.times.close()
        for stream in self.logs.values():
            stream.close()
