"""Runs TensorBoard as a job of its own (`howdah tensorboard --on yarn`); the job's key makes the link to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import howdah
from howdah.frameworks import GANG_KEY, with_failure_defaults
from howdah.spec import JobSpec, TaskId, World
from howdah.spec.staged import IMPORT_PATH
from howdah.wire.tensorboard_command import READY, argv


class TensorBoardFramework:
    """Starts a TensorBoard that only the job's gang key opens."""

    hold_ports = False
    key_variable = GANG_KEY

    def expand(self, job: JobSpec) -> JobSpec:
        """Replace each command that is a line by howdah's TensorBoard, which runs until the job is cancelled."""
        package = Path(howdah.__file__).parent
        request = {"host": "0.0.0.0", "idle_s": 0, "title": job.name}  # noqa: S104 - a token opens it
        start = argv("python3", (IMPORT_PATH, str(package.parent)), request)
        roles = {
            name: replace(role, command=start, yields={**role.yields, "AT": READY})
            if isinstance(role.command, str)
            else role
            for name, role in job.roles.items()
        }
        environment = job.environment
        if not (environment.given or environment.image):
            environment = replace(environment, requirements=str(package / "client" / "tensorboard.txt"))
        return with_failure_defaults(replace(job, roles=roles, environment=environment))

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        return {}
