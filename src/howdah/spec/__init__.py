"""Values that every program shares: the job, its tasks, the world they form, and the events of its life.

Nothing here opens a file, a socket or reads a clock; everything is a frozen dataclass that travels as JSON.
"""

from howdah.spec.job import (
    Environment,
    Input,
    JobSpec,
    Output,
    Resources,
    Role,
    Timeouts,
)
from howdah.spec.staged import DataFile, Fetch, JobReport, Plan, StagedFile, StagedInput, StagedJob
from howdah.spec.world import Container, Exit, Member, Outcome, State, TaskId, World, chief

__all__ = [
    "Container",
    "DataFile",
    "Environment",
    "Exit",
    "Fetch",
    "Input",
    "JobReport",
    "JobSpec",
    "Member",
    "Outcome",
    "Output",
    "Plan",
    "Resources",
    "Role",
    "StagedFile",
    "StagedInput",
    "StagedJob",
    "State",
    "TaskId",
    "Timeouts",
    "World",
    "chief",
]
