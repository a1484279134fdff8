"""The events of a job, read from its event log as far as that is written."""

from __future__ import annotations

from collections.abc import Iterator

from howdah.errors import StagingError
from howdah.spec import JobReport
from howdah.spec.event_lines import read_log
from howdah.spec.events import Event
from howdah.storage.factory import filesystem
from howdah.storage.segmented_log import find_log


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
    text = log.read().decode("utf-8", "replace")
    yield from read_log(line for line in text.splitlines() if line)
