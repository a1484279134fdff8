"""JAX on several processes: `jax.distributed.initialize()` without arguments finds the others.

JAX reads the coordinator's address from JAX_COORDINATOR_ADDRESS, and no other variable of its own. It takes the number
of processes and its rank only from the variables of launchers that it knows; of those, Open MPI needs the fewest
variables (jax._src.clusters.ompi_cluster, the same from 0.4 to 0.10).
"""

from __future__ import annotations

from howdah.frameworks.group import group, grouped, with_gpu_variable
from howdah.spec import JobSpec, TaskId, World
from howdah.spec.task import SIDE_ROLES


class Jax:
    """Runs one process in each task; rank 0 runs the coordinator on its main port."""

    # The coordinator is a gRPC server, which sets SO_REUSEPORT.
    hold_ports = True

    def expand(self, job: JobSpec) -> JobSpec:
        """Put the roles in the order of their ranks, and name all GPUs of a task: otherwise JAX uses only the GPU of
        the local rank, which is always 0 here."""
        return grouped(with_gpu_variable(job, "JAX_LOCAL_DEVICE_IDS", lambda gpus: ",".join(map(str, range(gpus)))))

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the coordinator and the rank; a side role, which takes no part in the computation, gets no rank."""
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
