"""Any program: it gets the HOWDAH_* variables and nothing else, and the job waits for every task."""

from __future__ import annotations

from howdah.frameworks import decided
from howdah.spec import JobSpec, TaskId, World


class Generic:
    """No assumptions: its ports are let go before the program starts, since nothing is known of how it binds."""

    hold_ports = False

    def expand(self, job: JobSpec) -> JobSpec:
        return decided(job)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        return {}
