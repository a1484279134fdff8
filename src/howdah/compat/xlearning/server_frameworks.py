"""XLearning's frameworks whose tasks meet through servers, trackers or lists of machines.

What ran in its application master is a role here: `scheduler` for ps-lite and XDL, `tracker` for XGBoost.
"""

from __future__ import annotations

from howdah.compat.xlearning.frameworks import WORKER, XLearning
from howdah.frameworks.group import without_data
from howdah.frameworks.lightgbm import LightGBM
from howdah.frameworks.mxnet import MXNet
from howdah.frameworks.xgboost import XGBoost
from howdah.spec import JobSpec, TaskId, World

MACHINES = "lightGBMlist.txt"
END_POINTS = ("lightLDAEndPoints.txt", "lightLdaEndPoints.txt")
"""One file under both names: XLearning's, which HBox's own example reads, and that of HBox."""


class XlMXNet(XLearning):
    """ps-lite. The scheduler runs the user's own command, as it did in the application master."""

    native = MXNet()

    def expand(self, job: JobSpec) -> JobSpec:
        return self.native.expand(job)


class XlXFlow(XlMXNet):
    """ps-lite, with a heap profile of each task."""

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        letter = {WORKER: "W", "ps": "S"}.get(task.role)
        return {"HEAPPROFILE": f"./{letter}{task.index}"} if letter else {}


class XlXGBoost(XLearning):
    """XGBoost's collective; the tracker is the user's own if an archive `xgboost` brings one."""

    native = XGBoost()

    def expand(self, job: JobSpec) -> JobSpec:
        return self.native.expand(job)


class XlLightGBM(XLearning):
    """LightGBM: programs read the machines from a file, one `ip port` a line, and find themselves in it."""

    native = LightGBM()

    def expand(self, job: JobSpec) -> JobSpec:
        return self.native.expand(job)

    def files(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the list of machines, in the same order for every task."""
        (machines,) = self.native.files(world, task).values()
        return {MACHINES: machines}


class XlLightLda(XLearning):
    """LightLDA: servers listen, and workers find them in a file of `index ip:port` lines."""

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        member = world.member(task)
        told = {
            "LIGHTLDA_WORKER_NUM": str(len(world.members_of(WORKER))),
            "LIGHTLDA_SERVER_NUM": str(len(world.members_of("ps"))),
            "LIGHTLDA_RANK": str(task.index),
            "LIGHTLDA_ROLE": task.role,
        }
        here = {"LIGHTLDA_SERVER_ENDPOINT": f"{member.numeric}:{member.ports['main']}"}
        return {**told, **here} if task.role == "ps" else told

    def files(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the list of servers, for workers only."""
        servers = world.members_of("ps") if task.role != "ps" else ()
        lines = [f"{number} {server.numeric}:{server.ports['main']}\n" for number, server in enumerate(servers)]
        return dict.fromkeys(END_POINTS, "".join(lines)) if lines else {}


class XlXdl(XLearning):
    """XDL: tasks find each other in a ZooKeeper of the user's, which ZK_ADDR among the job's own variables names."""

    def expand(self, job: JobSpec) -> JobSpec:
        return super().expand(without_data(job, "scheduler"))

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        """Return nothing for sizes: the job sets PS_CPU_CORES and PS_MEMORY_M of the scheduler, because a world has no
        sizes."""
        told = {"TASK_NAME": task.role, "TASK_INDEX": str(task.index)}
        if task.role == "scheduler":
            return {**told, "PS_NUM": str(len(world.members_of("ps")))}
        return {**told, "TASK_NUM": str(len(world.members_of(WORKER)))} if task.role == WORKER else told
