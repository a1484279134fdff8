"""The output of the tasks of a followed job: through its master while the master runs, afterwards from the logs that
the engine has kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from howdah.client.follow import Follower, Update
from howdah.client.job_end import wait_for_end
from howdah.errors import HowdahError
from howdah.logs.archive import StreamKey
from howdah.logs.lines import ArchivedLines
from howdah.logs.store import LiveLogs
from howdah.spec import TaskId
from howdah.wire.connection import WireError
from howdah.wire.messages import LogChunk


class FollowedLogs:
    """Reads logs at each update of a followed job; `tell_unread` is called with the reason when its last lines can't be
    read."""

    def __init__(self, follower: Follower, tell_unread: Callable[[str], object]) -> None:
        self._follower, self._tell_unread = follower, tell_unread
        self._kept: ArchivedLines | None = None
        self._asked = dict[TaskId, None]()
        self._has_missed = False

    def updates(self, answered: Iterable[Update]) -> Iterator[Update]:
        """Yield the updates at which the master answers. If the master has exited before all output of the tasks was
        read, yield the end once more, so that the engine's archive is read."""
        last: Update | None = None
        for last in answered:
            self._has_missed = False
            yield last
        if last is None or (last.view.outcome is not None and not self._has_missed):
            return
        view = self._follower.view
        view.tasks = view.tasks or last.view.tasks  # those of a job whose event log can't be read any more
        if any(task.exit and task.exit.cause in ("lost", "withdrawn") for task in view.tasks.values()):
            return  # the engine would wait for a node that may never return
        with contextlib.suppress(HowdahError):
            wait_for_end(self._follower.engine, self._follower.job_id)
        try:
            self._kept = ArchivedLines(self._follower.engine, self._follower.job_id, self._asked.keys())
        except HowdahError as error:
            self._tell_unread(str(error))
            return
        with self._kept:
            yield Update(view, last.report)

    def of(self, task: TaskId, attempt: int) -> LiveLogs:
        """Return the reader of an attempt (0: the present one)."""
        self._asked[task] = None

        def ask(stream: str, offset: int, limit: int) -> LogChunk:
            if self._kept is not None:
                start, size, data = self._kept.chunk(StreamKey(str(task), attempt, stream), offset, limit)
                return LogChunk(0, start, size, data.decode("latin-1"))
            assert self._follower.master is not None
            try:
                return self._follower.master.log(task, stream, offset, limit, attempt)
            except WireError:
                self._has_missed = True
                raise

        return LiveLogs(ask)
