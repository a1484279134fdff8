"""Sources of ended jobs for the handlers of the API: made from event logs and archived logs, without a master.

The rule: the history server and `howdah.Client` without a server use the same handlers and the same classes.
"""

from __future__ import annotations

import secrets
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from howdah.api.auth import Access
from howdah.api.handlers.curves import checkpoints
from howdah.api.http_server import Request, Response
from howdah.api.recorded_log import RecordedLog
from howdah.api.router import ApiRouter
from howdah.api.routes import PREFIX
from howdah.api.sources import JobSource
from howdah.errors import NotFound
from howdah.eventfiles import locations
from howdah.eventfiles.client import EventFileService
from howdah.localfiles.temporary_directory import TemporaryDirectory
from howdah.logs.archive import LogArchive
from howdah.logs.archived_logs import ArchivedLogs
from howdah.logs.query import LogQuery
from howdah.spec import TaskId
from howdah.spec.view import JobView
from howdah.wire.helper_main import helper_environment
from howdah.wire.messages import LogChunk


def event_file_service(conf_dir: str, idle_s: float = 0.0) -> EventFileService:
    """Make a service that reads event files with the Hadoop configuration in `conf_dir` ("": the usual one), and ends
    after `idle_s` seconds without a request (0: its own limit)."""
    return EventFileService({**helper_environment(), **({"HADOOP_CONF_DIR": conf_dir} if conf_dir else {})}, idle_s)


class RecordedJob:
    """A `JobSource` of a job that is read from its directory. `archive` returns the archive of the job's logs, and
    raises RequestRefused when there is none. Of the files that the job's log names, only those of `owner` are read; ""
    reads all. `annotate`, if given, changes the job's annotation."""

    def __init__(
        self,
        log: RecordedLog,
        archived_logs: ArchivedLogs,
        event_files: EventFileService,
        archive: Callable[[], LogArchive],
        conf_dir: str,
        owner: str = "",
        annotate: Callable[[Mapping[str, Any]], Awaitable[Any]] | None = None,
    ) -> None:
        self._owner, self._annotate = owner, annotate
        self._log, self._archived_logs, self._event_files, self._archive = log, archived_logs, event_files, archive
        self.conf_dir = conf_dir

    @property
    def view(self) -> JobView:
        """Return the job's view, built from all events of the log so far."""
        return self._log.view

    @property
    def version(self) -> int:
        """Return the number of events in the job's log."""
        return self._log.version

    @property
    def directory(self) -> str:
        """Return the URI of the job's directory."""
        return self._log.directory

    @property
    def shown_owner(self) -> str:
        """Return whose files alone are shown of what the job's log names; "" for everybody's."""
        return self._owner

    def records(self, since: int, limit: int) -> tuple[int, list[Mapping[str, Any]]]:
        return self._log.records(since, limit)

    async def log(self, task: TaskId, stream: str, attempt: int, offset: int, limit: int) -> LogChunk:
        number = attempt or self.view.tasks[task].attempt
        archive, id_ = self._archive(), self.view.id
        return await self._archived_logs.read(archive, id_, task, stream, number, offset, limit, self.directory)

    async def search(self, query: LogQuery, tasks: Sequence[TaskId], attempt: int, stream: str) -> Mapping[str, Any]:
        return await self._archived_logs.search(self._archive(), self.view.id, query, tasks, attempt, stream)

    def samples(self) -> tuple[int, list[str]]:
        return self.version, []  # all samples are in the job's directory

    async def event_file_answer(self, path_and_query: str) -> tuple[int, str, bytes]:
        return await self._event_files.get(
            path_and_query, locations.event_file_locations(self.view), checkpoints(self.view), self._owner
        )

    async def act(self, action: str, arguments: Mapping[str, Any]) -> Any:
        if action != "annotate" or self._annotate is None:
            raise NotFound("this is the history server: open the job's own page to change the job")
        return await self._annotate(arguments)

    def tensorboard_url(self) -> str:
        return ""  # `howdah tensorboard` shows the event files of an ended job

    def actions(self) -> Mapping[str, bool]:
        return {"annotate": True} if self._annotate is not None else {}


class _LocalAccess(Access):
    """Lets every caller view, and none act: a caller within this process can read the files anyway."""

    def may_view(self, request: Request) -> bool:
        return True

    def may_act(self, job_id: str, token: str) -> bool:
        return False


class RecordedSource:
    """The base of all sources of recorded jobs."""

    kind, only_job_id, history, currency = "history", "", "", ""

    def __init__(self, access: Access, link_command: str) -> None:
        self.access, self.link_command = access, link_command

    def note_open_page(self, hidden: bool) -> None:
        """Do nothing: this source does not end with a job."""

    def owns_origin(self, request: Request) -> bool:
        """Return True: no engine's proxy leads here."""
        return True


class EndedJobSource(RecordedSource):
    """Answers calls about one ended job within this process: an async context manager. `log` has been read; `archive`
    has the logs of the job's tasks; `owner` is the same as in `RecordedJob`."""

    version = 0

    def __init__(self, log: RecordedLog, archive: LogArchive, conf_dir: str, owner: str = "") -> None:
        super().__init__(_LocalAccess(secrets.token_bytes(32), lambda _: None), "howdah history")
        self.only_job_id, self.engine = log.view.id, log.view.engine
        self._directory = TemporaryDirectory("howdah-logs-")
        self._archived_logs = ArchivedLogs(self._directory.path / "logs")
        self._event_files = event_file_service(conf_dir)
        self._job = RecordedJob(log, self._archived_logs, self._event_files, lambda: archive, conf_dir, owner)

    async def __aenter__(self) -> EndedJobSource:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._archived_logs.close()
        await self._event_files.close()
        self._directory.remove()

    async def job(self, job_id: str) -> JobSource | None:
        """Return the job, None for any other id."""
        return self._job if job_id == self.only_job_id else None

    async def get(self, path: str, query: str) -> Response:
        """Answer a GET of `path` below `jobs/ID/`."""
        target = f"{PREFIX}jobs/{self.only_job_id}/{path}".rstrip("/")
        request = Request("GET", f"{urllib.parse.quote(target, safe='/:')}?{query}", {}, b"", "")
        response = await ApiRouter(self).answer(request)
        if response.pieces is not None:
            await response.pieces.aclose()  # a download counts among the few at once until this is called
        return response
