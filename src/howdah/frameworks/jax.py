"""JAX on several processes: `jax.distributed.initialize()` without arguments finds the others.

JAX reads the coordinator's address from JAX_COORDINATOR_ADDRESS and nothing else of its own. The number of processes
and the own rank it takes only from launchers that it knows; of those, Open MPI needs the fewest variables
(jax._src.clusters.ompi_cluster, the same from 0.4 to 0.10).
"""

from __future__ import annotations

import dataclasses

from howdah.frameworks.group import SIDE_ROLES, group, grouped
from howdah.spec import JobSpec, Role, TaskId, World


class Jax:
    """Runs one process in each task; rank 0 runs the coordinator on its main port."""

    # The coordinator is a gRPC server, which sets SO_REUSEPORT.
    hold_ports = True

    def expand(self, job: JobSpec) -> JobSpec:
        """Put the roles in the order of their ranks, and let a process see all of its task's GPUs."""
        roles = {name: _with_devices(role) for name, role in job.roles.items()}
        return grouped(dataclasses.replace(job, roles=roles))

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Set the coordinator and the rank; a side role gets no rank, because it takes no part in the computation."""
        members = group(world)
        if not members:
            return {}
        meeting = {"JAX_COORDINATOR_ADDRESS": members[0].address, "JAX_NUM_PROCESSES": str(len(members))}
        if task.role in SIDE_ROLES:
            return meeting
        rank = str(world.rank(task))
        return {
            **meeting,
            "JAX_PROCESS_ID": rank,
            "OMPI_MCA_orte_hnp_uri": "howdah",
            "OMPI_COMM_WORLD_SIZE": str(len(members)),
            "OMPI_COMM_WORLD_RANK": rank,
            "OMPI_COMM_WORLD_LOCAL_RANK": "0",
        }


def _with_devices(role: Role) -> Role:
    """Name all GPUs: without that JAX uses only the GPU of the local rank, which is always 0 here."""
    if role.resources.gpus < 2 or "JAX_LOCAL_DEVICE_IDS" in role.env:
        return role
    devices = ",".join(str(number) for number in range(role.resources.gpus))
    return dataclasses.replace(role, env={**role.env, "JAX_LOCAL_DEVICE_IDS": devices})
