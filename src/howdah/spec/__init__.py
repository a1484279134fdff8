"""Values that every program shares: the job, its tasks, the world they form, and the events of a job.

Nothing here opens a file or a socket, or reads a clock; values are frozen dataclasses that travel as JSON.
"""

from howdah.spec.job import (
    Board,
    Checkpoint,
    Deadline,
    Environment,
    Input,
    JobSpec,
    Master,
    Output,
    Placement,
    Preemption,
    Preflight,
    Resources,
    Role,
    Save,
    Timeouts,
)
from howdah.spec.staged import DataFile, Feed, Fetch, JobReport, Plan, Split, StagedFile, StagedInput, StagedJob
from howdah.spec.task import Container, Exit, Member, Outcome, State, TaskId, World, chief

__all__ = [
    "Board",
    "Checkpoint",
    "Container",
    "DataFile",
    "Deadline",
    "Environment",
    "Exit",
    "Feed",
    "Fetch",
    "Input",
    "JobReport",
    "JobSpec",
    "Master",
    "Member",
    "Outcome",
    "Output",
    "Placement",
    "Plan",
    "Preemption",
    "Preflight",
    "Resources",
    "Role",
    "Save",
    "Split",
    "StagedFile",
    "StagedInput",
    "StagedJob",
    "State",
    "TaskId",
    "Timeouts",
    "World",
    "chief",
]
