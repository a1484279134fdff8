"""Where the event files of all jobs are: each job's own, below its name, the newest jobs first."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from howdah.errors import HowdahError
from howdah.eventfiles import locations
from howdah.spec import uris
from howdah.spec.event_lines import read_lines
from howdah.spec.events import JobStarted
from howdah.spec.fold import fold_recorded
from howdah.spec.view import JobView
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import FileSystem

AGAIN_S = 30.0
LONGEST_LOG, LONGEST_FIRST = 32 << 20, 4 << 20
MOST_LOOKED = 10_000
"""Jobs that are looked at for those that fit."""


@dataclass(frozen=True)
class Chosen:
    """Which jobs: the newest `last` of these `users` (all of them if none is named) with `name` in their name."""

    users: tuple[str, ...] = ()
    name: str = ""
    last: int = 200

    def fits(self, started: JobStarted) -> bool:
        """As the history's list has it."""
        named = self.name.casefold() in started.job.name.casefold()
        return named and (not self.users or started.user in self.users)


class JobDirectories:
    """Places of the chosen jobs below engine homes (`<home>/jobs/<id>`; `*` stands for any name in a home), looked for
    again from time to time. `told` gets a sentence when there are more than are shown."""

    def __init__(
        self, homes: list[str], conf_dir: str = "", chosen: Chosen | None = None, told: Callable[[str], None] = print
    ) -> None:
        self._homes = [(home, filesystem(home.partition("*")[0], conf_dir)) for home in homes]
        self._chosen, self._told = chosen or Chosen(), told
        self._fits: dict[str, bool] = {}
        self._known: dict[str, tuple[tuple[int, int], dict[str, str]]] = {}
        self._found: dict[str, str] = {}
        self._looked_at, self._said = -AGAIN_S, ""

    def __call__(self) -> Mapping[str, str]:
        if time.monotonic() - self._looked_at >= AGAIN_S:
            self._found = self._find_directories()
            self._looked_at = time.monotonic()
        return self._found

    def _find_directories(self) -> dict[str, str]:
        found: dict[str, str] = {}
        directories, shown = self._directories(), 0
        for number, (directory, fs) in enumerate(directories):
            if shown == self._chosen.last or number == MOST_LOOKED:
                self._tell(shown, len(directories) - number)
                break
            with contextlib.suppress(HowdahError):  # another user's, perhaps, or gone
                if self._wanted(directory, fs):
                    found.update(self._event_directories(directory, fs))
                    shown += 1
        return found

    def _tell(self, shown: int, left: int) -> None:
        said = f"the newest {shown} jobs that fit are shown, {left} older ones not looked at: --last, --user, --name"
        if said != self._said:
            self._said = said
            self._told(said)

    def _directories(self) -> list[tuple[str, FileSystem]]:
        """Of all jobs, the newest first."""
        found: list[tuple[int, str, FileSystem]] = []
        for pattern, fs in self._homes:
            for home in _meant(pattern, fs):
                with contextlib.suppress(HowdahError):  # a home in which no job was ever, or that may not be read
                    entries = fs.children(uris.join(home, "jobs"))
                    found += [(entry.modified_ms, entry.uri, fs) for entry in entries]
        return [(uri, fs) for _, uri, fs in sorted(found, key=lambda each: each[0], reverse=True)]

    def _wanted(self, directory: str, fs: FileSystem) -> bool:
        """By the log's first line, which stays as it is."""
        if not self._chosen.users and not self._chosen.name:
            return True
        if directory not in self._fits:
            with fs.open_read(uris.join(directory, "events.jsonl")) as log:
                head = log.read(LONGEST_FIRST)
            line, end, _ = head.partition(b"\n")
            if not end:
                return False  # not written yet
            first = next(read_lines([line.decode("utf-8", "replace")]), None)
            self._fits[directory] = isinstance(first, JobStarted) and self._chosen.fits(first)
        return self._fits[directory]

    def _event_directories(self, directory: str, fs: FileSystem) -> dict[str, str]:
        log = uris.join(directory, "events.jsonl")
        entry = fs.stat(log)
        if entry is None or entry.size > LONGEST_LOG:
            return {}
        stamp = (entry.size, entry.modified_ms)
        if self._known.get(log, ((), {}))[0] != stamp:
            lines = fs.read_bytes(log).decode("utf-8", "replace").splitlines()
            self._known[log] = (stamp, of_job(fold_recorded(read_lines(line for line in lines if line))))
        return self._known[log][1]


def _meant(pattern: str, fs: FileSystem) -> list[str]:
    """The homes: `hdfs://ns/user/*/.howdah` is each user's."""
    above, star, below = pattern.partition("*")
    if not star:
        return [pattern]
    with contextlib.suppress(HowdahError):
        return [uris.join(each.uri, below.strip("/")) for each in fs.children(above.rstrip("/")) if each.is_dir]
    return []


def of_job(view: JobView) -> dict[str, str]:
    """One job's places, below its name and id."""
    name = re.sub(r"[^\w.-]+", "_", view.job.name if view.job else "")[:60]
    return {
        f"{name}_{view.id}{'/' if prefix else ''}{prefix}": uri for prefix, uri in locations.event_file_locations(view)
    }
