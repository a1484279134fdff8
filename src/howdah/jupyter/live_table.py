"""Shows the tasks of a job as a table below a notebook's cell, and keeps it up to date while the job runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from howdah.cli.terminal import task_table
from howdah.spec.view import JobView

MAX_TASKS = 40
"""A job with more tasks gets one row for each role."""


def in_notebook() -> bool:
    """Return whether this Python is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class LiveTable:
    """The table of one job. It is drawn below the cell that makes it; other threads may change it."""

    def __init__(self, job_id: str) -> None:
        from IPython.display import display

        self._job_id, self._page = job_id, ""
        self._handle: Any = display(self._title(), display_id=True)  # type: ignore[no-untyped-call]
        self._drawn: Any = None

    def show(self, view: JobView, find_page: Callable[[], str]) -> None:
        """Draw the table again, if it has changed. Its title links to the job's page, which `find_page` returns as soon
        as there is one."""
        self._page = self._page or find_page()
        if not view.tasks:
            return
        table = task_table(view, MAX_TASKS)
        table.title, table.title_justify = self._title(), "left"
        drawn = [(str(column.header), [str(cell) for cell in column.cells]) for column in table.columns]
        if drawn != self._drawn:
            self._drawn = drawn
            self._handle.update(table)

    def _title(self) -> Any:
        from rich.text import Text

        return Text(self._job_id, f"bold link {self._page}" if self._page else "bold")
