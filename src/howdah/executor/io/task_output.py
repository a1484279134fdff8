"""What a task's programs print, as it is kept and read: two streams, when and in which order they came, both as one."""

from __future__ import annotations

import json
import os
from typing import Dict, Protocol, Tuple

from howdah.executor.io.log_file import StreamLog
from howdah.executor.io.log_times import LogTimes, MergedLog
from howdah.executor.process import process_tree
from howdah.logs.stream_index import BOTH, STREAMS, TIMES
from howdah.wire.messages import PROCESSES


class Readable(Protocol):
    """`size` bytes so far; `read` gives some, and where they begin (a negative offset counts from the end)."""

    @property
    def size(self) -> int: ...

    def read(self, offset: int, limit: int) -> Tuple[int, bytes]: ...


class ProcessList:
    """The pids of everything below the executor, as a JSON list that is made when it is read."""

    size = 0

    def read(self, offset: int, limit: int) -> Tuple[int, bytes]:
        """All of it: the limit is that of a log."""
        data = json.dumps([os.getpid(), *process_tree.descendants()]).encode()
        self.size = len(data)
        return 0, data


class TaskOutput:
    """In files of `directory`, `limit` bytes of each stream. `readable` has them by the names people ask for.

    Raises:
        OSError: a file can't be created.
    """

    def __init__(self, directory: str, limit: int) -> None:
        self.logs = {name: StreamLog(os.path.join(directory, name), limit) for name in STREAMS}
        self.times = LogTimes(directory, self.logs)
        self.readable: Dict[str, Readable] = {**self.logs, BOTH: MergedLog(self.times), TIMES: self.times}
        self.readable[PROCESSES] = ProcessList()

    def add_last(self, lines: Tuple[str, ...]) -> None:
        """The last lines of what was printed elsewhere."""
        if lines:
            self.logs["stdout"].write("".join(f"{line}\n" for line in ("[howdah: its last lines]", *lines)).encode())

    def close(self) -> None:
        """Nothing is printed any more."""
        self.times.close()
        for log in self.logs.values():
            log.close()
