"""Prints when a job on the sandbox reached each step, from its event log and the daemons' logs."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from howdah.spec.events import Allocated, Ended, Event, Greeted, JobStarted, Started, WorldFormed

_STAMP = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) ")
_MASTER, _WORKERS = r"_01_000001", r"_01_00000[2-9]"
_DAEMONS = (
    ("master allocated", "rm.log", rf"{_MASTER} Container Transitioned from NEW to ALLOCATED"),
    ("master on its node", "nm*.log", rf"{_MASTER} transitioned from NEW to LOCALIZING"),
    ("master's files in place", "nm*.log", rf"{_MASTER} transitioned from LOCALIZING to SCHEDULED"),
    ("master's process starts", "nm*.log", rf"{_MASTER} transitioned from SCHEDULED to RUNNING"),
    ("last worker on its node", "nm*.log", rf"{_WORKERS} transitioned from NEW to LOCALIZING"),
    ("last worker's files in place", "nm*.log", rf"{_WORKERS} transitioned from LOCALIZING to SCHEDULED"),
    ("last worker's executor starts", "nm*.log", rf"{_WORKERS} transitioned from SCHEDULED to RUNNING"),
)
_EVENTS = (
    ("master registered", JobStarted),
    ("last container granted", Allocated),
    ("last executor greeted", Greeted),
    ("gang formed", WorldFormed),
    ("last program started", Started),
    ("last program ended", Ended),
)


def milestones(
    application: str, logs: Path, events: Sequence[Event], started: float, submitted: float
) -> dict[str, float]:
    """Return the seconds since `started` of each step, in order."""
    number = application.removeprefix("application_")
    moments = {"RM submit time": submitted}
    for name, files, pattern in _DAEMONS:
        times = [time for file in logs.glob(files) for time in _times(file, f"container_{number}{pattern}")]
        moments |= {name: max(times)} if times else {}
    for name, kind in _EVENTS:
        times = [event.time for event in events if isinstance(event, kind)]
        moments |= {name: max(times)} if times else {}
    return {name: time - started for name, time in sorted(moments.items(), key=lambda moment: moment[1])}


def _times(file: Path, pattern: str) -> Iterator[float]:
    wanted = re.compile(pattern)
    for line in file.read_text(errors="replace").splitlines():
        stamp = _STAMP.match(line)
        if stamp and wanted.search(line):
            yield datetime.datetime.strptime(stamp[1], "%Y-%m-%d %H:%M:%S,%f").timestamp()
