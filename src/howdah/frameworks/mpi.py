"""MPI: one task is one rank, started by Open MPI's own mpirun, which reaches the tasks through howdah and not by ssh.

A task's container runs the script `mpi_task`, followed by the user's command. To Open MPI each task is a node of its
own, even where several share a machine: each has a container, with its own memory, files and log.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence

from howdah.frameworks import GANG_KEY
from howdah.frameworks.group import group, grouped
from howdah.spec import JobSpec, TaskId, World
from howdah.spec.task import SIDE_ROLES

PROGRAM, HOSTS = "howdah-mpi.py", "howdah-mpi-hosts"


class Mpi:
    """Runs MPI programs in any language: MPI_Init finds the other ranks."""

    # The listener for the daemon's command line sets SO_REUSEADDR.
    hold_ports = True
    key_variable = GANG_KEY

    def expand(self, job: JobSpec) -> JobSpec:
        """Put the roles in the order of their ranks."""
        return grouped(job)

    def command(self, task: TaskId, command: str | tuple[str, ...]) -> str | tuple[str, ...]:
        """Wrap the user's command, which a rank runs. A side role is not a rank, and runs its own command."""
        if task.role in SIDE_ROLES:
            return command
        words: Sequence[str] = ("/bin/bash", "-c", command) if isinstance(command, str) else command
        return ("python3", "-I", PROGRAM, "task", *words)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the task's name and address; Open MPI itself sets the variables of a rank."""
        if task.role in SIDE_ROLES:
            return {}
        return {"HOWDAH_MPI_NAME": task.slug, "HOWDAH_MPI_ADDRESS": world.member(task).numeric}

    def files(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the script for each rank, and for the first rank mpirun's list of hosts, with addresses in
        comments."""
        if task.role in SIDE_ROLES:
            return {}
        text = pkgutil.get_data(__package__, "mpi_task.py")
        assert text is not None
        files = {PROGRAM: text.decode()}
        if world.rank(task) == 0:
            lines = (f"{each.task.slug} slots=1 # {each.numeric} {each.ports['main']}\n" for each in group(world))
            files[HOSTS] = "".join(lines)
        return files
