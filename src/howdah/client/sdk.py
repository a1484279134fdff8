"""`howdah.Client`: everything the command line and the page do, for programs.

    client = howdah.Client()                               # this machine's configuration: local jobs, and the cluster's
    client = howdah.Client("http://history:18488/#token=…") # a history server, or one job's page, by its link

    job_id = client.submit("job.yaml")
    for view in client.follow(job_id):
        print(view.state, view.progress)

What goes wrong is one of `howdah.errors`: the same as the command line says, with the same words.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from howdah.client.api_client import ApiClient
from howdah.client.jobs_api import JobsApi
from howdah.client.local_jobs import LocalJobs
from howdah.client.remote_jobs import RemoteJobs
from howdah.client.view_changes import changes
from howdah.spec import JobReport, JobSpec, Outcome, TaskId
from howdah.spec.view import JobView


class Client:
    """Without a `url` jobs are found by the engines that are configured here (`engine`, `profile` choose); with one by
    the server there, whose link holds the tokens unless `token` and `act` are given."""

    def __init__(self, url: str = "", *, token: str = "", act: str = "", engine: str = "", profile: str = "") -> None:
        self._jobs: JobsApi = RemoteJobs(ApiClient(url, token, act)) if url else LocalJobs(engine, profile)

    def submit(
        self,
        job: JobSpec | Path | str,
        *,
        base: Path | str = ".",
        sets: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> str:
        """Submit a job, or a job file with `sets` applied as `--set` does; its id. `base` is where relative paths of a
        JobSpec begin.

        Raises:
            SpecError, StagingError, EngineRejected, EngineUnavailable: why it cannot run.
        """
        return self._jobs.submit(job, Path(base), sets or {}, overwrite)

    def jobs(self, **filters: Any) -> list[JobReport]:
        """Jobs, the newest first: `limit` of them that have one of these `user`s, `queue`s and `state`s (with commas
        between), `name` in their name, all words of `text` in name, id or diagnostics, and began between `from` and
        `to` (epoch seconds). A history server has `framework` and `sort` as well.

        Raises:
            SpecError: there is no such filter, or not of this value.
        """
        return self._jobs.jobs(filters)

    def job(self, job_id: str) -> JobView:
        """A job as it is now."""
        return self._jobs.job(job_id)

    def follow(self, job_id: str) -> Iterator[JobView]:
        """Yield the job's view at once, after changes at most once a second, and a last time when it has ended.

        The view is one object, which is brought up to date."""
        return changes(self._jobs.views(job_id))

    def wait(self, job_id: str, timeout_s: float | None = None) -> Outcome:
        """How it ended, when it has.

        Raises:
            TimeoutError: it goes on after `timeout_s` seconds.
        """
        began = time.monotonic()
        for view in self._jobs.views(job_id):
            if view.outcome is not None:
                return view.outcome
            if timeout_s is not None and time.monotonic() - began > timeout_s:
                break
        raise TimeoutError(f"{job_id} goes on after {timeout_s:g} s")

    def logs(self, job_id: str, task: TaskId | str, stream: str = "stdout") -> Iterator[str]:
        """What a task has printed so far, in pieces; bytes that are no UTF-8 are replaced."""
        return self._jobs.logs(job_id, TaskId.parse(task) if isinstance(task, str) else task, stream)

    def curves(self, job_id: str, tag: str = "", runs: tuple[str, ...] = (), points: int = 1000) -> Mapping[str, Any]:
        """Lines of `tag` from the job's event files; without a tag the runs, and what there is of each. The shapes are
        those of `curves/scalars` and `curves/runs` in docs/api.md."""
        if not tag:
            return self.call(job_id, "curves/runs")
        return self.call(job_id, "curves/scalars", tag=tag, run=runs or None, points=points)

    def call(self, job_id: str, path: str = "", /, **query: Any) -> Mapping[str, Any]:
        """Return the JSON of any call of docs/api.md below `jobs/ID/`, whether the job runs or has ended.

        Raises:
            SpecError: a parameter is wrong, or the answer of this call is not JSON.
        """
        return self._jobs.call(job_id, path, query)

    def save(self, job_id: str, output: int = -1) -> list[tuple[int, int]]:
        """Have outputs copied as they are now (-1: all); pairs of an output and its copy's number."""
        return self._jobs.save(job_id, output)

    def stacks(self, job_id: str, task: str = "", native: bool = False) -> Mapping[str, Any]:
        """What the programs are doing right now (`task`: that one's alone; `native`: with the frames of compiled code):
        `stacks` is text by task, `uri` where it is kept, `problem` why it is not."""
        return self._jobs.stacks(job_id, str(task), native)

    def tensorboard(self, job_id: str, idle_s: float = 1800.0) -> str:
        """The address of the job's TensorBoard, which is started beside it if need be and ends when nobody has looked
        for `idle_s` seconds. Returns when it is open, after five minutes at most.

        Raises:
            JobEnded: the job has ended. RequestRefused: TensorBoard ended. EngineUnavailable: it is not open in time.
        """
        return self._jobs.tensorboard(job_id, idle_s)

    def end_tensorboard(self, job_id: str) -> None:
        """End it; nothing when it does not run."""
        self._jobs.end_tensorboard(job_id)

    # Of all jobs, by a history server: that at the address, else the one that is configured here, or runs as a job.

    def trace(self, of: str) -> Mapping[str, Any]:
        """Whose a container, `host:pid` of a program, or `host/gpu3` is or was: `trace` in docs/api.md.

        Raises:
            NotFound: no known job had it, or no history server is known.
        """
        found: Mapping[str, Any] = self._jobs.history().get("trace", of=of)
        return found

    def users(self, begin: float | None = None, end: float | None = None) -> list[Mapping[str, Any]]:
        """Jobs and GPU-hours by user, of jobs between two moments (epoch seconds): rows of `users` in docs/api.md."""
        found: list[Mapping[str, Any]] = self._jobs.history().get("users", **{"from": begin, "to": end})["users"]
        return found

    def compare(self, one: str, other: str) -> Mapping[str, Any]:
        """Two jobs side by side: `compare` in docs/api.md."""
        found: Mapping[str, Any] = self._jobs.history().get("compare", jobs=f"{one},{other}")
        return found

    def cancel(self, job_id: str) -> None:
        """End it. Without an address this returns when it has ended."""
        self._jobs.cancel(job_id)
