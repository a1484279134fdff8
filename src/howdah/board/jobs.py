"""Where the event files of all jobs are: each job's own, below its name, the newest jobs first."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping

from howdah.data import uris
from howdah.data.fs import FileSystem, filesystem
from howdah.errors import HowdahError
from howdah.spec.events import read_lines
from howdah.spec.view import JobView, fold
from howdah.web import places

AGAIN_S = 30.0
LONGEST_LOG = 32 << 20


class Jobs:
    """Places of the `last` jobs below engine homes (`<home>/jobs/<id>`); looked for again from time to time."""

    def __init__(self, homes: list[str], conf_dir: str = "", last: int = 200) -> None:
        self._homes = [(home, filesystem(home, conf_dir)) for home in homes]
        self._last = last
        self._known: dict[str, tuple[tuple[int, int], dict[str, str]]] = {}
        self._found: dict[str, str] = {}
        self._looked_at = -AGAIN_S

    def __call__(self) -> Mapping[str, str]:
        if time.monotonic() - self._looked_at >= AGAIN_S:
            self._found = self._look()
            self._looked_at = time.monotonic()
        return self._found

    def _look(self) -> dict[str, str]:
        directories = []
        for home, fs in self._homes:
            with contextlib.suppress(HowdahError):  # a home in which no job was ever
                directories += [(entry.modified_ms, entry.uri, fs) for entry in fs.children(uris.join(home, "jobs"))]
        directories.sort(key=lambda each: each[0], reverse=True)
        found: dict[str, str] = {}
        for _, directory, fs in directories[: self._last]:
            with contextlib.suppress(HowdahError):
                found.update(self._of(directory, fs))
        return found

    def _of(self, directory: str, fs: FileSystem) -> dict[str, str]:
        log = uris.join(directory, "events.jsonl")
        entry = fs.stat(log)
        if entry is None or entry.size > LONGEST_LOG:
            return {}
        stamp = (entry.size, entry.modified_ms)
        if self._known.get(log, ((), {}))[0] != stamp:
            lines = fs.read_bytes(log).decode("utf-8", "replace").splitlines()
            self._known[log] = (stamp, of_job(fold(read_lines(line for line in lines if line))))
        return self._known[log][1]


def of_job(view: JobView) -> dict[str, str]:
    """One job's places, below its name and id."""
    name = re.sub(r"[^\w.-]+", "_", view.job.name if view.job else "")[:60]
    return {f"{name}_{view.id}{'/' if prefix else ''}{prefix}": uri for prefix, uri in places.of(view)}
