"""XLearning's application types: how each treats servers and failures, and the framework of its variables.

The tasks of any other application type are independent of each other, as in XLearning.
"""

from __future__ import annotations

from howdah.spec.values import dataclass


@dataclass(frozen=True)
class AppType:
    """How jobs of one application type are run."""

    framework: str
    """The framework of its variables."""
    servers: bool = False
    """Whether it can have parameter servers (--ps-…); without them its tasks are independent."""
    servers_end: bool = False
    """Whether servers end by themselves after the workers, and the files that they leave are output."""
    strict: bool = True
    """Whether the first failure ends the job; otherwise `container.maxFailures.rate` of the tasks may fail."""
    helper: str = ""
    """A role with the user's own command, which ran in the application master."""
    helper_command: str = ""
    """The helper's own command, if it has one; it needs `helper_archive`."""
    helper_archive: str = ""
    """The name of the user's archive with the program of `helper_command`."""


INDEPENDENT = AppType("xlearning", strict=False)
# The tracker that users shipped in their archive `xgboost`.
_TRACKER = (
    "exec python xgboost/self-define/rabitTracker.py --num-workers=$DMLC_NUM_WORKER"
    " --host-ip=$DMLC_TRACKER_URI --port=$DMLC_TRACKER_PORT"
)
TYPES = {
    "TENSORFLOW": AppType("xlearning-tensorflow", servers=True),
    "TENSOR2TENSOR": AppType("xlearning-tensor2tensor", servers=True),
    "MXNET": AppType("xlearning-mxnet", servers=True, helper="scheduler"),
    "XFLOW": AppType("xlearning-xflow", servers=True, helper="scheduler"),
    "DISTXGBOOST": AppType("xlearning-xgboost", helper="tracker", helper_command=_TRACKER, helper_archive="xgboost"),
    "DISTLIGHTGBM": AppType("xlearning-lightgbm"),
    "DISTLIGHTLDA": AppType("xlearning-lightlda", servers=True, servers_end=True),
    "LIGHTLDA": AppType("xlearning-lightlda", servers=True, servers_end=True),
    "XDL": AppType("xlearning-xdl", servers=True, helper="scheduler"),
    "DISTTORCH": AppType("xlearning-pytorch", strict=False),
    "MPI": AppType("xlearning-mpi"),
    "TENSORNET": AppType("xlearning-mpi"),
    "HOROVOD": AppType("xlearning-horovod"),
}
IDLE_APP_TYPES = ("VPC", "DIGITS")
"""Types that run no command of the user's, and end after --duration."""
TENSORFLOWS = ("TENSORFLOW", "TENSOR2TENSOR")


def app_type(name: str) -> AppType:
    """Return the type called `name`, in capitals."""
    return TYPES.get(name, INDEPENDENT)
