"""XLearning's frameworks whose tasks meet through servers, trackers or lists of machines.

Programs of its application master are roles here: `scheduler` for ps-lite and XDL, `tracker` for XGBoost.
"""

from __future__ import annotations

from howdah.compat.xlearning.frameworks import WORKER, NativeRoles, XLearning
from howdah.frameworks.group import without_data
from howdah.frameworks.lightgbm import LightGBM
from howdah.frameworks.mxnet import MXNet
from howdah.frameworks.xgboost import XGBoost
from howdah.spec import JobSpec, Member, TaskId, World

MACHINES = "lightGBMlist.txt"
END_POINTS = ("lightLDAEndPoints.txt", "lightLdaEndPoints.txt")
"""One file under two names: XLearning's, which HBox's own example reads, and HBox's."""


class XlMXNet(NativeRoles):
    """ps-lite. The scheduler runs the user's own command, as it did in the application master."""

    native = MXNet()


class XlXFlow(XlMXNet):
    """ps-lite, with a heap profile of each task."""

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        letter = {WORKER: "W", "ps": "S"}.get(task.role)
        return {"HEAPPROFILE": f"./{letter}{task.index}"} if letter else {}


class XlXGBoost(NativeRoles):
    """XGBoost's collective; the tracker is the user's own if an archive `xgboost` brings one."""

    native = XGBoost()


class XlLightGBM(NativeRoles):
    """LightGBM: programs read the machines from a file, one `ip port` a line, and find themselves in it."""

    native = LightGBM()

    def files(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the list of machines, in the same order for every task."""
        (machines,) = self.native.files(world, task).values()
        return {MACHINES: machines}


class XlLightLda(XLearning):
    """LightLDA: servers listen, and workers find them in a file of `index ip:port` lines."""

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        variables = {
            "LIGHTLDA_WORKER_NUM": str(len(world.members_of(WORKER))),
            "LIGHTLDA_SERVER_NUM": str(len(world.members_of("ps"))),
            "LIGHTLDA_RANK": str(task.index),
            "LIGHTLDA_ROLE": task.role,
        }
        if task.role == "ps":
            variables["LIGHTLDA_SERVER_ENDPOINT"] = _end_point(world.member(task))
        return variables

    def files(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the list of servers, for workers only."""
        servers = world.members_of("ps") if task.role != "ps" else ()
        lines = [f"{number} {_end_point(server)}\n" for number, server in enumerate(servers)]
        return dict.fromkeys(END_POINTS, "".join(lines)) if lines else {}


class XlXdl(XLearning):
    """XDL: tasks find each other in a ZooKeeper of the user's, which ZK_ADDR among the job's own variables names."""

    def expand(self, job: JobSpec) -> JobSpec:
        return super().expand(without_data(job, "scheduler"))

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the task's place and the number of its partners. The scheduler reads PS_CPU_CORES and PS_MEMORY_M,
        which the job itself sets, because a world has no sizes."""
        variables = {"TASK_NAME": task.role, "TASK_INDEX": str(task.index)}
        counted = {"scheduler": ("PS_NUM", "ps"), WORKER: ("TASK_NUM", WORKER)}
        if task.role in counted:
            name, role = counted[task.role]
            variables[name] = str(len(world.members_of(role)))
        return variables


def _end_point(server: Member) -> str:
    return f"{server.numeric}:{server.ports['main']}"
