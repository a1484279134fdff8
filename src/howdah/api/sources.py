"""The interfaces between the handlers of the API and whoever serves it: the master for its one job, the history server
for all jobs.

The rule: handlers use nothing else, so the page of a job shows the same while the job runs and afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from howdah.api.http_server import Request
from howdah.logs.query import LogQuery
from howdah.spec import TaskId
from howdah.spec.view import JobView
from howdah.wire.messages import LogChunk

if TYPE_CHECKING:
    from howdah.api.auth import Access


class JobSource(Protocol):
    """Gives the handlers of requests the data of one job."""

    @property
    def view(self) -> JobView:
        """Return the view of the job."""

    @property
    def version(self) -> int:
        """Return the number of events that were folded into `view`."""

    @property
    def directory(self) -> str:
        """Return the URI of the job's directory."""

    @property
    def conf_dir(self) -> str:
        """Return the Hadoop configuration that reads the job's directory, "" for the usual one."""

    @property
    def shown_owner(self) -> str:
        """Return whose files alone are shown of the job, by the name that files have there; "" for everybody's."""

    def records(self, since: int, limit: int) -> tuple[int, list[Mapping[str, Any]]]:
        """Return the number to ask from next, and up to `limit` events as JSON from number `since` on."""

    async def log(self, task: TaskId, stream: str, attempt: int, offset: int, limit: int) -> LogChunk:
        """Return bytes of the log of one attempt (0: the latest one); a negative `offset` counts from the end.

        Raises:
            RequestRefused: the task or attempt is not there, its output is gone, or no answer came in time.
        """

    async def search(self, query: LogQuery, tasks: Sequence[TaskId], attempt: int, stream: str) -> Mapping[str, Any]:
        """Search the logs of these tasks in `stream` (or `both`), of one attempt or of all (0); return the answer to
        the API call `search`."""

    def samples(self) -> tuple[int, list[str]]:
        """Return the version of the usage samples, which grows with each sample, and the lines of `metrics.jsonl` that
        are not in the job's directory yet."""

    async def event_file_answer(self, path_and_query: str) -> tuple[int, str, bytes]:
        """Return status, content type and body of the event-file service's answer to `curves/…` or `checkpoints…`."""

    async def act(self, action: str, arguments: Mapping[str, Any]) -> Any:
        """Execute an action for a caller who is permitted to; return the JSON value to answer.

        Raises:
            RequestRefused: there is no such action, or the action is not possible now.
        """

    def tensorboard_url(self) -> str:
        """Return the address that opens the job's TensorBoard, "" while there is none."""

    def actions(self) -> Mapping[str, bool]:
        """Return the names of all actions, and for each whether it is possible now."""


class Source(Protocol):
    """A server's jobs as the handlers see them. `kind` is `master` or `history`."""

    kind: str

    @property
    def engine(self) -> str:
        """Return the name of the engine, "" where there are several."""

    @property
    def only_job_id(self) -> str:
        """Return the id of the only job, "" where there are many."""

    @property
    def version(self) -> int:
        """Return a number that grows when the list of jobs changes."""

    @property
    def access(self) -> Access:
        """Return the permissions to view, embed and act."""

    @property
    def link_command(self) -> str:
        """Return the command that prints a link to this page."""

    @property
    def currency(self) -> str:
        """Return the currency of costs, "" where there are no prices."""

    @property
    def history(self) -> str:
        """Return the address, without a token, of a history server that shows the job after its end; "" if none is
        known."""

    def note_open_page(self, hidden: bool) -> None:
        """Record that a page is open, in a tab that is visible or hidden, and will ask again soon."""

    def owns_origin(self, request: Request) -> bool:
        """Return whether the browser sees this server at an origin of its own, not behind an engine's proxy."""

    async def job(self, job_id: str) -> JobSource | None:
        """Return the job of this id, None if there is none."""
