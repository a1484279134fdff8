"""Sets torchrun's options as variables in each task, so that a plain `torchrun train.py` finds the others.

torchrun reads PET_<OPTION> where an option isn't given (torch.distributed.argparse_util). It then starts the processes
of a task, sets RANK and the other variables, and starts the processes again when one fails.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence

from howdah.frameworks.group import group, grouped, with_gpu_variable
from howdah.spec import JobSpec, Member, TaskId, World
from howdah.spec.task import SIDE_ROLES

LAST_CALL_S = 10
"""Seconds for which torchruns wait for more of them when there are enough (torchrun's default: 30). A gang starts
together, so none is late at the start; a torchrun that comes later joins then."""
_OWN_STOP_S = 30
"""Seconds for which torchrun itself waits between TERM and KILL to its processes by default."""
_STOP = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"


class TorchRun:
    """Uses torchrun's own rendezvous, c10d: the first task's torchrun keeps the store, at its main port."""

    # TCPStore's socket sets SO_REUSEADDR.
    hold_ports = True

    def expand(self, job: JobSpec) -> JobSpec:
        """Put the roles in the order of their ranks, start a process for each of a task's GPUs, and let torchrun kill
        none before the job's `timeouts.stop` is over."""
        return grouped(with_gpu_variable(_with_stop_limit(job), "PET_NPROC_PER_NODE", str))

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the variables that name the task which keeps the store. Otherwise torchrun would guess by host names,
        and several tasks may match.

        The id is the same in all restarts, so that torchruns that wait for a lost task keep waiting for it.
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
            # Without this, restarted processes read the addresses of earlier processes from the store, and search for
            # them (torch 2.5 to 2.15 at least, dynamic_rendezvous.py).
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        }


def _with_stop_limit(job: JobSpec) -> JobSpec:
    if job.timeouts.stop_s <= _OWN_STOP_S or _STOP in job.env:
        return job
    limit = {_STOP: str(math.ceil(job.timeouts.stop_s))}
    roles = {name: dataclasses.replace(role, env={**limit, **role.env}) for name, role in job.roles.items()}
    return dataclasses.replace(job, roles=roles)


def _nodes(world: World, members: Sequence[Member]) -> str:
    """Return the number of tasks, in the form `least:most` if a role is elastic."""
    present = Counter(member.task.role for member in members)
    min_tasks = sum(min(count, world.min_tasks.get(role, count)) for role, count in present.items())
    return str(len(members)) if min_tasks == len(members) else f"{min_tasks}:{len(members)}"
