"""torch.distributed: the variables that `init_process_group("env://")` and torchrun's programs read.

One task is one process of rank RANK; ranks go chief (or master) first, then worker, then other roles in the job's
order. Rank 0 is where all meet: its main port becomes MASTER_PORT.
"""

from __future__ import annotations

from howdah.frameworks import decided
from howdah.spec import JobSpec, TaskId, World

# They run beside the gang and are no part of the process group.
SIDE_ROLES = ("evaluator", "tensorboard")
_FIRST = ("chief", "master", "worker")


class PyTorch:
    """DistributedDataParallel and whatever else stands on a process group."""

    # TCPStore's socket sets SO_REUSEADDR, in its libuv and its older back end.
    hold_ports = True

    def expand(self, job: JobSpec) -> JobSpec:
        """Puts the roles in the order of their ranks; side roles come last and are not waited for."""
        return decided(job, untracked=SIDE_ROLES, ignored=SIDE_ROLES, order=sorted(job.roles, key=_place))

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """RANK and WORLD_SIZE count the process group alone; a side role learns where the group meets, but no rank."""
        group = [member for member in world.members if member.task.role not in SIDE_ROLES]
        if not group:
            return {}
        first = group[0]
        meeting = {
            "MASTER_ADDR": first.host,
            "MASTER_PORT": str(first.ports["main"]),
            "INIT_METHOD": f"tcp://{first.address}",
            "WORLD_SIZE": str(len(group)),
        }
        if task.role in SIDE_ROLES:
            return meeting
        rank = str(next(rank for rank, member in enumerate(group) if member.task == task))
        local = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        return {**meeting, **local, "RANK": rank, "GROUP_RANK": rank, "NODE_RANK": rank}


def _place(role: str) -> int:
    """Sorting is stable: equal places keep the job's order."""
    if role in SIDE_ROLES:
        return len(_FIRST) + 1
    return _FIRST.index(role) if role in _FIRST else len(_FIRST)
