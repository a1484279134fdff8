"""When a task printed what: the file `times` beside its streams, written as they grow (howdah.logs.stream_index).

Bounded, whatever is printed: when there are too many lines every second of the older ones goes, so that the last
minutes are known to a tenth of a second and last week's to minutes.
"""

from __future__ import annotations

import os
import time
from typing import Callable, Mapping, Tuple

from howdah.executor.io.log_file import StreamLog
from howdah.logs.stream_index import STREAMS, TIMES, StreamIndex, read_both

MOST_LINES = 8192
APART_S, SWITCH_S = 0.1, 0.001
"""Between two lines; and when the program turns to its other stream."""


class LogTimes:
    """Of the streams in `logs`, in `directory`. It can be read as they can.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, directory: str, logs: Mapping[str, StreamLog]) -> None:
        self.logs, self.order = logs, StreamIndex()
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        self._file = os.open(os.path.join(directory, TIMES), flags, 0o640)
        self.size = 0
        self._stream, self._turned = "", False
        for name, log in logs.items():
            log.before = self._noting(name)

    def _noting(self, name: str) -> Callable[[], None]:
        return lambda: self.note(name, time.time())

    def note(self, stream: str, now: float) -> None:
        """Something is about to be added to `stream`."""
        order = self.order
        places = [self.logs[name].place for name in STREAMS]
        self._turned = self._turned or stream != self._stream
        self._stream = stream
        if len(order):
            apart = SWITCH_S if self._turned else APART_S
            if now - order.times[-1] < apart or [at for at, _ in places] == [order.stdout[-1], order.stderr[-1]]:
                return
        self._turned = False
        order.add(now, places[0], places[1])
        if len(order) >= MOST_LINES:
            self._thin()
        else:
            self._write(order.line(len(order) - 1))

    def read(self, offset: int, limit: int) -> Tuple[int, bytes]:
        """Bytes of the file, as `StreamLog.read` gives them."""
        offset = max(0, self.size + offset) if offset < 0 else offset
        return offset, os.pread(self._file, max(0, min(limit, self.size - offset)), offset)

    def _write(self, text: str) -> None:
        try:
            self.size += os.write(self._file, text.encode("ascii"))
        except OSError:  # a full disk is told of by the streams themselves
            return

    def _thin(self) -> None:
        old, kept = self.order, StreamIndex()
        recent = len(old) * 3 // 4
        for number in range(len(old)):
            if number >= recent or number % 2 == 0:
                kept.add(old.times[number], old.place("stdout", number), old.place("stderr", number))
        self._replace(kept)

    def _replace(self, order: StreamIndex) -> None:
        self.order, self.size = order, 0
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        self._write("".join(map(order.line, range(len(order)))))

    def close(self) -> None:
        """Before the streams are closed: offsets become those in their files."""
        if any(log.dropped for log in self.logs.values()):
            moved, old = StreamIndex(), self.order
            for number in range(len(old)):
                out, err = (self.logs[name].in_file(*old.place(name, number)) for name in STREAMS)
                moved.add(old.times[number], out, err)
            self._replace(moved)
        os.close(self._file)


class MergedLog:
    """Both streams as one, in the order in which they came; read as one of them."""

    def __init__(self, times: LogTimes) -> None:
        self._times = times

    @property
    def size(self) -> int:
        return sum(self._sizes().values())

    def _sizes(self) -> Mapping[str, int]:
        return {name: log.size for name, log in self._times.logs.items()}

    def read(self, offset: int, limit: int) -> Tuple[int, bytes]:
        """As `StreamLog.read`."""
        logs = self._times.logs
        return read_both(
            self._times.order,
            self._sizes(),
            lambda stream, start, most: logs[stream].read(start, most),
            offset,
            limit,
        )
