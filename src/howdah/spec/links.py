"""Fills a job's links with the hosts and ports of its tasks."""

from __future__ import annotations

import re
from typing import Dict, Mapping

from howdah.spec.task import TaskId
from howdah.spec.view import TaskView

_TASK = re.compile(r"\{([a-z][a-z0-9_-]*:[0-9]+)(?::([a-z][a-z0-9_-]*))?\}")


def resolve_links(links: Mapping[str, str], tasks: Mapping[TaskId, TaskView]) -> Dict[str, str]:
    """Replace `{worker:0}` by that task's host, `{worker:0:main}` by its port of that name. Links to tasks that have
    not joined yet are left out."""
    found = {}
    for label, address in links.items():
        values = {mark[0]: _value(tasks, mark[1], mark[2] or "") for mark in _TASK.finditer(address)}
        if all(values.values()):
            found[label] = _TASK.sub(lambda mark: values[mark[0]], address)  # noqa: B023 - used at once
    return found


def _value(tasks: Mapping[TaskId, TaskView], task: str, port: str) -> str:
    view = tasks.get(TaskId.parse(task))
    if view is None or not view.host:
        return ""
    return str(view.ports.get(port, "")) if port else view.host
