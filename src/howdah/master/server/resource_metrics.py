"""Records what tasks use, in buckets: the open bucket is kept in memory, and finished buckets are lines of the job's
`metrics.jsonl`.

The time of a bucket follows from when the job began and how many tasks it has, never from the samples, so that a master
that takes over goes on with the same buckets. A crash loses the open bucket.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from howdah.api import metric_series as web
from howdah.master.journal import Journal
from howdah.spec import TaskId
from howdah.spec.usage import Usage

VERSION_S = 5.0
"""A client that asks again within this time gets the same answer."""


class MetricsRecorder:
    """Records the samples of one job, whose directory has the URI `directory`. `version` grows when there is more to
    see."""

    def __init__(self, directory: str, tasks: Iterable[TaskId]) -> None:
        self.journal = Journal(f"{directory.rstrip('/')}/{web.FILE}", "metrics")
        self._numbers = {task: number for number, task in enumerate(tasks)}
        self._columns: dict[str, _BucketColumn] = {}
        self._begun = self._start = self._end = self._reported_at = 0.0
        self.version = 0

    def begin(self, begun: float, now: float, anew: bool = False) -> None:
        """Begin the buckets of a job that began at `begun`; `anew` when another master has written some already.

        Raises:
            StagingError, EngineUnavailable: the file of the earlier master cannot be continued.
        """
        if anew:
            self.journal.resume()
        self._begun = self._start = self._end = begun
        self._move_to(now)
        self.journal.write(web.header(begun, [str(task) for task in self._numbers]))

    def add_sample(self, task: TaskId, usage: Usage, now: float) -> None:
        """Add a sample of a program that runs."""
        number = self._numbers.get(task)
        if number is None or not self._begun or not (usage.memory_mib or usage.cpu):  # nothing was measured yet
            return
        self.tick(now)
        for name, value in _values(usage):
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = _BucketColumn(len(self._numbers))
            column.add(number, value)
        if now - self._reported_at >= VERSION_S:
            self._reported_at, self.version = now, self.version + 1

    def tick(self, now: float) -> bool:
        """Write the bucket if it is over; return True if there is something to flush."""
        if not self._begun or now < self._end:
            return False
        line = self.open_line()
        self._move_to(now)
        self._columns.clear()
        if line:
            self.journal.write(line)
            self.version += 1
        return bool(line)

    def finish(self) -> None:
        """Write the open bucket: no more samples come."""
        if line := self.open_line():
            self.journal.write(line)
        self._columns.clear()

    def open_line(self) -> str:
        """Return the line of the open bucket as it is now; "" when nothing was sampled."""
        if not self._columns:
            return ""
        columns = {name: column.row() for name, column in self._columns.items()}
        record = {"t": round(self._start, 3), "s": round(self._end - self._start, 3), **columns}
        return json.dumps(record, separators=(",", ":")) + "\n"

    def unwritten(self) -> list[str]:
        """Return the lines that may not be in the file yet, after its header."""
        return [web.header(self._begun, [str(task) for task in self._numbers]), *self.journal.pending, self.open_line()]

    def _move_to(self, now: float) -> None:
        while self._end <= now:
            length = web.bucket_length(self._end - self._begun, len(self._numbers))
            self._start, self._end = self._end, self._end + length


class _BucketColumn:
    """Holds the samples of one measurement in the open bucket, by task."""

    __slots__ = ("count", "maximum", "minimum", "sum")

    def __init__(self, tasks: int) -> None:
        self.minimum, self.maximum, self.sum = (array("d", bytes(8 * tasks)) for _ in range(3))
        self.count = array("I", bytes(array("I").itemsize * tasks))

    def add(self, task: int, value: float) -> None:
        first = not self.count[task]
        self.minimum[task] = value if first else min(value, self.minimum[task])
        self.maximum[task] = value if first else max(value, self.maximum[task])
        self.sum[task] += value
        self.count[task] += 1

    def row(self) -> list[Any]:
        return [self._cell(task) for task in range(len(self.count))]

    def _cell(self, task: int) -> float | Sequence[float] | None:
        if not self.count[task]:
            return None
        minimum, maximum = self.minimum[task], self.maximum[task]
        if minimum == maximum:
            return _round(minimum)
        return [_round(minimum), _round(self.sum[task] / self.count[task]), _round(maximum)]


def _values(usage: Usage) -> Iterator[tuple[str, float]]:
    yield "cpu", usage.cpu
    yield "memory_mib", usage.memory_mib
    if usage.progress is not None:
        yield "progress", usage.progress
    for name in ("read_mib_s", "written_mib_s", "received_mib_s", "sent_mib_s"):
        yield name, getattr(usage, name)
    for gpu in usage.gpus:
        sample = {"gpu": gpu.use, "gpu_memory_mib": gpu.memory_mib, "gpu_celsius": gpu.celsius, "gpu_watts": gpu.watts}
        yield from ((name, value) for name, value in sample.items() if value is not None)


def _round(value: float) -> float | int:
    short = round(value, 2)
    return int(short) if short == int(short) else short
