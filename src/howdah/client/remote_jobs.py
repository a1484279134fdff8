"""The jobs of a history server or of one master, reached by the server's address, for `howdah.Client`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from howdah.api.curve_schemas import Stacks
from howdah.client.api_client import ApiClient
from howdah.client.job_filter import OF_REPORTS, OF_SERVERS, read_filters
from howdah.client.jobs_api import BegunSnapshot, JobsApi
from howdah.client.wait_for_tensorboard import wait_until_open
from howdah.errors import RequestRefused, StagingError
from howdah.spec import JobReport, JobSpec, State, TaskId
from howdah.spec.event_lines import read_record
from howdah.spec.events import Event
from howdah.spec.fold import fold_recorded
from howdah.spec.view import JobView

POLL_S = 1.0
LOG_BYTES = 1 << 20


class RemoteJobs(JobsApi):
    """The jobs of the server that `remote` calls."""

    def __init__(self, remote: ApiClient) -> None:
        self.remote = remote

    def submit(
        self, job: JobSpec | Path | str, base_directory: Path, sets: Mapping[str, object], overwrite: bool
    ) -> str:
        raise RequestRefused(
            "jobs are submitted from where the cluster is configured: make a Client without an address"
        )

    def jobs(self, filters: Mapping[str, Any]) -> list[JobReport]:
        only = self.remote.get("server")["job"]
        wanted, max_jobs = read_filters(filters, OF_REPORTS if only else (*OF_REPORTS, *OF_SERVERS))
        if only:
            report = _report(self.remote.get(f"jobs/{only}"))
            return [report] if wanted.fits(report) else []
        return self.list_jobs(wanted.query | {name: filters[name] for name in OF_SERVERS if name in filters}, max_jobs)

    def list_jobs(self, query: Mapping[str, str], max_jobs: int | None) -> list[JobReport]:
        """Return the first `max_jobs` jobs of a history server's answer to `query`."""
        rows = self.remote.pages("jobs", "jobs", limit=min(max_jobs or 500, 500), **query)
        return [_report(row) for row in islice(rows, max_jobs)]

    def job(self, job_id: str) -> JobView:
        _, view = self._read(job_id, 0, JobView(id=job_id))
        return view

    def views(self, job_id: str) -> Iterator[JobView]:
        since, view = 0, JobView(id=job_id)
        while True:
            since, view = self._read(job_id, since, view)
            yield view
            if view.outcome is not None:
                return
            time.sleep(POLL_S)

    def logs(self, job_id: str, task: TaskId, stream: str) -> Iterator[str]:
        offset = 0
        while True:
            path = f"jobs/{job_id}/logs/{task}"
            answer = self.remote.get(path, stream=stream, offset=offset, limit=LOG_BYTES)
            yield answer["text"]
            if answer["next"] >= answer["size"] or answer["next"] == offset:
                return
            offset = answer["next"]

    def call(self, job_id: str, path: str, query: Mapping[str, Any]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.remote.get(f"jobs/{job_id}/{path}".rstrip("/"), **query)
        return found

    def save(self, job_id: str, output: int) -> list[BegunSnapshot]:
        answer = self.remote.act(job_id, "save", output=output)
        return [BegunSnapshot(int(number), int(snapshot)) for number, snapshot in answer["saves"]]

    def stacks(self, job_id: str, task: str, native: bool) -> Stacks:
        found: Stacks = self.remote.act(job_id, "stacks", task=task, native=native)
        return found

    def tensorboard(self, job_id: str, idle_s: float) -> str:
        return wait_until_open(
            job_id, lambda: self.remote.act(job_id, "tensorboard", idle_s=idle_s), self._changes(job_id)
        )

    def end_tensorboard(self, job_id: str) -> None:
        self.remote.act(job_id, "tensorboard/stop")

    def history(self) -> ApiClient:
        return self.remote

    def cancel(self, job_id: str) -> None:
        self.remote.act(job_id, "cancel")

    def _changes(self, job_id: str) -> Iterator[list[Event]]:
        """Yield all later events: an empty list at once, then a list each second."""
        since, _ = self.remote.records(job_id)
        yield []
        while True:
            time.sleep(POLL_S)
            since, records = self.remote.records(job_id, since)
            yield [event for record in records if (event := read_record(record)) is not None]

    def _read(self, job_id: str, since: int, view: JobView) -> tuple[int, JobView]:
        """Fold new events and the present usage of tasks into `view`; return the number to ask from next, and the
        view."""
        since, records = self.remote.records(job_id, since)
        fold_recorded((event for record in records if (event := read_record(record)) is not None), view)
        for row in self.remote.get(f"jobs/{job_id}/tasks")["tasks"]:
            task = view.tasks.get(TaskId.parse(row["task"]))
            if task is not None:
                sample = {name: row[name] for name in ("progress", "cpu", "memory_mib", "peak_mib")}
                task.usage = dataclasses.replace(task.usage, **sample)
        return since, view


def _report(row: Mapping[str, Any]) -> JobReport:
    try:
        known = {name: row[name] for name in ("user", "queue", "started", "finished", "progress", "diagnostics")}
        known |= {
            "tags": tuple(row.get("tags", ())),
            "note": row.get("note", ""),
            "archived": row.get("archived", False),
        }
        return JobReport(row["id"], row["name"], State(row["state"]), row["engine"], master=row.get("url", ""), **known)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise StagingError(f"the server answers what this version does not know: {error}") from error
