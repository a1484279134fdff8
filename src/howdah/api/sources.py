"""What the web side asks of whoever serves it: the master for its one job, the history server for all.

The rule: answers are made from these alone, so a job's page is the same live and afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from howdah.api.http_server import Caller, Request
from howdah.errors import RequestRefused
from howdah.logs.query import LogQuery
from howdah.spec import TaskId
from howdah.spec.view import JobView
from howdah.wire.messages import LogChunk

if TYPE_CHECKING:
    from howdah.api.auth import Access


class ApiError(RequestRefused):
    """An HTTP request is refused with the HTTP status `status`. `command` prints a link that lets the user in, "" where
    no link would help."""

    def __init__(self, status: int, text: str, place: str = "", command: str = "") -> None:
        super().__init__(text, place)
        self.status, self.command = status, command


class JobSource(Protocol):
    """One job. `version` grows with each event that `view` has; `directory` is the URI of the job's."""

    @property
    def view(self) -> JobView: ...

    @property
    def version(self) -> int: ...

    @property
    def directory(self) -> str: ...

    @property
    def conf_dir(self) -> str:
        """The Hadoop configuration that reads the job's directory, "" for the usual one."""
        ...

    def records(self, since: int, limit: int) -> tuple[int, list[Mapping[str, Any]]]:
        """Up to `limit` events as JSON from number `since` on, and the number to ask from next."""
        ...

    async def log(self, task: TaskId, stream: str, attempt: int, offset: int, limit: int) -> LogChunk:
        """Bytes of what one attempt printed (0: the latest one); a negative `offset` counts from the end.

        Raises:
            RequestRefused: the task or attempt is not there, its output is gone, or nobody answers in time.
        """
        ...

    async def search(self, wish: LogQuery, tasks: Sequence[TaskId], attempt: int, stream: str) -> Mapping[str, Any]:
        """`search` of the API: in what these tasks printed to `stream` (or `both`), in one attempt or in all (0)."""
        ...

    def samples(self) -> tuple[int, list[str]]:
        """A number that grows when there is more to see of what tasks use, and lines of `metrics.jsonl` that are not in
        the job's directory yet."""
        ...

    async def curves(self, path_and_query: str) -> tuple[int, str, bytes]:
        """Status, content type and body of the curves service's answer to `curves/…` or `checkpoints…`."""
        ...

    async def act(self, action: str, wish: Mapping[str, Any]) -> Any:
        """Do what somebody who may do so wants; the JSON value to answer.

        Raises:
            RequestRefused: there is no such action, or the action is not possible now.
        """
        ...

    def board(self) -> str:
        """The address that opens the job's TensorBoard, "" while it has none."""
        ...

    def actions(self) -> Mapping[str, bool]:
        """Names of the actions there are, and whether each is possible now."""
        ...


class Source(Protocol):
    """`kind` is `master` or `history`, `only` the id of the only job ("" where there are many); `version` grows when
    the list of jobs changes."""

    kind: str

    @property
    def engine(self) -> str: ...

    @property
    def only(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def access(self) -> Access:
        """Who may look, embed and act here."""
        ...

    @property
    def link_command(self) -> str:
        """The command that prints a link to this page."""
        ...

    @property
    def history(self) -> str:
        """Address of a history server that shows the job after its end, without a token; "" where none is known."""
        ...

    def note_open_page(self, hidden: bool) -> None:
        """Hear that a page is open, in a tab that is visible or hidden, and asks again soon."""
        ...

    def owns_origin(self, request: Request) -> bool:
        """Whether the browser that asks sees this server at an origin of its own, not behind an engine's proxy."""
        ...

    async def job(self, job_id: str) -> JobSource | None:
        """The job of this id, if there is one."""
        ...

    def identify(self, request: Request) -> Caller | None:
        """Who has a token or a proxy's word that is good for anything here, by the request's head alone."""
        ...

    def may_view(self, request: Request) -> bool:
        """Whether who asks may look at all there is."""
        ...

    def may_embed(self, job_id: str, request: Request) -> bool:
        """Whether who asks may see the curves of this job."""
        ...

    def may_act(self, job_id: str, token: str) -> bool:
        """Whether `token` lets its holder change this job now."""
        ...
