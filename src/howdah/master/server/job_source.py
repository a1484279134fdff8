"""The one job of this master, as the web side asks for it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from howdah.api import history_servers
from howdah.api.auth import Access
from howdah.api.http_server import Caller, Request
from howdah.api.sources import JobSource
from howdah.config.paths import state_directory
from howdah.logs.search import LogQuery
from howdah.master.server import user_actions
from howdah.spec import State, TaskId
from howdah.spec.view import JobView
from howdah.wire import auth
from howdah.wire.messages import LogChunk
from howdah.wire.tensorboard_link import link

if TYPE_CHECKING:
    from howdah.eventfiles.client import EventFileService
    from howdah.master.server.app import MasterServer


class MasterSource:
    """Both a source and the only job of it."""

    kind, conf_dir = "master", ""

    def __init__(self, api: MasterServer, directory: str) -> None:
        self._api, self._directory = api, directory
        self._service: EventFileService | None = None
        self.access = Access(api.job_key, self._key, api.admits)

    def _key(self, job_id: str) -> bytes | None:
        return self._api.job_key if job_id == self.only else None

    @property
    def engine(self) -> str:
        """The engine's name."""
        return self.view.engine

    @property
    def only(self) -> str:
        """The job's id."""
        return self._api.state.id

    @property
    def view(self) -> JobView:
        """As it is now."""
        return self._api.log.view

    @property
    def version(self) -> int:
        """Grows with each event."""
        return self._api.log.version

    @property
    def directory(self) -> str:
        """URI of the job's directory."""
        return self._directory

    @property
    def link_command(self) -> str:
        """The command that prints a link to this page."""
        return "howdah page ID"

    @property
    def history(self) -> str:
        """Address of a history server that shows the job after its end: the one that is configured, else the one that
        runs on this machine where the job is this machine's."""
        configured = self._api.director.staged.settings.get("history_url", "")
        if configured or not self._directory.startswith("file:"):
            return configured
        folder = state_directory(os.environ) / "history"
        return next((link.partition("#")[0] for link in history_servers.links(folder)), "")

    def owns_origin(self, request: Request) -> bool:
        """Whether the browser that asks sees this server at an origin of its own, not behind the engine's proxy."""
        return not self._api.admits(request.peer, self.view.user)

    async def job(self, job_id: str) -> JobSource | None:
        """Itself, by its id."""
        return self if job_id == self.only else None

    def identify(self, request: Request) -> Caller | None:
        """Who has a token, by the request's head alone."""
        return self.access.identify(request)

    def may_view(self, request: Request) -> bool:
        """Whether who asks may look."""
        return self.access.may_view(request)

    def note_open_page(self, hidden: bool) -> None:
        """Stay after the end until this page, which is open in a tab, has shown it."""
        self._api.pages.note_question(hidden, time.monotonic())

    def may_embed(self, job_id: str, request: Request) -> bool:
        """Whether who asks may see the curves."""
        return self.access.may_embed(job_id, request)

    def may_act(self, job_id: str, token: str) -> bool:
        """Whether `token` lets its holder change the job now."""
        return self.access.may_act(job_id, token)

    def records(self, since: int, limit: int) -> tuple[int, list[Mapping[str, Any]]]:
        """Events from number `since` on, and the number to ask from next."""
        found: list[Mapping[str, Any]] = [*self._api.log.records[since : since + limit]]
        return since + len(found), found

    async def log(self, task: TaskId, stream: str, attempt: int, offset: int, limit: int) -> LogChunk:
        """From the task's executor while it is alive, else from where it lies."""
        return await self._api.printed.read(task, stream, attempt, offset, limit)

    async def search(self, wish: LogQuery, tasks: Sequence[TaskId], attempt: int, stream: str) -> Mapping[str, Any]:
        """By the executors, and where earlier attempts lie."""
        return await self._api.printed.search(wish, tasks, attempt, stream)

    def samples(self) -> tuple[int, list[str]]:
        """Of the bucket that is open."""
        series = self._api.series
        return (series.version, series.unwritten()) if series is not None else (0, [])

    async def curves(self, path_and_query: str) -> tuple[int, str, bytes]:
        """From the curves service, which is started when it is first asked."""
        from howdah.api.handlers import curves as relayed
        from howdah.eventfiles import locations
        from howdah.eventfiles.client import EventFileService

        self._service = self._service or EventFileService()
        return await self._service.get(path_and_query, locations.of(self.view), relayed.checkpoints(self.view))

    async def close(self) -> None:
        """Let go of the service."""
        if self._service is not None:
            await self._service.close()

    async def act(self, action: str, wish: Mapping[str, Any]) -> Any:
        """Do what somebody wants who has the owner's word for it."""
        return await user_actions.execute(self._api, action, wish, f"{self.view.user} (page)")

    def board(self) -> str:
        """Of the one in a container of the job's, or of the job that is one."""
        if self._api.showing is not None and self._api.showing.link:
            return self._api.showing.link
        task = next(iter(self.view.tasks.values()), None)
        if task is None or self._api.state.job.framework != "board" or task.state is not State.RUNNING:
            return ""
        return link(task.host, task.ports["main"], auth.gang_key(self._api.job_key))

    def actions(self) -> Mapping[str, bool]:
        """The actions there are, and whether each is possible now."""
        return {name: wish.possible(self._api) for name, wish in user_actions.USER_ACTIONS.items() if name != "check"}
