"""Ray: a cluster of the job's own. Its `head`, or chief, runs the program; roles without a command are Ray's nodes.

A task's container runs the script `ray_task`, which starts Ray with the task's resources, and the program beside it.
"""

from __future__ import annotations

import dataclasses
import pkgutil

from howdah.errors import SpecError
from howdah.frameworks import with_failure_defaults
from howdah.frameworks.group import without_data
from howdah.spec import JobSpec, Role, TaskId, World, chief
from howdah.spec.task import SIDE_ROLES

PROGRAM = "howdah-ray.py"
HEAD = "head"
NODE = ("ray", "start")
"""The command of a node, in the form that people see."""
DASHBOARD = "Ray dashboard"
_DEFAULTS = {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
"""Variables that the job may set to other values: no access without the token, and no usage reports to Ray's makers."""
_RESTARTS = 100
"""The number of restarts of a node, unless the job sets it. A failure after the last restart would end the job,
although the job needs no single node."""
_HEAD_PORTS, _NODE_PORTS = ("dashboard", "client", "agent"), ("agent",)


class Ray:
    """Makes `ray.init()` find the job's own cluster."""

    # Ray's servers do not set SO_REUSEADDR.
    hold_ports = False
    fills_commands = True
    key_variable = "RAY_AUTH_TOKEN"

    def expand(self, job: JobSpec) -> JobSpec:
        """Give the nodes their command, and tell Ray the resources of each task. If there is only one role, its first
        task is the head.

        Raises:
            SpecError: the job cannot be a cluster.
        """
        if not job.gang:
            raise SpecError.at("gang", "is false, but the tasks of a Ray cluster start together")
        roles = dict(job.roles)
        if len(roles) == 1 and HEAD not in roles:
            ((name, role),) = roles.items()
            nodes = dataclasses.replace(role, replicas=role.replicas - 1, command="")
            roles = {HEAD: dataclasses.replace(role, replicas=1, min_replicas=0)}
            roles |= {name: _fewer(nodes)} if nodes.replicas else {}
            job = _with_task_renamed(job, name)
        head = HEAD if HEAD in roles else chief(job).role
        count = roles[head].replicas
        if head == HEAD and count != 1:
            raise SpecError.at(f"roles.{HEAD}.replicas", f"is {count}, must be 1: a cluster has one head")
        nodes_of = [name for name, role in roles.items() if name != head and role.command in ("", (), NODE)]
        defaults = {name: value for name, value in _DEFAULTS.items() if name not in job.env}
        roles = {name: dataclasses.replace(role, env={**defaults, **role.env}) for name, role in roles.items()}
        for name in (head, *nodes_of):
            roles[name] = _with_resources(roles[name], _HEAD_PORTS if name == head else _NODE_PORTS)
        for name in nodes_of:
            # Ray goes on without a node that is lost, and takes it in again.
            restarts = _RESTARTS if roles[name].restarts == Role.restarts else roles[name].restarts
            on_failure = roles[name].on_failure or "restart"
            roles[name] = dataclasses.replace(roles[name], command=NODE, on_failure=on_failure, restarts=restarts)
        links = {DASHBOARD: f"http://{{{head}:0}}:{{{head}:0:dashboard}}", **job.links}
        job = without_data(dataclasses.replace(job, roles=roles, links=links), *nodes_of)
        order = [head, *(name for name in roles if name != head)]
        return with_failure_defaults(job, untracked=(*SIDE_ROLES, *nodes_of), ignored=SIDE_ROLES, order=order)

    def command(self, task: TaskId, command: str | tuple[str, ...]) -> str | tuple[str, ...]:
        """Wrap the program of the head, which the script starts beside Ray, and replace the command of a node."""
        if command == NODE:
            return ("python3", "-I", PROGRAM, "node")
        words = ("/bin/bash", "-c", command) if isinstance(command, str) else command
        return command if task.role in SIDE_ROLES else ("python3", "-I", PROGRAM, "program", *words)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the address of the cluster, for `ray.init()` and for commands that people run in a task."""
        head = world.members[0]
        return {
            "RAY_ADDRESS": f"{head.numeric}:{head.ports['main']}",
            "HOWDAH_RAY_IP": world.member(task).numeric,
            **({"HOWDAH_RAY_HEAD": "1"} if task == head.task else {}),
        }

    def files(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the script that starts Ray."""
        text = pkgutil.get_data(__package__, "ray_task.py")
        assert text is not None
        return {PROGRAM: text.decode()}


def _with_task_renamed(job: JobSpec, name: str) -> JobSpec:
    """Replace the name of the only role, or of its first task, by `head` wherever the job means this task by name."""

    def renamed(tasks: str) -> str:
        return HEAD if tasks in (name, f"{name}:0") else tasks

    return dataclasses.replace(
        job,
        outputs=tuple(dataclasses.replace(each, tasks=renamed(each.tasks)) for each in job.outputs),
        checkpoint=dataclasses.replace(job.checkpoint, tasks=renamed(job.checkpoint.tasks)),
        board=dataclasses.replace(job.board, tasks=renamed(job.board.tasks)),
        success=renamed(job.success),
    )


def _fewer(role: Role) -> Role:
    """Return the role of the nodes after it has given its first task to the head."""
    return dataclasses.replace(role, min_replicas=min(role.min_replicas, role.replicas))


def _with_resources(role: Role, ports: tuple[str, ...]) -> Role:
    """Tell Ray the resources of a task, because it would count the whole machine."""
    has = role.resources
    variables = {"HOWDAH_RAY_CPUS": has.vcores, "HOWDAH_RAY_GPUS": has.gpus, "HOWDAH_RAY_MIB": has.memory_mib}
    env = {**{name: str(value) for name, value in variables.items()}, **role.env}
    return dataclasses.replace(role, env=env, ports=tuple(dict.fromkeys((*role.ports, *ports))))
