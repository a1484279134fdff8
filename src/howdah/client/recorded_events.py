"""The events of a job, read from its event log as far as it is written.

The rule: a log of any size is read in bounded memory, and every event in it counts. After the first `MAX_BYTES` only
the samples at its end are read. If the other events of a log exceed that size, its middle is left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from howdah.api.recorded_log import LAST_BYTES, MAX_BYTES, SAMPLES, LineReader, read_end
from howdah.errors import StagingError
from howdah.spec import JobReport
from howdah.spec.event_lines import read_lines, read_log
from howdah.spec.events import Event, JobFinished
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import CHUNK
from howdah.storage.segmented_log import SegmentedLog, find_log

_LINE_END = b"\n"
"""Ends a last line that was cut short."""


def recorded_events(report: JobReport) -> Iterator[Event]:
    """Yield the events of the log, without lines that can't be parsed.

    Raises:
        StagingError: there is no log.
    """
    return (event for event in recorded_log(report) if event is not None)


def recorded_log(report: JobReport) -> Iterator[Event | None]:
    """Yield the events of the log, None for a line that can't be parsed.

    Raises:
        StagingError: there is no log.
    """
    for lines in _lines(_log(report)):
        yield from read_log(line.decode("utf-8", "replace") for line in lines)


def has_end(report: JobReport) -> bool:
    """Return whether the log says how the job ended. That is its last event, so only the end of the log is read.

    Raises:
        StagingError: there is no log.
    """
    log = _log(report)
    start = max(0, log.size - LAST_BYTES)
    with log.open() as file:
        file.seek(start)
        pieces = itertools.chain(iter(lambda: file.read(CHUNK), b""), [_LINE_END])
        lines = itertools.chain.from_iterable(LineReader(start, skipping=start > 0).lines(pieces))
        events = read_lines(line.decode("utf-8", "replace") for line in lines)
        return any(isinstance(event, JobFinished) for event in events)


def _log(report: JobReport) -> SegmentedLog:
    uri = f"{report.directory}/events.jsonl"
    log = find_log(filesystem(uri, report.conf_dir), uri)
    if log is None:
        raise StagingError(f"{uri}: no such file or directory")
    return log


def _lines(log: SegmentedLog) -> Iterator[list[bytes]]:
    """Yield the lines of the log. Most of a large log is samples: without them it is small."""
    reader, bytes_read = LineReader(), 0
    for lines in reader.lines(itertools.chain(log.iter_chunks(), [_LINE_END])):
        others = [line for line in lines if not line.startswith(SAMPLES)]
        bytes_read += sum(map(len, others))
        in_middle = MAX_BYTES <= reader.offset < log.size - LAST_BYTES
        yield others if in_middle else lines
        if in_middle and bytes_read >= MAX_BYTES:
            with log.open() as file:
                yield from read_end(file, log.size, reader)[0]
            return
