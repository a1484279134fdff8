"""Sets the variables of torch.distributed that `init_process_group("env://")` and torchrun's programs read.

One task is one process of rank RANK; ranks go chief (or master) first, then worker, then other roles in the job's
order. All ranks meet at rank 0: its main port becomes MASTER_PORT.
"""

from __future__ import annotations

from howdah.frameworks.group import group, grouped
from howdah.spec import JobSpec, TaskId, World
from howdah.spec.task import SIDE_ROLES


class PyTorch:
    """Runs DistributedDataParallel and other programs with a process group."""

    # TCPStore's socket sets SO_REUSEADDR, in its libuv and its older back end.
    hold_ports = True

    def expand(self, job: JobSpec) -> JobSpec:
        """Put the roles in the order of their ranks; side roles come last and are not waited for."""
        return grouped(job)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the process group's variables. Side roles are not counted in it; they get the address, but no rank."""
        members = group(world)
        if not members:
            return {}
        first = members[0]
        meeting = {
            "MASTER_ADDR": first.host,
            "MASTER_PORT": str(first.ports["main"]),
            "INIT_METHOD": f"tcp://{first.address}",
            "WORLD_SIZE": str(len(members)),
        }
        if task.role in SIDE_ROLES:
            return meeting
        rank = str(world.rank(task))
        local = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        return {**meeting, **local, "RANK": rank, "GROUP_RANK": rank, "NODE_RANK": rank}
