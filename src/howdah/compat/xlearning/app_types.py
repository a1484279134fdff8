"""XLearning's application types: what each does with servers and failures, and the framework that gives its variables.

An application type that isn't here ran as independent tasks, and does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AppType:
    """`servers`: it takes --ps-…, without which it is `alone`. `strict`: the first failure ends the job, else only
    when `container.maxFailures.rate` of the tasks have failed. `helper` is the role that ran in the master there; it
    runs the user's own command, or `helper_command` where the user's `helper_archive` brings what that needs."""

    framework: str
    servers: bool = False
    strict: bool = True
    helper: str = ""
    helper_command: str = ""
    helper_archive: str = ""


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
    "DISTLIGHTLDA": AppType("xlearning-lightlda", servers=True),
    "LIGHTLDA": AppType("xlearning-lightlda", servers=True),
    "XDL": AppType("xlearning-xdl", servers=True, helper="scheduler"),
    "DISTTORCH": AppType("xlearning-pytorch", strict=False),
    "MPI": AppType("xlearning-mpi"),
    "TENSORNET": AppType("xlearning-mpi"),
    "HOROVOD": AppType("xlearning-horovod"),
}
IDLE_APP_TYPES = ("VPC", "DIGITS")
"""They run no command of the user's, for a while (--duration)."""
TENSORFLOWS = ("TENSORFLOW", "TENSOR2TENSOR")


def of(name: str) -> AppType:
    """The type called `name`, in capitals."""
    return TYPES.get(name, INDEPENDENT)
