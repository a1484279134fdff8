"""Prints the output of TonY's submit commands: the tasks, and the address of a notebook."""

from __future__ import annotations

import os

from howdah.cli.i18n import _
from howdah.cli.terminal import Plain, task_lines
from howdah.client.follow import Update
from howdah.client.port_forward import PortForward, straight_to
from howdah.spec import State, TaskId
from howdah.spec.events import Joined


class TaskScreen(Plain):
    """Prints lines, and a table of the tasks whose state has changed."""

    def __init__(self) -> None:
        super().__init__()
        self._states: dict[TaskId, State] = {}

    def show(self, update: Update) -> None:
        """Print what is new."""
        super().show(update)
        tasks = update.view.tasks.values()
        changed = [task for task in tasks if self._states.get(task.id, State.PENDING) is not task.state]
        for line in task_lines(changed) if changed else ():
            self._print(line)
        self._states = {task.id: task.state for task in tasks}


class NotebookScreen(TaskScreen):
    """Prints how to reach the notebook: by a port of this machine that leads to it."""

    def __init__(self) -> None:
        super().__init__()
        self._forward: PortForward | None = None

    def show(self, update: Update) -> None:
        """Print what is new."""
        super().show(update)
        for event in update.events:
            if isinstance(event, Joined):
                self._open(event.host, event.ports["main"])

    def close(self) -> None:
        """Close the port with the command."""
        if self._forward is not None:
            self._forward.close()

    def _open(self, host: str, port: int) -> None:
        self.close()
        self._forward = PortForward(straight_to(host, port))
        local = self._forward.port
        self._print(_("the notebook is at http://localhost:{port}", port=local))
        self._print(_("from elsewhere: ssh -L 18888:localhost:{port} {host}", port=local, host=os.uname().nodename))
