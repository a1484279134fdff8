"""The source of all jobs for the API: lists come from the index, a job comes from its event log, and its logs come from
its engine."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import getpass
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from howdah.api import job_annotations
from howdah.api.auth import Access
from howdah.api.recorded_job import RecordedJob, RecordedSource, event_file_service
from howdah.api.recorded_log import RecordedLog
from howdah.api.serializers import mask_spec
from howdah.api.sources import JobSource
from howdah.api.trace import describe
from howdah.engines import Engine
from howdah.engines.info import name_of_id
from howdah.errors import Conflict, EngineUnavailable, HowdahError, NotFound, NotReady, RequestRefused
from howdah.eventfiles.client import EventFileService
from howdah.hadoop.conf import user_on
from howdah.history import csv_tables, queries
from howdah.history.index import Index
from howdah.history.index_annotations import ReadAnnotation
from howdah.history.job_log_cache import JobLogCache
from howdah.history.options import ShownCluster, conf_dir_of, find_cluster, job_key
from howdah.history.usage import usage
from howdah.logs.archived_logs import ArchivedLogs
from howdah.spec import redaction, uris
from howdah.spec.prices import Prices
from howdah.spec.view import JobView
from howdah.storage.factory import filesystem
from howdah.storage.files_of_owner import NOBODY
from howdah.wire import auth

T = TypeVar("T")


class HistoryAccess(Access):
    """Checks the tokens of a history server. The server's own key makes tokens that act on all jobs, and a key derived
    from it for each job (docs/adr/0024)."""

    def __init__(self, key: bytes) -> None:
        super().__init__(key, lambda job_id: job_key(key, job_id))

    def may_act(self, job_id: str, token: str) -> bool:
        """Return whether `token` permits its holder to change this job now."""
        return auth.may_act(self.key, token, time.time()) or super().may_act(job_id, token)


class HistorySource(RecordedSource):
    """The source of a history server. `key` makes the tokens to view; `problems` are sentences that the page shows."""

    def __init__(
        self,
        index: Index,
        clusters: tuple[ShownCluster, ...],
        conf_dir: str,
        key: bytes,
        link_command: str = "howdah history",
        prices: Prices | None = None,
    ) -> None:
        super().__init__(HistoryAccess(key), link_command)
        self.index, self.clusters, self.conf_dir = index, clusters, conf_dir
        self.prices, self.currency = prices, prices.currency if prices is not None else ""
        self.problems: list[str] = []
        self._problem_changes = 0
        self._event_files: dict[str, EventFileService] = {}
        self.archived_logs = ArchivedLogs(index.directory / "printed")
        self._logs = JobLogCache(
            lambda job_id, directory: RecordedLog(
                job_id, directory, filesystem(directory, self._conf_dir_of(directory))
            )
        )

    @property
    def engine(self) -> str:
        """Return the engine of all jobs, "" when there are several engines."""
        names = {cluster.engine.name for cluster in self.clusters}
        return names.pop() if len(names) == 1 else ""

    @property
    def version(self) -> int:
        """Return a number that grows with each change of the index and of the problems."""
        return self.index.version + self._problem_changes

    def set_problems(self, problems: list[str]) -> None:
        """Replace the problems that are shown."""
        if problems != self.problems:
            self.problems = problems
            self._problem_changes += 1

    async def job(self, job_id: str) -> JobSource | None:
        """Return the job of this id, by the present content of its log."""
        row, directory = await asyncio.to_thread(self._row, job_id)
        return await self._open_job(row, directory) if row is not None else None

    async def _open_job(self, row: Mapping[str, Any], directory: str) -> JobSource:
        try:
            log = await self._logs.get(row, directory)
        except EngineUnavailable as error:
            raise NotReady(str(error), "job") from error
        except HowdahError as error:
            raise NotFound(str(error), "job") from error
        archive = functools.partial(self._engine_of, log.view, directory, str(row["url"] or ""))
        conf_dir = self._conf_dir_of(directory)
        if conf_dir not in self._event_files:
            self._event_files[conf_dir] = event_file_service(conf_dir)
        try:
            own = log.owner == await asyncio.to_thread(self.user_on, directory)
        except HowdahError:  # a configuration that can't be read any more
            own = False
        # The writer of the log may name files that this server may read, but the writer may not.
        owner = "" if own else log.owner or NOBODY
        annotate = functools.partial(self._annotate, directory, str(row["id"]))
        return RecordedJob(log, self.archived_logs, self._event_files[conf_dir], archive, conf_dir, owner, annotate)

    async def _annotate(self, directory: str, job_id: str, changes: Mapping[str, Any]) -> Any:
        """Change a job's annotation, and show it in the list at once.

        Raises:
            RequestRefused: a value is not allowed, or this server's user may not write where the job is.
        """

        def change() -> job_annotations.Annotation:
            with self.index.reading() as connection:
                home = queries.root_of(connection, directory)
                present_tags = queries.count_tags(connection, directory)
            conf_dir = self._conf_dir_of(directory)
            files, user = filesystem(directory, conf_dir), getpass.getuser()
            changed = job_annotations.change(files, home, job_id, changes, user, time.time(), conf_dir, present_tags)
            with contextlib.suppress(sqlite3.Error):  # the next scan reads it
                if self.index.writes:
                    self.index.put_annotations(home, [ReadAnnotation(job_id, 0, 0, changed)])
            return changed

        try:
            return dataclasses.asdict(await asyncio.to_thread(change))
        except EngineUnavailable as error:
            raise NotReady(str(error), "job") from error

    def user_on(self, uri: str) -> str:
        """Return this user's name, as files have it, on the file system of a URI."""
        return str(os.getuid()) if uris.split(uri)[0] == "file" else user_on(self._conf_dir_of(uri))

    def _conf_dir_of(self, uri: str) -> str:
        return conf_dir_of(self.clusters, uri, self.conf_dir)

    async def close_event_files(self) -> None:
        """End the processes that read event files."""
        for service in self._event_files.values():
            await service.close()

    def _engine_of(self, view: JobView, directory: str, url: str) -> Engine:
        """Return the engine that keeps the logs of a job.

        Raises:
            Conflict, NotFound: the job still runs, or this server does not have its engine.
        """
        if not view.state.ended:
            raise Conflict(f"the job runs: its own page has what it prints{f', {url}' if url else ''}")
        name = name_of_id(view.id) or view.engine
        cluster = find_cluster(self.clusters, directory, name)
        if cluster is None:
            raise NotFound(f"what tasks print is kept by the engine, and {view.engine} is not here")
        return cluster.engine

    def _row(self, job_id: str, directory: str = "") -> tuple[dict[str, Any] | None, str]:
        """Return the row of a job, by default the newest of this id, and its directory."""
        with self.index.reading() as connection:
            directory = directory or queries.newest_directory(connection, job_id)
            row = queries.row_of(connection, job_id, directory, time.time(), self.prices)
            return row and self._with_cluster(row), directory

    def _with_cluster(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row of the list with its cluster's name in place of its root."""
        root = row.pop("root")
        cluster = find_cluster(self.clusters, root, row["engine"])
        return {**row, "cluster": cluster.name if cluster is not None and cluster.has(root) else ""}

    async def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            with self.index.reading() as connection:
                return read(connection)

        return await asyncio.to_thread(run)

    async def jobs(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the jobs that the query asks for, one page of them."""
        found = await self._read(lambda connection: queries.page(connection, query, time.time(), prices=self.prices))
        return {**found, "jobs": list(map(self._with_cluster, found["jobs"])), "problems": list(self.problems)}

    async def jobs_csv(self, query: Mapping[str, str]) -> tuple[str, str]:
        """Return a file's name and, as CSV, the jobs that the query asks for. If there are more than one file may have,
        its name says how many of how many it has."""
        query = {"limit": str(csv_tables.MAX_ROWS), **query}
        found = await self._read(
            lambda connection: queries.page(connection, query, time.time(), csv_tables.MAX_ROWS, self.prices)
        )
        columns = query.get("columns", "")
        rows, total = found["jobs"], found["total"]
        name = "jobs.csv" if len(rows) == total else f"jobs-{len(rows)}-of-{total}.csv"
        table = functools.partial(csv_tables.jobs_table, map(self._with_cluster, rows), columns, self.currency)
        return name, await asyncio.to_thread(table)

    async def users(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        """Return what the jobs used, by user or another group."""
        return await self._read(lambda connection: usage(connection, query, self.prices))

    async def users_csv(self, query: Mapping[str, str]) -> str:
        """Return the answer of `users` as CSV."""
        return csv_tables.usage_table(await self.users(query))

    async def compare(self, ids: Sequence[str], equal: bool = False) -> Mapping[str, Any]:
        """Return the differences between the specs of jobs, and between the facts that were recorded at their
        submission; with `equal` also the places at which all jobs agree. If there is only one job, it is compared with
        the last run before it."""
        if len(ids) == 1:
            ids = [await self._previous_run(ids[0]), ids[0]]
        views: list[JobView] = []
        for id_ in ids:
            job = await self.job(id_)
            if job is None:
                raise NotFound(f"no job {id_[:80]}", "jobs")
            views.append(job.view)
        specs = [mask_spec(view.job) if view.job else {} for view in views]
        rows = [row for row, _ in [await asyncio.to_thread(self._row, id_) for id_ in ids]]
        return {
            "jobs": rows,
            "spec": list(differences(specs, equal=equal)),
            "captured": list(differences(list(map(_submission_record, views)), equal=equal)),
        }

    async def _previous_run(self, id_: str) -> str:
        """Return the id of the last run of a job's name, by the same user, that began before it.

        Raises:
            NotFound: there is none.
        """
        if found := await self._read(lambda connection: queries.previous_run(connection, id_)):
            return found
        raise NotFound(f"there is no earlier run of the name of {id_[:80]}", "jobs")

    async def row(self, job_id: str) -> Mapping[str, Any] | None:
        """Return the row of a job, None if there is none."""
        return (await asyncio.to_thread(self._row, job_id))[0]

    async def trace(self, of: str) -> Mapping[str, Any] | None:
        """Return the job and task that a container, process or GPU belongs to now, or belonged to last."""
        found = await self._read(lambda connection: queries.trace(connection, of.strip()))
        if found is None:
            return None
        row, directory = await asyncio.to_thread(self._row, found["job"], found["directory"])
        try:
            job = await self._open_job(row, directory) if row is not None else None
        except RequestRefused:  # the log can't be read now: answer with what the index knows
            job = None
        view = job.view if job is not None else JobView(id=found["job"])
        described: dict[str, Any] = {**describe(view, found["task"], found["attempt"])}
        known = {name: row[name] for name in ("name", "state", "user", "queue", "engine") if row[name]} if row else {}
        return {**described, **known, "url": (row or {}).get("url") or described["url"]}


def differences(values: Sequence[Any], path: str = "", equal: bool = False) -> Iterator[dict[str, Any]]:
    """Yield `{"path", "a", "b", "values"}` for each place where JSON values differ; with `equal` for all others, too.
    `a` and `b` are the first two of the `values`; one that is missing is null."""
    if all(isinstance(value, dict) for value in values):
        for key in dict.fromkeys(key for value in values for key in value):
            yield from differences([value.get(key) for value in values], f"{path}.{key}" if path else str(key), equal)
    elif all(isinstance(value, list) for value in values) and any(isinstance(x, dict) for each in values for x in each):
        for number in range(max(map(len, values))):
            items = [value[number] if number < len(value) else None for value in values]
            yield from differences(items, f"{path}.{number}", equal)
    elif equal or any(value != values[0] for value in values):
        yield {"path": path, "a": values[0], "b": values[1], "values": list(values)}


def _submission_record(view: JobView) -> dict[str, Any]:
    note = view.submission
    kept = {"git_commit": note.git_commit, "git_dirty": note.git_dirty, "packages": dict(note.packages)}
    return {**kept, "command": redaction.words(note.command), "client": note.client, "python": view.python}
