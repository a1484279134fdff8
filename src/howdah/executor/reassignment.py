"""Turns an executor into that of another task, in the same container and process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Dict

from howdah.executor import own_log
from howdah.executor.preflight.runner import PASSED
from howdah.spec.task import TaskId

if TYPE_CHECKING:
    from howdah.executor.executor import Executor


def next_environment(executor: Executor) -> Dict[str, str]:
    """Clean up after `executor`, and return the environment of the executor that replaces it.

    The files of `executor` are removed, because the other task has other files; its logs stay under the name of its
    attempt.
    """
    task, _, attempt = executor.reassigned_to.rpartition("/")
    environment = {**executor.container, "HOWDAH_TASK": task, "HOWDAH_ATTEMPT": attempt, "HOWDAH_REASSIGNED": "1"}
    if executor.preflight.passed:
        environment[PASSED] = "1"
    environment["HOWDAH_MASTER"] = f"http://{executor.link.address}"
    try:
        executor.work.restore()
    except (OSError, RecursionError) as error:
        own_log.log(f"not all files of {executor.identity.task} were removed: {error}")
    if "HOWDAH_TASKS_DIR" in environment:
        directory = os.path.join(environment["HOWDAH_TASKS_DIR"], TaskId.parse(task).slug, attempt)
        os.makedirs(directory, exist_ok=True)
        environment["HOWDAH_LOG_DIR"] = directory
    else:
        old = f"{TaskId.parse(executor.identity.task).slug}.{executor.identity.attempt}"
        for log in executor.logs.values():
            if os.path.exists(log.path):
                os.replace(log.path, f"{log.path}.{old}")
    return environment
