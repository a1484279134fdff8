"""JAX on several processes: `jax.distributed.initialize()` without arguments finds the others.

JAX reads the coordinator's address from JAX_COORDINATOR_ADDRESS and nothing else of its own. How many processes there
are and which one this is it only takes from launchers that it knows; of those, Open MPI is told by the fewest
variables (jax._src.clusters.ompi_cluster, the same from 0.4 to 0.10).
"""

from __future__ import annotations

import dataclasses

from howdah.frameworks.group import SIDE_ROLES, group, grouped
from howdah.spec import JobSpec, Role, TaskId, World


class Jax:
    """One task is one process; rank 0 runs the coordinator on its main port."""

    # The coordinator is a gRPC server, which sets SO_REUSEPORT.
    hold_ports = True

    def expand(self, job: JobSpec) -> JobSpec:
        """Puts the roles in the order of their ranks, and lets a process see all of its task's GPUs."""
        roles = {name: _with_devices(role) for name, role in job.roles.items()}
        return grouped(dataclasses.replace(job, roles=roles))

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """A side role learns where the coordinator is, but no rank: it is no part of the computation."""
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
    """JAX takes the local rank, always 0 here, for the one GPU of a process, unless it is told of more."""
    if role.resources.gpus < 2 or "JAX_LOCAL_DEVICE_IDS" in role.env:
        return role
    devices = ",".join(str(number) for number in range(role.resources.gpus))
    return dataclasses.replace(role, env={**role.env, "JAX_LOCAL_DEVICE_IDS": devices})
