"""The reports of this machine's jobs, and their positions in the queue or the ledger (howdah.supervisor)."""

from __future__ import annotations

import errno
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from howdah.engines.local.resource_ledger import explain_shortage
from howdah.spec import JobReport, State, uris
from howdah.spec.message import message
from howdah.supervisor.state import MachineState, StateFileDamaged, WaitingJob

if TYPE_CHECKING:
    from howdah.engines.job_directory import JobDirectory
    from howdah.spec.view import JobView

SHOWN_BEFORE = 3
"""The most jobs before a waiting job that are named; they are the first ones."""
NO_MASTER_S = 4.0
"""Seconds for which a job may have no master although no other job goes first. After them the disk is checked, because
a full disk may prevent the start."""
_NO_BEGINNING = "its event log is damaged: its beginning cannot be read"


class JobPositions:
    """The position of each job of one machine at one moment: in the queue, in the ledger, or in neither.

    Raises:
        StateFileDamaged: the ledger cannot be read.
    """

    def __init__(self, state: MachineState) -> None:
        self.state = state
        # In the order in which a job moves, so that no job that waits or runs is missed.
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
            named = ", ".join(job.job_id for job in self.queue[: min(number, SHOWN_BEFORE)])
            more = f" +{number - SHOWN_BEFORE}" if number > SHOWN_BEFORE else ""
            template = "number {number} in this machine's queue, behind {jobs}"
            return message(template, number=number + 1, jobs=f"{named}{more}")
        return self._first_waits(self.queue[0])

    @cached_property
    def no_room(self) -> str:
        """Return the message that there is no room for the jobs' state on its disk, so that no job can be started or
        cancelled; "" if there is room."""
        try:
            self.state.check_room()
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                template = "no room in {directory}: {reason}; the job goes on when there is some"
                return message(template, directory=self.state.directory, reason=error.strerror)
        return ""

    def _first_waits(self, job: WaitingJob) -> str:
        try:
            wants, machine = self.state.demand(job)
        except (FileNotFoundError, StateFileDamaged):
            return ""
        return explain_shortage(self.entries, wants, machine, with_promised=True)


def job_report(directory: JobDirectory, positions: JobPositions) -> JobReport:
    """Return the report of the job with this directory; `positions` were read before.

    A job that is neither in the queue nor in the ledger has ended. If its log does not say how, it has failed.

    Raises:
        OSError: its files cannot be read.
    """
    entry, waits = positions.entries.get(directory.id), positions.waiting_reason(directory.id)
    view, staged = directory.view(), directory.staged()
    spec = staged.job if staged is not None else view.job
    state, finished, submitted = view.state, view.finished, directory.submitted()
    is_late = state is State.PENDING and not directory.master_url() and time.time() - submitted > NO_MASTER_S
    if is_late and not waits:
        waits = positions.no_room
    diagnostics = view.outcome.diagnostics if view.outcome is not None else waits
    if view.outcome is not None and not view.id:
        diagnostics = "; ".join(filter(None, (diagnostics, _NO_BEGINNING)))
    if not state.ended and entry is not None and entry.get("end", {}).get("state"):
        end = entry["end"]
        state, diagnostics, finished = State(end["state"]), end["diagnostics"], end["time"]
    elif not state.ended and entry is None and not positions.waits(directory.id):
        state, diagnostics, finished = State.FAILED, _why_no_end(directory, view), directory.last_change()
    return JobReport(
        id=directory.id,
        name=spec.name if spec is not None else "",
        state=state,
        engine="local",
        user=staged.user if staged is not None else view.user,
        queue=spec.queue if spec is not None else "",
        submitted=submitted,
        started=view.running,
        finished=finished,
        progress=view.progress,
        diagnostics=diagnostics,
        master=directory.master_url() if entry is not None and not state.ended else "",
        tracking_url="",
        directory=uris.of_local(directory.path),
        tags=spec.tags if spec is not None else (),
    )


def _why_no_end(directory: JobDirectory, view: JobView) -> str:
    log = directory.path / "events.jsonl"
    if not log.exists():
        return "it has no event log"
    if not view.id and log.stat().st_size:
        return "its event log is damaged: nothing in it can be read"
    return "its event log does not say how it ended: the log is damaged, or all of the job was killed"


def unreadable_report(directory: Path, error: OSError) -> JobReport:
    """Return the report of a job whose files cannot be read."""
    reason = f"{error.filename or directory}: {error.strerror or error}"
    diagnostics = message("its directory cannot be read: {reason}", reason=reason)
    uri = uris.of_local(directory)
    return JobReport(directory.name, "", State.FAILED, "local", diagnostics=diagnostics, directory=uri)
