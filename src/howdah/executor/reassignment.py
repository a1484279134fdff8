"""An executor that becomes another task's, in the same container and process: what it leaves, its new environment."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Dict

from howdah.executor.preflight.runner import PASSED
from howdah.spec.task import TaskId

if TYPE_CHECKING:
    from howdah.executor.executor import Executor


def next_environment(executor: Executor) -> Dict[str, str]:
    """Tidy up after `executor`, and say what its successor is started with: `worker:3/2` becomes HOWDAH_TASK and
    HOWDAH_ATTEMPT. The input files go, for the other task has others; the logs stay, under this attempt's name."""
    task, _, attempt = executor.becoming.rpartition("/")
    environment = {**executor.container, "HOWDAH_TASK": task, "HOWDAH_ATTEMPT": attempt, "HOWDAH_REASSIGNED": "1"}
    if executor.preflight.passed:
        environment[PASSED] = "1"
    environment["HOWDAH_MASTER"] = f"http://{executor.link.where}"
    for fetch in executor.assignment.fetches if executor.assignment is not None else ():
        shutil.rmtree(os.path.join(executor.directory, fetch.to), ignore_errors=True)
    if "HOWDAH_TASKS_DIR" in environment:
        folder = os.path.join(environment["HOWDAH_TASKS_DIR"], TaskId.parse(task).slug, attempt)
        os.makedirs(folder, exist_ok=True)
        environment["HOWDAH_LOG_DIR"] = folder
    else:
        _set_aside(executor)
    return environment


def _set_aside(executor: Executor) -> None:
    was = f"{TaskId.parse(executor.identity.task).slug}.{executor.identity.attempt}"
    for log in executor.logs.values():
        if os.path.exists(log.path):
            os.replace(log.path, f"{log.path}.{was}")
