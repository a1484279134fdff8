"""Presents this master's job to the page's API."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from howdah.api import history_servers
from howdah.api.auth import Access
from howdah.api.http_server import Request
from howdah.api.sources import JobSource
from howdah.localfiles.own_directories import state_directory
from howdah.logs.query import LogQuery
from howdah.master.server import user_actions
from howdah.spec import State, TaskId
from howdah.spec.view import JobView
from howdah.wire import auth
from howdah.wire.messages import LogChunk
from howdah.wire.tensorboard_command import link

if TYPE_CHECKING:
    from howdah.eventfiles.client import EventFileService
    from howdah.master.server.server import MasterServer


class MasterSource:
    """Serves the master's job as the API's source of jobs (see `howdah.api.sources`)."""

    kind, conf_dir = "master", ""

    def __init__(self, api: MasterServer, directory: str) -> None:
        self._api, self._directory = api, directory
        self._service: EventFileService | None = None
        self.access = Access(api.job_key, self._key, api.trusts_proxy_request)

    def _key(self, job_id: str) -> bytes | None:
        return self._api.job_key if job_id == self.only_job_id else None

    @property
    def engine(self) -> str:
        """Return the name of the job's engine."""
        return self.view.engine

    @property
    def only_job_id(self) -> str:
        """Return the job's id."""
        return self._api.state.id

    @property
    def view(self) -> JobView:
        """Return the view of the job."""
        return self._api.log.view

    @property
    def version(self) -> int:
        """Return the number of events in the job's log."""
        return self._api.log.version

    @property
    def directory(self) -> str:
        """Return the URI of the job's directory."""
        return self._directory

    @property
    def link_command(self) -> str:
        """Return the command that prints a link to this page."""
        return "howdah page ID"

    @property
    def currency(self) -> str:
        """Return "": a master knows no prices."""
        return ""

    @property
    def history(self) -> str:
        """Return the address of a history server that shows the job after its end: the configured one, else the one
        that runs on this machine when the job is this machine's."""
        configured = self._api.order_builder.staged.settings.get("history_url", "")
        if configured or not self._directory.startswith("file:"):
            return configured
        directory = state_directory(os.environ) / "history"
        return next((link.partition("#")[0] for link in history_servers.links(directory)), "")

    def owns_origin(self, request: Request) -> bool:
        """Return whether the browser reaches this server at an origin of its own, not behind the engine's proxy."""
        return not self._api.trusts_proxy_request(request.peer, self.view.user)

    async def job(self, job_id: str) -> JobSource | None:
        return self if job_id == self.only_job_id else None

    def note_open_page(self, hidden: bool) -> None:
        """Note that a page is open in a tab, so that the master stays after the end until the page has shown it."""
        self._api.open_pages.note_request(hidden, time.monotonic())

    def records(self, since: int, limit: int) -> tuple[int, list[Mapping[str, Any]]]:
        found: list[Mapping[str, Any]] = [*self._api.log.records[since : since + limit]]
        return since + len(found), found

    async def log(self, task: TaskId, stream: str, attempt: int, offset: int, limit: int) -> LogChunk:
        """Return output of a task, from its executor while that runs, else from the file."""
        return await self._api.task_logs.read(task, stream, attempt, offset, limit)

    async def search(self, query: LogQuery, tasks: Sequence[TaskId], attempt: int, stream: str) -> Mapping[str, Any]:
        return await self._api.task_logs.search(query, tasks, attempt, stream)

    def samples(self) -> tuple[int, list[str]]:
        return self._api.metrics_recorder.version, self._api.metrics_recorder.unwritten()

    async def event_file_answer(self, path_and_query: str) -> tuple[int, str, bytes]:
        """Return the answer of the event-file process, which starts with the first request."""
        from howdah.api.handlers import curves as relayed
        from howdah.eventfiles import locations
        from howdah.eventfiles.client import EventFileService

        self._service = self._service or EventFileService()
        return await self._service.get(
            path_and_query, locations.event_file_locations(self.view), relayed.checkpoints(self.view)
        )

    async def close(self) -> None:
        """End the event-file process."""
        if self._service is not None:
            await self._service.close()

    async def act(self, action: str, arguments: Mapping[str, Any]) -> Any:
        return await user_actions.execute(self._api, action, arguments, f"{self.view.user} (page)")

    @property
    def shown_owner(self) -> str:
        """Return "": the master's own files are shown."""
        return ""

    def tensorboard_url(self) -> str:
        """Return the link to TensorBoard: to the one in a container of this job, or to this job if it is a TensorBoard
        itself."""
        if self._api.tensorboard.link:
            return self._api.tensorboard.link
        task = next(iter(self.view.tasks.values()), None)
        if task is None or self._api.state.job.framework != "board" or task.state is not State.RUNNING:
            return ""
        return link(task.host, task.ports["main"], auth.gang_key(self._api.job_key))

    def actions(self) -> Mapping[str, bool]:
        return {
            name: action.possible(self._api) for name, action in user_actions.USER_ACTIONS.items() if name != "check"
        }
