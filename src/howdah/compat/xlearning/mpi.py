"""MPI and Horovod for XLearning's and HBox's programs. Their workers count from 1, because mpiexec was number 0."""

from __future__ import annotations

from howdah.compat.xlearning.frameworks import NativeRoles
from howdah.frameworks import Framework
from howdah.frameworks.horovod import Horovod
from howdah.frameworks.mpi import Mpi
from howdah.spec import TaskId, World


class XlHorovod(NativeRoles):
    """The application type HOROVOD, over gloo, which every build of Horovod has; XLearning started it by mpirun."""

    native: Framework = Horovod()

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        return dict.fromkeys(("INDEX", "TF_INDEX"), str(task.index + 1))


class XlMpi(XlHorovod):
    """The application types MPI and TENSORNET."""

    native = Mpi()
    key_variable, command, files = native.key_variable, native.command, native.files
