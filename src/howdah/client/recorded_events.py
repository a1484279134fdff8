"""The events of a job, read from its event log as far as that is written.

The rule: a log of any size is read in bounded memory; of a larger one than `MAX_BYTES` the middle is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from howdah.api.recorded_log import MAX_BYTES, LineReader, read_end
from howdah.errors import StagingError
from howdah.spec import JobReport
from howdah.spec.event_lines import read_log
from howdah.spec.events import Event
from howdah.storage.factory import filesystem
from howdah.storage.segmented_log import SegmentedLog, find_log


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
    uri = f"{report.directory}/events.jsonl"
    log = find_log(filesystem(uri, report.conf_dir), uri)
    if log is None:
        raise StagingError(f"{uri}: no such file or directory")
    for lines in _lines(log):
        yield from read_log(line.decode("utf-8", "replace") for line in lines)


def _lines(log: SegmentedLog) -> Iterator[list[bytes]]:
    reader = LineReader()
    yield from reader.lines(_pieces(log, reader))
    if MAX_BYTES <= reader.offset < log.size:
        with log.open() as file:
            yield from read_end(file, log.size, reader)[0]


def _pieces(log: SegmentedLog, reader: LineReader) -> Iterator[bytes]:
    for piece in log.iter_chunks():
        if reader.offset >= MAX_BYTES:
            return
        yield piece
    yield b"\n"  # the last line may have been cut short
