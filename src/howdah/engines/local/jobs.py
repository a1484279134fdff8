"""A job of this machine: its directory, and its position in the queue or the ledger (howdah.supervisor)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from howdah.engines.local.resource_ledger import explain_shortage
from howdah.spec import JobReport, StagedJob, State, uris
from howdah.spec.codec import decode, is_well_typed
from howdah.spec.message import message
from howdah.spec.values import dataclass
from howdah.supervisor.state import SUBMITTED, MachineState, StateFileDamaged, WaitingJob

if TYPE_CHECKING:
    from howdah.spec.events import Event
    from howdah.spec.view import JobView

_NO_BEGINNING = "its event log is damaged: its beginning cannot be read"


class JobPositions:
    """The position of each job of one machine at one moment: in the queue, in the ledger, or in neither.

    Raises:
        StateFileDamaged: the ledger cannot be read.
    """

    def __init__(self, state: MachineState) -> None:
        self.state = state
        # In the order in which a job moves, so that none is in neither while it waits or runs.
        self.queue = state.waiting()
        self.entries = state.entries()
        self._queue_numbers = {job.job_id: number for number, job in enumerate(self.queue)}

    @property
    def any_open(self) -> bool:
        """Return whether a job waits or runs."""
        return bool(self.queue) or bool(self.entries)

    def waits(self, job_id: str) -> bool:
        """Return whether the job is in the queue."""
        return job_id in self._queue_numbers and job_id not in self.entries

    def waiting_reason(self, job_id: str) -> str:
        """Return why a job is in the queue; "" if it is not there."""
        if not self.waits(job_id):
            return ""
        number = self._queue_numbers[job_id]
        if number:
            first = self.queue[0].job_id
            template = "number {number} in this machine's queue, in which {job} is the first"
            return message(template, number=number + 1, job=first)
        return self._first_waits(self.queue[0])

    def _first_waits(self, job: WaitingJob) -> str:
        try:
            wants, machine = self.state.demand(job)
        except (FileNotFoundError, StateFileDamaged):
            return ""
        return explain_shortage(self.entries, wants, machine, with_promised=True)


@dataclass(frozen=True)
class JobDirectory:
    """The directory of one job."""

    path: Path
    """`<home>/jobs/<id>`."""

    @property
    def id(self) -> str:
        """Return the job's id."""
        return self.path.name

    @property
    def host(self) -> str:
        """Return the machine on which the job was submitted; "" for a job of an earlier version."""
        return str(self._json(SUBMITTED).get("host", ""))

    def view(self) -> JobView:
        """Return what the event log says of the job so far."""
        from howdah.spec.event_lines import read_log  # a submission does without
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

    def report(self, positions: JobPositions) -> JobReport:
        """Return the job's report; `positions` were read before.

        A job that is neither in the queue nor in the ledger has ended. If its log does not say how, it has failed.

        Raises:
            OSError: its files cannot be read.
        """
        entry, waits = positions.entries.get(self.id), positions.waiting_reason(self.id)
        view, staged = self.view(), self.staged()
        spec = staged.job if staged is not None else view.job
        state, finished = view.state, view.finished
        diagnostics = view.outcome.diagnostics if view.outcome is not None else waits
        if view.outcome is not None and not view.id:
            diagnostics = "; ".join(filter(None, (diagnostics, _NO_BEGINNING)))
        if not state.ended and entry is not None and entry.get("end", {}).get("state"):
            end = entry["end"]
            state, diagnostics, finished = State(end["state"]), end["diagnostics"], end["time"]
        elif not state.ended and entry is None and not positions.waits(self.id):
            state, diagnostics, finished = State.FAILED, self._why_no_end(view), self._last_change()
        return JobReport(
            id=self.id,
            name=spec.name if spec is not None else "",
            state=state,
            engine="local",
            user=staged.user if staged is not None else view.user,
            queue=spec.queue if spec is not None else "",
            submitted=self._submitted(),
            started=view.running,
            finished=finished,
            progress=view.progress,
            diagnostics=diagnostics,
            master=str(self._json("master.json").get("url", "")) if entry is not None and not state.ended else "",
            tracking_url="",
            directory=uris.of_local(self.path),
        )

    def append(self, event: Event) -> None:
        """Write an event in place of a master that was killed."""
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
            numbered = [attempt for attempt in task.iterdir() if attempt.name.isdigit()]
            for attempt in sorted(numbered, key=_natural_order):
                yield task.name, int(attempt.name), attempt

    def _why_no_end(self, view: JobView) -> str:
        log = self.path / "events.jsonl"
        if not log.exists():
            return "it has no event log"
        if not view.id and log.stat().st_size:
            return "its event log is damaged: nothing in it can be read"
        return "its event log does not say how it ended: the log is damaged, or all of the job was killed"

    def _submitted(self) -> float:
        """Return when the job was submitted; jobs of earlier versions noted that time in `master.pid`."""
        for name in (SUBMITTED, "master.pid"):
            moment = self._json(name).get("submitted", 0.0)
            if isinstance(moment, (int, float)) and moment:
                return float(moment)
        return self.path.stat().st_ctime

    def _last_change(self) -> float:
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


def unreadable_report(directory: Path, error: OSError) -> JobReport:
    """Return the report of a job whose files cannot be read."""
    reason = f"{error.filename or directory}: {error.strerror or error}"
    diagnostics = message("its directory cannot be read: {reason}", reason=reason)
    uri = uris.of_local(directory)
    return JobReport(directory.name, "", State.FAILED, "local", diagnostics=diagnostics, directory=uri)


def _natural_order(path: Path) -> tuple[str, int]:
    role, _, number = path.name.rpartition("-")
    return role, int(number) if number.isdigit() else 0


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, from its first byte on."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(content)
