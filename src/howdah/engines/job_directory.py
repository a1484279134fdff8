"""The directory of one job on a file system that this process sees: the job, the content of its event log, and its
logs."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from howdah.logs.store import open_log
from howdah.logs.stream_index import STREAMS, TIMES
from howdah.spec import StagedJob, TaskId
from howdah.spec.codec import decode, is_well_typed
from howdah.spec.values import dataclass
from howdah.supervisor.state import SUBMITTED

if TYPE_CHECKING:
    from howdah.spec.events import Event
    from howdah.spec.view import JobView

_PIECE = 1 << 20


@dataclass(frozen=True)
class JobDirectory:
    """Reads and writes the files in a job's directory."""

    path: Path
    """The directory of this job, `<home>/jobs/<id>`."""

    @property
    def id(self) -> str:
        """Return the job's id."""
        return self.path.name

    @property
    def host(self) -> str:
        """Return the machine on which the job was submitted; "" for a job of an earlier version."""
        return str(self._json(SUBMITTED).get("host", ""))

    @property
    def cluster(self) -> str:
        """Return the cluster to which the job was submitted; "" where there is only one, and for a job of an earlier
        version."""
        return str(self._json(SUBMITTED).get("cluster", ""))

    def view(self) -> JobView:
        """Return the view of the job as its event log has it so far."""
        from howdah.spec.event_lines import read_log  # a submission does not need this module
        from howdah.spec.fold import fold_recorded
        from howdah.spec.view import JobView

        try:
            with (self.path / "events.jsonl").open(encoding="utf-8", errors="replace") as lines:
                return fold_recorded(read_log(lines))
        except FileNotFoundError:
            return JobView()

    def staged(self) -> StagedJob | None:
        """Return the job as it was submitted; None if its file cannot be read."""
        try:
            staged = decode(StagedJob, json.loads(self._text("job.json")))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        return staged if is_well_typed(StagedJob, staged) else None

    def append(self, event: Event) -> None:
        """Append an event in place of a master that was killed."""
        from howdah.spec.event_lines import to_line

        log = self.path / "events.jsonl"
        with log.open("ab+") as file:
            if file.tell():  # the killed writer may have left half a line
                file.seek(-1, os.SEEK_END)
                file.write(b"" if file.read() == b"\n" else b"\n")
            file.write(to_line(event).encode())

    def attempts(self) -> Iterator[tuple[str, int, Path]]:
        """Yield (role-index, attempt, directory) of each attempt of each task, in order."""
        for task in sorted((self.path / "tasks").glob("*-*"), key=_natural_order):
            if not task.is_dir():
                continue
            numbered = [attempt for attempt in task.iterdir() if attempt.name.isdigit()]
            for attempt in sorted(numbered, key=_natural_order):
                yield task.name, int(attempt.name), attempt

    def master_url(self) -> str:
        """Return the address that the job's last master has recorded; "" if there was none."""
        return str(self._json("master.json").get("url", ""))

    def read_logs(self, task: TaskId | None, stream: str) -> Iterator[tuple[str, bytes]]:
        """Yield the logs of a task, or of all tasks and the master, as `Engine.logs` describes them."""
        names = (*STREAMS, TIMES) if stream == "*" else (stream,) if stream else STREAMS
        for slug, attempt, directory in self.attempts():
            role, _, index = slug.rpartition("-")
            heading = f"{role}:{index} attempt {attempt}"
            if task is not None and slug != task.slug:
                continue
            for name in names:
                yield from _read(directory / name, f"{heading} {name}")
            if not stream and not (directory / "stdout").exists():
                yield from _read(directory / "executor.log", f"{heading} executor")
        if task is None and not stream:
            yield from _read(self.path / "master.log", "master")

    def submitted(self) -> float:
        """Return when the job was submitted; jobs of earlier versions noted that time in `master.pid`."""
        for name in (SUBMITTED, "master.pid"):
            moment = self._json(name).get("submitted", 0.0)
            if isinstance(moment, (int, float)) and moment:
                return float(moment)
        return self.path.stat().st_ctime

    def last_change(self) -> float:
        """Return when the job's files changed last."""
        names = ("events.jsonl", "master.log", SUBMITTED)
        times = [path.stat().st_mtime for name in names if (path := self.path / name).exists()]
        return max(times, default=self.path.stat().st_ctime)

    def _json(self, name: str) -> dict[str, Any]:
        try:
            found = json.loads(self._text(name) or "{}")
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def _text(self, name: str) -> str:
        try:
            return (self.path / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""


def _read(path: Path, heading: str) -> Iterator[tuple[str, bytes]]:
    with contextlib.suppress(FileNotFoundError), open_log(path) as file:
        while piece := file.read(_PIECE):
            yield heading, piece


def _natural_order(path: Path) -> tuple[str, int]:
    role, _, number = path.name.rpartition("-")
    return role, int(number) if number.isdigit() else 0


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, from its first byte on."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(content)
