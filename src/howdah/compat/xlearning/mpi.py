"""MPI and Horovod for XLearning's and HBox's programs. Their workers count from 1, because mpiexec was number 0."""

from __future__ import annotations

from howdah.compat.xlearning.frameworks import XLearning
from howdah.frameworks.horovod import Horovod
from howdah.frameworks.mpi import Mpi
from howdah.spec import JobSpec, TaskId, World


class XlMpi(XLearning):
    """The application types MPI and TENSORNET."""

    native = Mpi()
    shares_key = native.shares_key

    def expand(self, job: JobSpec) -> JobSpec:
        return self.native.expand(job)

    def command(self, task: TaskId, command: str | tuple[str, ...]) -> str | tuple[str, ...]:
        return self.native.command(task, command)

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        return _from_one(task)

    def files(self, world: World, task: TaskId) -> dict[str, str]:
        return self.native.files(world, task)


class XlHorovod(XLearning):
    """The application type HOROVOD, over gloo, which every build of Horovod has; there mpirun started it."""

    native = Horovod()

    def expand(self, job: JobSpec) -> JobSpec:
        return self.native.expand(job)

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        return _from_one(task)


def _from_one(task: TaskId) -> dict[str, str]:
    return dict.fromkeys(("INDEX", "TF_INDEX"), str(task.index + 1))
