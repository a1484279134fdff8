"""The operations of `howdah.Client` on jobs, wherever they are: `LocalJobs` finds them through the engines configured
on this machine, `RemoteJobs` through the server at an address."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from howdah.api.curve_schemas import Stacks
from howdah.client.api_client import ApiClient
from howdah.spec import JobReport, JobSpec, TaskId
from howdah.spec.view import JobView

ALL_OUTPUTS = -1
"""The `output` of a request for snapshots of all outputs."""


class BegunSnapshot(NamedTuple):
    """A snapshot that has begun."""

    output: int
    """The output's place in the job's list."""
    number: int
    """The number of the snapshot in the job."""


class JobsApi(ABC):
    """The calls of `howdah.Client`, whose docstrings describe them."""

    @abstractmethod
    def submit(
        self, job: JobSpec | Path | str, base_directory: Path, sets: Mapping[str, object], overwrite: bool
    ) -> str:
        """Submit a job and return its id."""

    @abstractmethod
    def jobs(self, filters: Mapping[str, Any]) -> list[JobReport]:
        """Return the jobs that match `filters`, the newest first."""

    @abstractmethod
    def job(self, job_id: str) -> JobView:
        """Return the view of a job as it is now."""

    @abstractmethod
    def views(self, job_id: str) -> Iterator[JobView]:
        """Yield the view of a job about once a second, changed or not, until the job has ended. It is always the same
        object."""

    @abstractmethod
    def logs(self, job_id: str, task: TaskId, stream: str) -> Iterator[str]:
        """Yield the output of a task so far, in pieces. If the job has no such task, NotFound is raised when the pieces
        are read."""

    @abstractmethod
    def call(self, job_id: str, path: str, query: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the JSON of the API call `jobs/ID/path`."""

    @abstractmethod
    def save(self, job_id: str, output: int) -> list[BegunSnapshot]:
        """Begin a snapshot of an output, or of ALL_OUTPUTS."""

    @abstractmethod
    def stacks(self, job_id: str, task: str, native: bool) -> Stacks:
        """Return the stacks of the running programs."""

    @abstractmethod
    def tensorboard(self, job_id: str, idle_s: float) -> str:
        """Start the job's TensorBoard if it does not run, and return its address once it is open."""

    @abstractmethod
    def end_tensorboard(self, job_id: str) -> None:
        """End the job's TensorBoard if it runs."""

    @abstractmethod
    def cancel(self, job_id: str) -> None:
        """Cancel a job; nothing happens when it has ended."""

    @abstractmethod
    def history(self) -> ApiClient:
        """Return the history server that answers calls about many jobs.

        Raises:
            NotFound: no history server is known.
        """
