"""Checks whether this executor runs in the container image that the job names.

A NodeManager with Hadoop's DefaultContainerExecutor starts the task as a plain process of the node without a message.
(LinuxContainerExecutor refuses what it does not allow, in recent versions: howdah.engines.yarn.exit_codes.) What is
certain:

- in a container: Hadoop's Docker and runc runtimes mount the application's local directories, or the container's
  working directory (2.8 to 3.0), and the container's log directories, each by its own path. On a node they are plain
  directories that the NodeManager has made; nothing is ever mounted there.
- on the node: the NodeManager is among our ancestors, or we are in the kernel's first IPC namespace, which neither
  runtime gives to a container.
"""

from __future__ import annotations

import os
import re
from typing import Mapping, Optional, Set, Tuple

from howdah.executor.process import process_tree
from howdah.spec.containers import TYPE, requested_image
from howdah.spec.message import message

NOT_USED = (
    "image {image} is not used: the NodeManager of {node} started the task outside of a container; its administrator "
    "has to name {runtime} in yarn.nodemanager.runtime.linux.allowed-runtimes, and LinuxContainerExecutor in "
    "yarn.nodemanager.container-executor.class"
)
UNKNOWN = "it is unknown whether image {image} is used: none of its directories is mounted, and no NodeManager is seen"
_NODEMANAGER = b"org.apache.hadoop.yarn.server.nodemanager.NodeManager"
_FIRST_IPC_NAMESPACE = 0xEFFFFFFF  # PROC_IPC_INIT_INO, linux/proc_ns.h


def check_image(variables: Mapping[str, str], host: str, directory: str) -> Tuple[str, str]:
    """Return a problem, if the image that the container's `variables` name is not used on `host`, and a warning.

    The warning says that nothing can be told. Both are "" when all is well. `directory` is the working directory.
    """
    image = requested_image(variables)
    used = in_container(variables, directory) if image else True
    if used:
        return "", ""
    if used is None:
        return "", message(UNKNOWN, image=repr(image))
    return message(NOT_USED, image=repr(image), node=host, runtime=variables[TYPE]), ""


def in_container(variables: Mapping[str, str], directory: str) -> Optional[bool]:
    """Return whether YARN runs this process in a container; None when no sign of either is found."""
    listed = ",".join(filter(None, (variables.get("LOCAL_DIRS"), variables.get("LOG_DIRS"))))
    own = {os.path.realpath(path) for path in (directory, *filter(None, listed.split(",")))}
    if own & _mount_points():
        return True
    return False if _below_nodemanager() or _in_first_ipc_namespace() else None


def _mount_points() -> Set[str]:
    """Return field 5 of each line of proc(5) mountinfo, where blanks and the like are written in octal."""
    lines = process_tree.read("/proc/self/mountinfo").splitlines()
    points = (line.split(b" ")[4] for line in lines if line.count(b" ") > 4)
    return {os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), point)) for point in points}


def _below_nodemanager() -> bool:
    pid = os.getppid()
    while pid > 1:
        if _NODEMANAGER in process_tree.read(f"/proc/{pid}/cmdline").split(b"\0"):
            return True
        fields = process_tree.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        pid = int(fields[1]) if len(fields) > 1 else 0
    return False


def _in_first_ipc_namespace() -> bool:
    try:
        return os.stat("/proc/self/ns/ipc").st_ino == _FIRST_IPC_NAMESPACE
    except OSError:
        return False
