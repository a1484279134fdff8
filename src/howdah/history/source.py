"""All jobs, as the web side asks for them: lists from the index, a job from its log, its output from its engine."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from howdah.api.auth import Access
from howdah.api.handlers.curves import checkpoints
from howdah.api.http_server import Caller, Request
from howdah.api.serializers import masked
from howdah.api.sources import ApiError, JobSource
from howdah.api.trace import describe
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, HowdahError
from howdah.eventfiles import locations
from howdah.eventfiles.client import EventFileService
from howdah.history import queries
from howdah.history.archived_logs import ArchivedLogs
from howdah.history.index import Index
from howdah.history.job_views import HeldJob, HeldJobs
from howdah.history.log_search import environment
from howdah.history.options import job_key
from howdah.logs.search import LogQuery
from howdah.spec import TaskId, redaction
from howdah.spec.view import JobView
from howdah.storage.filesystem import filesystem
from howdah.wire.messages import LogChunk

T = TypeVar("T")


class HistorySource:
    """`key` makes the tokens to look. `problems` are sentences that people who look should see."""

    kind, only = "history", ""

    history = ""
    """It is one itself."""

    def __init__(
        self, index: Index, engines: tuple[Engine, ...], conf_dir: str, key: bytes, link_command: str = "howdah history"
    ) -> None:
        self.index, self.engines, self.conf_dir, self.link_command = index, engines, conf_dir, link_command
        self.problems: list[str] = []
        self._notices = 0
        self.curves = EventFileService(_environment(conf_dir))
        self.printed = ArchivedLogs(index.folder / "printed")
        self.access = Access(key, lambda id_: job_key(key, id_))
        self._held = HeldJobs(lambda id_, directory: HeldJob(id_, directory, filesystem(directory, conf_dir)))

    @property
    def engine(self) -> str:
        """The engine whose jobs these are, as far as there is one."""
        return self.engines[0].name if len(self.engines) == 1 else ""

    @property
    def version(self) -> int:
        """Grows with each change of the index, and of the problems."""
        return self.index.version + self._notices

    def notice(self, problems: list[str]) -> None:
        """These are the problems now."""
        if problems != self.problems:
            self.problems = problems
            self._notices += 1

    async def job(self, job_id: str) -> JobSource | None:
        """The job of this id, as its log is now."""
        row, directory = await asyncio.to_thread(self._row, job_id)
        if row is None:
            return None
        try:
            return HistoryJob(self, await self._held.get(row, directory), row)
        except EngineUnavailable as error:
            raise ApiError(503, str(error), "job") from error
        except HowdahError as error:
            raise ApiError(404, str(error), "job") from error

    def _row(self, job_id: str) -> tuple[dict[str, Any] | None, str]:
        with self.index.reading() as connection:
            found = connection.execute("SELECT directory FROM job WHERE id = ?", (job_id,)).fetchone()
            return queries.row_of(connection, job_id, time.time()), found[0] if found else ""

    async def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            with self.index.reading() as connection:
                return read(connection)

        return await asyncio.to_thread(run)

    def identify(self, request: Request) -> Caller | None:
        """Who has a token, by the request's head alone."""
        return self.access.identify(request)

    def may_view(self, request: Request) -> bool:
        """Whether who asks may look."""
        return self.access.may_view(request)

    def may_embed(self, job_id: str, request: Request) -> bool:
        """Whether who asks may see the curves of this job."""
        return self.access.may_embed(job_id, request)

    def note_open_page(self, hidden: bool) -> None:
        """Nothing: this server does not end with a job."""

    def owns_origin(self, request: Request) -> bool:
        """Always: no engine's proxy leads here."""
        return True

    def may_act(self, job_id: str, token: str) -> bool:
        """A job is changed through its own master only."""
        return False

    async def jobs(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        """A page of the list."""
        found = await self._read(lambda connection: queries.page(connection, query, time.time()))
        return {**found, "problems": list(self.problems)}

    async def users(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        """Jobs and GPU-hours by user."""
        return {"users": await self._read(lambda connection: queries.users(connection, query))}

    async def compare(self, one: str, other: str) -> Mapping[str, Any]:
        """Where two jobs' specs, and what was noted at their submission, differ."""
        found = [await self.job(one), await self.job(other)]
        if None in found:
            raise ApiError(404, f"no job {(one, other)[found.index(None)][:80]}", "jobs")
        views = [job.view for job in found if job is not None]
        specs = [masked(view.job) if view.job else {} for view in views]
        spec, noted = differences(specs[0], specs[1]), differences(_captured(views[0]), _captured(views[1]))
        both = [await asyncio.to_thread(self._row, id_) for id_ in (one, other)]
        return {"jobs": [row for row, _ in both], "spec": list(spec), "captured": list(noted)}

    async def trace(self, of: str) -> Mapping[str, Any] | None:
        """Whose a container, process or GPU is, or was last."""
        found = await self._read(lambda connection: queries.trace(connection, of.strip()))
        if found is None:
            return None
        row, _ = await asyncio.to_thread(self._row, found["job"])
        try:
            job = await self.job(found["job"])
        except ApiError:  # its log can't be read now; what the list knows of it is more than nothing
            job = None
        view = job.view if job is not None else JobView(id=found["job"])
        whole: dict[str, Any] = {**describe(view, found["task"], found["attempt"])}
        known = {name: row[name] for name in ("name", "state", "user", "queue", "engine") if row[name]} if row else {}
        return {**whole, **known, "url": (row or {}).get("url") or whole["url"]}


class HistoryJob:
    """One of them, while an answer is made."""

    def __init__(self, source: HistorySource, held: HeldJob, row: Mapping[str, Any]) -> None:
        self._source, self._held, self._row = source, held, row

    @property
    def view(self) -> JobView:
        """The fold of its log."""
        return self._held.view

    @property
    def version(self) -> int:
        """Grows as the log does."""
        return self._held.version

    @property
    def directory(self) -> str:
        """URI of its directory."""
        return self._held.directory

    def records(self, since: int, limit: int) -> tuple[int, list[Mapping[str, Any]]]:
        """Events from number `since` on, and the number to ask from next."""
        return self._held.records(since, limit)

    async def log(self, task: TaskId, stream: str, attempt: int, offset: int, limit: int) -> LogChunk:
        """From where the engine keeps it after the job's end."""
        number = attempt or self.view.tasks[task].attempt
        return await self._source.printed.read(self._engine(), self.view.id, task, stream, number, offset, limit)

    async def search(self, wish: LogQuery, tasks: Sequence[TaskId], attempt: int, stream: str) -> Mapping[str, Any]:
        """There, too."""
        return await self._source.printed.search(self._engine(), self.view.id, wish, tasks, attempt, stream)

    def samples(self) -> tuple[int, list[str]]:
        """All there is is in the job's directory."""
        return self.version, []

    def _engine(self) -> Engine:
        """Whose job it was.

        Raises:
            Refused: it runs still, or its engine is not here.
        """
        if not self.view.state.ended:
            where = self._row["url"]
            raise ApiError(409, f"the job runs: its own page has what it prints{f', {where}' if where else ''}")
        name = "yarn" if self.view.id.startswith("application_") else self.view.engine
        engine = next((each for each in self._source.engines if each.name == name), None)
        if engine is None:
            raise ApiError(404, f"what tasks print is kept by the engine, and {self.view.engine} is not here")
        return engine

    async def curves(self, path_and_query: str) -> tuple[int, str, bytes]:
        """From the curves service."""
        answer = await self._source.curves.get(path_and_query, locations.of(self.view), checkpoints(self.view))
        return answer.status, answer.content_type, answer.body

    async def act(self, action: str, wish: Mapping[str, Any]) -> Any:
        """Nothing is changed from here."""
        raise ApiError(404, "a job is changed on its own page only")

    def board(self) -> str:
        """None: `howdah tensorboard` shows what a job has left."""
        return ""

    def actions(self) -> Mapping[str, bool]:
        """None."""
        return {}


def _environment(conf_dir: str) -> dict[str, str]:
    """Of the curves service, which reads with the same configuration."""
    return {**environment(), **({"HADOOP_CONF_DIR": conf_dir} if conf_dir else {})}


def differences(one: Any, other: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """`{"path", "a", "b"}` of each place where two JSON values differ; null is for what is not there."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            yield from differences(one.get(key), other.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(one, list) and isinstance(other, list) and any(isinstance(each, dict) for each in one + other):
        for number in range(max(len(one), len(other))):
            left, right = (values[number] if number < len(values) else None for values in (one, other))
            yield from differences(left, right, f"{path}.{number}")
    elif one != other:
        yield {"path": path, "a": one, "b": other}


def _captured(view: JobView) -> dict[str, Any]:
    note = view.submission
    kept = {"git_commit": note.git_commit, "git_dirty": note.git_dirty, "packages": dict(note.packages)}
    return {**kept, "command": redaction.words(note.command), "client": note.client, "python": view.python}
