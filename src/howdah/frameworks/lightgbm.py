"""LightGBM over sockets: every task gets the list of all machines, and finds itself in the list.

LightGBM compares the list with its own machine's addresses and resolves no names: so the addresses are numeric.
"""

from __future__ import annotations

from howdah.frameworks.group import group, grouped
from howdah.spec import JobSpec, TaskId, World
from howdah.spec.task import SIDE_ROLES

MACHINES_FILE = "machines.txt"


class LightGBM:
    """Runs data-, feature- and voting-parallel training by `machines`, `local_listen_port` and `num_machines`."""

    # Its listening socket sets no SO_REUSEADDR.
    hold_ports = False

    def expand(self, job: JobSpec) -> JobSpec:
        """Put the roles in the order of their ranks."""
        return grouped(job)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the list and the task's position in it. A side role is not in the list, and gets only the list."""
        machines = [f"{member.numeric}:{member.ports['main']}" for member in group(world)]
        variables = {"LIGHTGBM_MACHINES": ",".join(machines)}
        variables |= dict.fromkeys(("LIGHTGBM_NUM_MACHINES", "LIGHTGBM_NUM_MACHINE"), str(len(machines)))
        if task.role in SIDE_ROLES:
            return variables
        return {
            **variables,
            "LIGHTGBM_LOCAL_LISTEN_PORT": str(world.member(task).ports["main"]),
            "LIGHTGBM_RANK": str(world.rank(task)),
        }

    def files(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the same list for LightGBM's command line: `machine_list_filename=machines.txt`."""
        return {MACHINES_FILE: "".join(f"{member.numeric} {member.ports['main']}\n" for member in group(world))}
