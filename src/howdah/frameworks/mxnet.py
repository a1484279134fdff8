"""MXNet's parameter server, and other programs on ps-lite: workers and servers that find each other through a
scheduler.

A role `server` (or `ps`) makes a job distributed; the scheduler is added. Addresses are numeric, because ps-lite binds
to the given address, which must not be a name.
"""

from __future__ import annotations

from howdah.frameworks.group import group, grouped, with_helper, without_data
from howdah.spec import JobSpec, TaskId, World
from howdah.spec.task import SIDE_ROLES

SCHEDULER = "scheduler"
SERVERS = ("server", "ps")
_HELPERS = (*SERVERS, SCHEDULER)
_SCHEDULER_MIB = 512
# MXNet serves as soon as it is imported, where DMLC_ROLE says so, and then ends the process.
_PROGRAM = "import mxnet"


class MXNet:
    """Runs KVStore `dist_sync` and `dist_async`."""

    # ZeroMQ sets SO_REUSEADDR.
    hold_ports = True

    def expand(self, job: JobSpec) -> JobSpec:
        """Add the scheduler. The job does not wait for the scheduler and the servers, which end by themselves after the
        workers."""
        if job.gang and any(role in job.roles for role in SERVERS):
            job = with_helper(job, SCHEDULER, ("python3", "-c", _PROGRAM), _SCHEDULER_MIB)
        return grouped(without_data(job, *_HELPERS), helpers=_HELPERS)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the variables that name the scheduler. A task without one is alone and gets nothing, because MXNet
        would wait for servers."""
        scheduler = next(iter(world.members_of(SCHEDULER)), None)
        if scheduler is None:
            return {}
        meeting = {
            "DMLC_PS_ROOT_URI": scheduler.numeric,
            "DMLC_PS_ROOT_PORT": str(scheduler.ports["main"]),
            "DMLC_NUM_WORKER": str(len(group(world, _HELPERS))),
            "DMLC_NUM_SERVER": str(sum(len(world.members_of(role)) for role in SERVERS)),
            "DMLC_NODE_HOST": world.member(task).numeric,
            "DMLC_LOCAL": "0",
        }
        if task.role in SIDE_ROLES:
            return meeting
        return {**meeting, **_own_variables(world, task)}


def _own_variables(world: World, task: TaskId) -> dict[str, str]:
    if task.role == SCHEDULER:
        return {"DMLC_ROLE": "scheduler"}
    if task.role in SERVERS:
        servers = [member.task for role in SERVERS for member in world.members_of(role)]
        return {"DMLC_ROLE": "server", "DMLC_SERVER_ID": str(servers.index(task))}
    return {"DMLC_ROLE": "worker", "DMLC_WORKER_ID": str(world.rank(task))}
