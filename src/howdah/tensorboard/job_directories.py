"""Finds the directories of the event files of all jobs: each job's below its name, the newest jobs first."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable, Mapping

from howdah.errors import HowdahError
from howdah.eventfiles import locations
from howdah.spec import uris
from howdah.spec.event_lines import read_lines
from howdah.spec.events import JobStarted
from howdah.spec.fold import fold_recorded
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import FileSystem
from howdah.storage.segmented_log import find_log

REFRESH_S = 30.0
MAX_LOG, MAX_FIRST_LINE = 32 << 20, 4 << 20
MAX_SEARCHED = 10_000
"""The most jobs that are searched for a match."""
Report = Callable[[str], None]


@dataclass(frozen=True)
class JobSelection:
    """Selects jobs."""

    users: tuple[str, ...] = ()
    """The users whose jobs are selected; all users if none is named."""
    name: str = ""
    """A part of the jobs' names."""
    last: int = 200
    """How many jobs are selected: the newest."""

    def matches(self, started: JobStarted) -> bool:
        """Return whether a job matches, by the rule of the history's list."""
        has_name = self.name.casefold() in started.job.name.casefold()
        return has_name and (not self.users or started.user in self.users)


class JobDirectories:
    """Finds the event directories of the selected jobs below engine homes (`<home>/jobs/<id>`; `*` stands for any name
    in a home), again from time to time. `report` is called with a sentence when more jobs match than are shown."""

    def __init__(
        self, homes: list[str], conf_dir: str = "", selected: JobSelection | None = None, report: Report | None = None
    ) -> None:
        self._homes = [(home, filesystem(home.partition("*")[0], conf_dir)) for home in homes]
        self._filter, self._report = selected or JobSelection(), report or _print_error
        self._matches: dict[str, bool] = {}
        self._known: dict[str, tuple[tuple[int, int], dict[str, str]]] = {}
        self._found: dict[str, str] = {}
        self._refreshed_at, self._reported = -REFRESH_S, ""

    def __call__(self) -> Mapping[str, str]:
        if time.monotonic() - self._refreshed_at >= REFRESH_S:
            self._found = self._find_directories()
            self._refreshed_at = time.monotonic()
        return self._found

    def _find_directories(self) -> dict[str, str]:
        found: dict[str, str] = {}
        directories, shown = self._directories(), 0
        for number, (directory, fs) in enumerate(directories):
            if shown == self._filter.last or number == MAX_SEARCHED:
                self._report_left_out(shown, len(directories) - number)
                break
            with contextlib.suppress(HowdahError):  # another user's, perhaps, or gone
                if self._is_selected(directory, fs):
                    found.update(self._event_directories(directory, fs))
                    shown += 1
        return found

    def _report_left_out(self, shown: int, left: int) -> None:
        text = f"the newest {shown} jobs that fit are shown, {left} older ones not looked at: --last, --user, --name"
        if text != self._reported:
            self._reported = text
            self._report(text)

    def _directories(self) -> list[tuple[str, FileSystem]]:
        """Return the directories of all jobs, the newest first."""
        found: list[tuple[int, str, FileSystem]] = []
        for pattern, fs in self._homes:
            for home in _matching_homes(pattern, fs):
                with contextlib.suppress(HowdahError):  # a home in which no job was ever, or that may not be read
                    entries = fs.children(uris.join(home, "jobs"))
                    found += [(entry.modified_ms, entry.uri, fs) for entry in entries]
        return [(uri, fs) for _, uri, fs in sorted(found, key=lambda each: each[0], reverse=True)]

    def _is_selected(self, directory: str, fs: FileSystem) -> bool:
        """Return whether a job is selected, by its log's first line, which never changes."""
        if not self._filter.users and not self._filter.name:
            return True
        if directory not in self._matches:
            with fs.open_read(uris.join(directory, "events.jsonl")) as log:
                head = log.read(MAX_FIRST_LINE)
            line, end, _ = head.partition(b"\n")
            if not end:
                return False  # not written yet
            first = next(read_lines([line.decode("utf-8", "replace")]), None)
            self._matches[directory] = isinstance(first, JobStarted) and self._filter.matches(first)
        return self._matches[directory]

    def _event_directories(self, directory: str, fs: FileSystem) -> dict[str, str]:
        log = uris.join(directory, "events.jsonl")
        found = find_log(fs, log)
        if found is None or found.size > MAX_LOG:
            return {}
        stamp = (found.size, found.modified_ms)
        if self._known.get(log, ((), {}))[0] != stamp:
            lines = found.read().decode("utf-8", "replace").splitlines()
            view = fold_recorded(read_lines(line for line in lines if line))
            name = re.sub(r"[^\w.-]+", "_", view.job.name if view.job else "")[:60]
            self._known[log] = (
                stamp,
                {
                    f"{name}_{view.id}{'/' if prefix else ''}{prefix}": uri
                    for prefix, uri in locations.event_file_locations(view)
                },
            )
        return self._known[log][1]


def _matching_homes(pattern: str, fs: FileSystem) -> list[str]:
    """Return the homes of a pattern: `hdfs://ns/user/*/.howdah` matches the home of each user."""
    above, star, below = pattern.partition("*")
    if not star:
        return [pattern]
    with contextlib.suppress(HowdahError):
        return [uris.join(each.uri, below.strip("/")) for each in fs.children(above.rstrip("/")) if each.is_dir]
    return []


def _print_error(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
