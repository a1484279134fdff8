"""What nodes need of their surroundings."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorflowonspark import gpu_info

logger = logging.getLogger(__name__)
_EXECUTOR_ID = "executor_id"
_POD = "SPARK_EXECUTOR_POD_IP"
"""Set where an executor of Spark runs on Kubernetes."""


def single_node_env(num_gpus: int = 1, worker_index: int = -1, nodes: Sequence[str] = ()) -> None:
    """Set the environment for a node alone: Hadoop's class path, and the GPUs that it may use. `nodes` are the hosts of
    all nodes: those of this host share its GPUs."""
    set_class_path()
    given = gpus_of_task()
    if given is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(given[:num_gpus])
    elif num_gpus and gpu_info.is_gpu_available():
        here = [index for index, host in enumerate(nodes) if host == get_ip_address()]
        index = here.index(worker_index) if worker_index in here else worker_index
        os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu_info.get_gpus(num_gpus, index))
    else:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def assign_gpus(tf_args: Any, given: Sequence[str], index: int, *, required: bool = True) -> None:
    """Set the GPUs that a node may use: `num_gpus` of `tf_args`, or without it all that Spark has `given`. If Spark
    gives none, free ones of the machine are taken (without `num_gpus` one, if it has any); nodes of one host choose
    different ones by their `index`. In a pod of Kubernetes none are taken, because those of others can be seen there.

    Raises:
        Exception: they are `required`, and fewer than `num_gpus` are there.
    """
    wanted = argument(tf_args, "num_gpus", None)
    found = list(given)[:wanted]
    if not found and wanted != 0 and _POD not in os.environ and gpu_info.is_gpu_available():
        found = list(gpu_info.get_gpus(wanted or 1, index, format=gpu_info.AS_LIST))
    if required and len(found) < (wanted or 0):
        raise Exception(f"num_gpus is {wanted}, and there are {len(found)} GPUs for this node")
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(found)


def argument(args: Any, name: str, default: Any) -> Any:
    """Return an argument of a Namespace or a dict."""
    return args.get(name, default) if isinstance(args, Mapping) else getattr(args, name, default)


def inherited_port(variable: str) -> str:
    """Return the port that a variable of the environment has; "" without it. The address that Kubernetes sets for a
    service of the same name (`tcp://10.0.0.5:6006`) is none."""
    found = os.environ.get(variable, "")
    return "" if "://" in found else found


def set_class_path() -> None:
    """Set the class path by which TensorFlow reads HDFS, where Hadoop is installed."""
    if "HADOOP_PREFIX" in os.environ and "TFOS_CLASSPATH_UPDATED" not in os.environ:
        hadoop = os.path.join(os.environ["HADOOP_PREFIX"], "bin", "hadoop")
        found = subprocess.run(
            [hadoop, "classpath", "--glob"], capture_output=True, text=True, check=True
        ).stdout.strip()
        os.environ["CLASSPATH"] = os.pathsep.join(filter(None, [os.environ.get("CLASSPATH"), found]))
        os.environ["TFOS_CLASSPATH_UPDATED"] = "1"


def gpus_of_task() -> list[str] | None:
    """Return the GPUs that Spark has given to this task; None where it gives none."""
    from pyspark import TaskContext

    context = TaskContext.get()
    resources = context.resources() if context is not None else {}
    return list(resources["gpu"].addresses) if "gpu" in resources else None


def get_ip_address() -> str:
    """Return the address by which other machines reach this one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address of nobody's: nothing is sent
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def find_in_path(path: str, file: str) -> str | bool:
    """Return the first file of this name in a list of directories, False if there is none."""
    candidates = (os.path.join(directory, file) for directory in path.split(os.pathsep))
    return next((found for found in candidates if os.path.isfile(found)), False)


def write_executor_id(num: int) -> None:
    """Keep the number of this node in its working directory."""
    Path(_EXECUTOR_ID).write_text(str(num))


def read_executor_id() -> int:
    """Return the number of the node whose working directory this is."""
    return int(Path(_EXECUTOR_ID).read_text())
