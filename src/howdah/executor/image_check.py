"""Checks whether the engine runs this executor in the container image that the job names.

Some engines start the task as a plain process of the node without a message. The engine's `ImageCheck` names the signs
by which the answer is certain:

- in a container: directories of the engine are mounted, each by its own path. On a node they are plain directories.
- on the node: a process of the engine is among our ancestors, or we are in the kernel's first IPC namespace, which no
  container gets.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Mapping, Optional, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.identity import Identity
from howdah.executor.process import process_tree
from howdah.executor.process.mount_points import mount_points
from howdah.wire.messages import Assignment, ImageCheck

if TYPE_CHECKING:
    from howdah.executor.task_image import TaskImage

_FIRST_IPC_NAMESPACE = 0xEFFFFFFF  # PROC_IPC_INIT_INO, linux/proc_ns.h


def find_image(
    loop: EventLoop, identity: Identity, assignment: Assignment, variables: Mapping[str, str], directory: str
) -> Tuple[Optional[TaskImage], str, str]:
    """Return three values: the image in which the executor is to run its program, or None; the reason why no program
    can run in the image that the job names; and a warning if this cannot be decided. `variables` are the executor's
    own, `directory` is the working directory."""
    order = assignment.image
    if order is None:
        return None, "", ""
    if order.check is None:
        from howdah.executor.task_image import TaskImage  # most executors do not need this module

        image = TaskImage.of_order(loop, identity, order, variables, directory)
        return image, image.problem(), ""
    used = in_container(order.check, variables, directory)
    return None, order.check.not_used if used is False else "", order.check.unknown if used is None else ""


def in_container(check: ImageCheck, variables: Mapping[str, str], directory: str) -> Optional[bool]:
    """Return whether the engine runs this process in a container; None when no sign of either is found."""
    listed = ",".join(filter(None, (variables.get(name) for name in check.mounted)))
    own = {os.path.realpath(path) for path in (directory, *filter(None, listed.split(",")))}
    if own & mount_points():
        return True
    return False if _is_below(check.outside) or _in_first_ipc_namespace() else None


def _is_below(word: str) -> bool:
    pid = os.getppid()
    while pid > 1:
        if word.encode() in process_tree.read(f"/proc/{pid}/cmdline").split(b"\0"):
            return True
        fields = process_tree.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        pid = int(fields[1]) if len(fields) > 1 else 0
    return False


def _in_first_ipc_namespace() -> bool:
    try:
        return os.stat("/proc/self/ns/ipc").st_ino == _FIRST_IPC_NAMESPACE
    except OSError:
        return False
