"""torchrun on each task: variables that stand for its options, so that a plain `torchrun train.py` finds the others.

torchrun reads PET_<OPTION> where an option isn't given (torch.distributed.argparse_util). It then starts the processes
of a task, tells them RANK and all the rest, and starts them again when one fails.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from howdah.frameworks.group import SIDE_ROLES, group, grouped
from howdah.spec import JobSpec, Member, Role, TaskId, World

LAST_CALL_S = 10
"""How long torchruns that are enough wait for more (their own default: 30). A gang starts together, so at the start
nobody is late; who comes later is taken in when he comes."""


class TorchRun:
    """torchrun's own rendezvous, c10d: the first task's torchrun keeps the store, at its main port."""

    # TCPStore's socket sets SO_REUSEADDR.
    hold_ports = True

    def expand(self, job: JobSpec) -> JobSpec:
        """Puts the roles in the order of their ranks, and has a process for each of a task's GPUs."""
        roles = {name: _with_processes(role) for name, role in job.roles.items()}
        return grouped(dataclasses.replace(job, roles=roles))

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Which task keeps the store is told: torchrun would guess by host names, and take several to be the one.

        The id stays the same as long as the job: torchruns that wait for a task to come back go on to wait for it.
        """
        members = group(world)
        if not members or task.role in SIDE_ROLES:
            return {}
        rank = world.rank(task)
        return {
            "PET_NNODES": _nodes(world, members),
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": members[0].address,
            "PET_RDZV_ID": world.job_id or "howdah",
            "PET_RDZV_CONF": f"is_host={str(rank == 0).lower()},last_call_timeout={LAST_CALL_S}",
            "PET_LOCAL_ADDR": world.member(task).host,
            # Else processes that are started again read in the store what those before them have left, and look for
            # them (torch 2.5 to 2.15 at least, dynamic_rendezvous.py).
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        }


def _nodes(world: World, members: Sequence[Member]) -> str:
    """How many tasks; where some role is elastic how few, too."""
    present = Counter(member.task.role for member in members)
    least = sum(min(count, world.least.get(role, count)) for role, count in present.items())
    return str(len(members)) if least == len(members) else f"{least}:{len(members)}"


def _with_processes(role: Role) -> Role:
    if role.resources.gpus < 2 or "PET_NPROC_PER_NODE" in role.env:
        return role
    return dataclasses.replace(role, env={**role.env, "PET_NPROC_PER_NODE": str(role.resources.gpus)})
