"""Tests what a job says that waits in this machine's queue."""

from __future__ import annotations

from pathlib import Path

from howdah.engines.local.jobs import JobPositions
from howdah.supervisor.state import MachineState, WaitingJob


def test_a_waiting_job_names_up_to_three_of_those_before_it(tmp_path: Path) -> None:
    state = MachineState.for_home(str(tmp_path))
    state.make()
    for ticket, job in enumerate("abcde", 1):
        (Path(state.queue_directory) / WaitingJob(ticket, f"job-{job}").file_name).write_text("{}")
    positions = JobPositions(state)
    assert [str(positions.waiting_reason(f"job-{job}")) for job in "bcde"] == [
        "number 2 in this machine's queue, behind job-a",
        "number 3 in this machine's queue, behind job-a, job-b",
        "number 4 in this machine's queue, behind job-a, job-b, job-c",
        "number 5 in this machine's queue, behind job-a, job-b, job-c +1",
    ]
