"""Runs any program with the HOWDAH_* variables and nothing else; the job waits for every task."""

from __future__ import annotations

from howdah.frameworks import with_failure_defaults
from howdah.spec import JobSpec, TaskId, World


class Generic:
    """Assumes nothing: ports are released before the program starts, because it may bind them in any way."""

    hold_ports = False

    def expand(self, job: JobSpec) -> JobSpec:
        return with_failure_defaults(job)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        return {}
