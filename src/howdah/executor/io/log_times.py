"""`LogTimes` records when a task printed what, in the file `times` beside its streams (howdah.logs.stream_index).

The file has a limit: when there are too many lines every second one of the older lines is removed, so that the last
minutes are known to a tenth of a second and last week to minutes.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Callable, Mapping, Tuple

from howdah.executor.io.log_file import StreamLog
from howdah.logs.stream_index import STREAMS, TIMES, StreamIndex, read_both

MAX_LINES = 8192
APART_S, SWITCH_S = 0.1, 0.001
"""Least seconds between two lines of the file; and between two lines where the program changes to its other stream."""


class LogTimes:
    """Records the times of the streams in `logs`, in a file of `directory`.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, directory: str, logs: Mapping[str, StreamLog]) -> None:
        self.logs, self.index = logs, StreamIndex()
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        self._file = os.open(os.path.join(directory, TIMES), flags, 0o640)
        self.size = 0
        self._stream, self._switched = "", False
        for name, log in logs.items():
            log.before_write = self._note_before(name)

    def _note_before(self, name: str) -> Callable[[], None]:
        return lambda: self.note(name, time.time())

    def note(self, stream: str, now: float) -> None:
        """Record that something is about to be added to `stream`."""
        index = self.index
        positions = [self.logs[name].last_line for name in STREAMS]
        self._switched = self._switched or stream != self._stream
        self._stream = stream
        if len(index):
            apart = SWITCH_S if self._switched else APART_S
            if now - index.times[-1] < apart or [at for at, _ in positions] == [index.stdout[-1], index.stderr[-1]]:
                return
        self._switched = False
        index.add(now, positions[0], positions[1])
        if len(index) >= MAX_LINES:
            self._thin_out()
        else:
            self._write(index.line(len(index) - 1))

    def read(self, offset: int, limit: int) -> Tuple[int, bytes]:
        """Return bytes of the file, as `StreamLog.read` does."""
        offset = max(0, self.size + offset) if offset < 0 else offset
        return offset, os.pread(self._file, max(0, min(limit, self.size - offset)), offset)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):  # the streams themselves report a full disk
            self.size += os.write(self._file, text.encode("ascii"))

    def _thin_out(self) -> None:
        old, kept = self.index, StreamIndex()
        recent = len(old) * 3 // 4
        for number in range(len(old)):
            if number >= recent or number % 2 == 0:
                kept.add(old.times[number], old.place("stdout", number), old.place("stderr", number))
        self._replace(kept)

    def _replace(self, index: StreamIndex) -> None:
        self.index, self.size = index, 0
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        self._write("".join(map(index.line, range(len(index)))))

    def close(self) -> None:
        """Turn offsets into those of the joined files; this is called before the streams are closed."""
        if any(log.dropped for log in self.logs.values()):
            moved, old = StreamIndex(), self.index
            for number in range(len(old)):
                out, err = (self.logs[name].in_file(*old.place(name, number)) for name in STREAMS)
                moved.add(old.times[number], out, err)
            self._replace(moved)
        os.close(self._file)


class MergedLog:
    """Reads both streams as one, in the order in which they came."""

    def __init__(self, times: LogTimes) -> None:
        self._times = times

    @property
    def size(self) -> int:
        """Return the number of bytes in all streams."""
        return sum(self._sizes().values())

    def _sizes(self) -> Mapping[str, int]:
        return {name: log.size for name, log in self._times.logs.items()}

    def read(self, offset: int, limit: int) -> Tuple[int, bytes]:
        """Return bytes of both streams, as `StreamLog.read` does."""
        logs = self._times.logs
        return read_both(
            self._times.index,
            self._sizes(),
            lambda stream, start, count: logs[stream].read(start, count),
            offset,
            limit,
        )
