"""`howdah.Client`: everything the command line and the page do, for programs.

    client = howdah.Client()                               # this machine's configuration: local jobs, and the cluster's
    client = howdah.Client("http://history:18488/#token=…") # a history server, or one job's page, by its link

    job_id = client.submit("job.yaml")
    for view in client.follow(job_id):
        print(view.state, view.progress)

Errors are those of `howdah.errors`, with the messages that the command line prints.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, overload

from howdah.api.curve_schemas import Lines, Runs, Stacks
from howdah.api.history_schemas import Compare, UserRow
from howdah.api.schemas import TraceResult
from howdah.client.api_client import ApiClient
from howdah.client.jobs_api import ALL_OUTPUTS, BegunSnapshot, JobsApi
from howdah.client.local_jobs import LocalJobs
from howdah.client.remote_jobs import RemoteJobs
from howdah.errors import InvalidRequest
from howdah.logs.query import stream_of
from howdah.logs.stream_index import STREAMS
from howdah.spec import JobReport, JobSpec, Outcome, State, TaskId
from howdah.spec.view import JobView

MIN_INTERVAL_S = 1.0
"""Least seconds between two views that `Client.follow` yields."""


class Client:
    """Without a `url` the engines that are configured on this machine find the jobs; `engine` and `profile` choose
    them. With a `url` the server at that address finds them; the link holds the tokens unless `token` and `act` are
    given."""

    def __init__(self, url: str = "", *, token: str = "", act: str = "", engine: str = "", profile: str = "") -> None:
        self._jobs: JobsApi = RemoteJobs(ApiClient(url, token, act)) if url else LocalJobs(engine, profile)

    def submit(
        self,
        job: JobSpec | Path | str,
        *,
        base_directory: Path | str = ".",
        sets: Mapping[str, object] | None = None,
        overwrite: bool = False,
        base: Path | str = "",
    ) -> str:
        """Submit a job, or a job file with `sets` (texts, numbers or booleans) applied as `--set` does, and return its
        id. Relative paths of a JobSpec start at `base_directory`, of which `base` is the earlier name.

        Raises:
            SpecError, StagingError, EngineRejected, EngineUnavailable: the job cannot run; the message says why.
        """
        return self._jobs.submit(job, Path(base or base_directory), sets or {}, overwrite)

    def jobs(
        self,
        *,
        user: str | Collection[str] | None = None,
        queue: str | Collection[str] | None = None,
        state: State | str | Collection[State | str] | None = None,
        name: str | None = None,
        text: str | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int | None = None,
        framework: str | None = None,
        sort: str | None = None,
        **moments: float,
    ) -> list[JobReport]:
        """Return jobs, the newest first, at most `limit`. `user`, `queue` and `state` are one or several values (a text
        may have commas between them), `name` is a part of the job's name, all words of `text` must be in the job's
        name, id or diagnostics, and the job began between `since` and `until` (epoch seconds). Only a history server
        supports `framework` and `sort`. `moments` may have `since` and `until` under their names in docs/api.md, `from`
        and `to`, which are hard to write in Python: `from` is a keyword.

        Without an address the jobs are those of all clusters to which your profiles lead, unless `engine` or `profile`
        selects some. Each cluster that does not answer in ten seconds causes a warning, `IncompleteJobList`.

        Raises:
            SpecError: a filter is unknown, or has a wrong value.
        """
        filters = {"user": user, "queue": queue, "state": state, "name": name, "text": text, "since": since}
        filters |= {"until": until, "limit": limit, "framework": framework, "sort": sort, **moments}
        return self._jobs.jobs({name: value for name, value in filters.items() if value is not None})

    def job(self, job_id: str) -> JobView:
        """Return a job as it is now."""
        return self._jobs.job(job_id)

    def follow(self, job_id: str, interval_s: float = MIN_INTERVAL_S) -> Iterator[JobView]:
        """Yield the job's view at once, then after changes, at most every `interval_s` seconds, and a last time when it
        has ended.

        The view is always the same object, which is updated."""
        return changes(self._jobs.views(job_id), interval_s=interval_s)

    def wait(self, job_id: str, timeout_s: float | None = None) -> Outcome:
        """Wait for the end of a job, and return how it ended.

        Raises:
            TimeoutError: the job goes on after `timeout_s` seconds.
        """
        began = time.monotonic()
        for view in self._jobs.views(job_id):
            if view.outcome is not None:
                return view.outcome
            if timeout_s is not None and time.monotonic() - began > timeout_s:
                break
        raise TimeoutError(f"{job_id} goes on after {timeout_s:g} s")

    def logs(self, job_id: str, task: TaskId | str, stream: str = "stdout") -> Iterator[str]:
        """Yield in pieces the output of a task so far on `stream`, which is `stdout`, `stderr` or `both`; bytes that
        are not UTF-8 are replaced.

        Raises:
            InvalidRequest: that is no task's name, or no stream.
            NotFound: the job has no such task; raised where the pieces are read.
        """
        try:
            task = TaskId.parse(task) if isinstance(task, str) else task
        except ValueError as error:
            raise InvalidRequest(str(error), "task") from None
        return self._jobs.logs(job_id, task, stream_of({"stream": stream}, STREAMS[0]))

    @overload
    def curves(  # type: ignore[overload-overlap]  # "" is a text, too
        self, job_id: str, tag: Literal[""] = "", runs: tuple[str, ...] = (), points: int = 1000
    ) -> Runs: ...

    @overload
    def curves(self, job_id: str, tag: str, runs: tuple[str, ...] = (), points: int = 1000) -> Lines: ...

    def curves(self, job_id: str, tag: str = "", runs: tuple[str, ...] = (), points: int = 1000) -> Any:
        """Return the points of `tag` from the job's event files; without a tag, the runs and the tags of each. The
        shapes are those of `curves/scalars` and `curves/runs` in docs/api.md."""
        if not tag:
            return self.call(job_id, "curves/runs")
        return self.call(job_id, "curves/scalars", tag=tag, run=runs or None, points=points)

    def call(self, job_id: str, path: str = "", /, **query: Any) -> Mapping[str, Any]:
        """Return the JSON of any call of docs/api.md below `jobs/ID/`, whether the job runs or has ended.

        Raises:
            SpecError: a parameter is wrong, or the answer of this call is not JSON.
        """
        return self._jobs.call(job_id, path, query)

    def save(self, job_id: str, output: int | None = None) -> list[BegunSnapshot]:
        """Begin a snapshot of `output` as it is now, counted from 0; without it, one of each output. Return the
        snapshots that have begun: pairs of an output and its snapshot's number."""
        return self._jobs.save(job_id, ALL_OUTPUTS if output is None else output)

    def stacks(self, job_id: str, task: TaskId | str = "", native: bool = False) -> Stacks:
        """Return the stacks of all programs, or of the program of `task`; `native` adds the frames of compiled code.

        The answer has `stacks` (text by task), `uri` (where they are kept) and `problem` (why they are not kept)."""
        return self._jobs.stacks(job_id, str(task), native)

    def tensorboard(self, job_id: str, idle_s: float = 1800.0) -> str:
        """Start the job's TensorBoard if it does not run, wait until it is open, at most five minutes, and return its
        address. TensorBoard ends after `idle_s` seconds without a request.

        Raises:
            JobEnded: the job has ended. RequestRefused: TensorBoard ended. EngineUnavailable: TensorBoard is not open
            in time.
        """
        return self._jobs.tensorboard(job_id, idle_s)

    def end_tensorboard(self, job_id: str) -> None:
        """End the job's TensorBoard; nothing happens when it does not run."""
        self._jobs.end_tensorboard(job_id)

    # The following calls are about many jobs. The history server at the address answers them, else the configured one,
    # else the one that runs as a job.

    def trace(self, of: str) -> TraceResult:
        """Return which job and task a container, `host:pid` or `host/gpu3` belongs or belonged to: `trace` in
        docs/api.md.

        Raises:
            NotFound: no known job had it, or no history server is known.
        """
        found: TraceResult = self._jobs.history().get("trace", of=of)
        return found

    def users(self, begin: float | None = None, end: float | None = None) -> list[UserRow]:
        """Return jobs and GPU hours by user, of jobs between two moments (epoch seconds): rows of `users` in
        docs/api.md."""
        found: list[UserRow] = self._jobs.history().get("users", **{"from": begin, "to": end})["users"]
        return found

    def compare(self, one: str, other: str, *more: str) -> Compare:
        """Compare two or more jobs side by side: `compare` in docs/api.md."""
        found: Compare = self._jobs.history().get("compare", jobs=",".join((one, other, *more)))
        return found

    def cancel(self, job_id: str) -> None:
        """Cancel a job. Without an address, wait until the job has ended."""
        self._jobs.cancel(job_id)


def changes(
    views: Iterable[JobView], clock: Callable[[], float] = time.monotonic, interval_s: float = MIN_INTERVAL_S
) -> Iterator[JobView]:
    """Yield the first of `views`, then each that differs from the last one yielded, at least `interval_s` seconds
    apart. The first view with an outcome is yielded at once, and is the last."""
    shown, shown_at = None, -math.inf
    for view in views:
        state = _fingerprint(view)
        if view.outcome is not None or (state != shown and clock() - shown_at >= interval_s):
            yield view
            shown, shown_at = state, clock()
        if view.outcome is not None:
            return


def _fingerprint(view: JobView) -> Any:
    """Return a value that differs whenever the view does: the view itself is one object that is updated. A client that
    uses an address reads the usage separately from the events, so usage does not change `updated`."""
    used = [task.usage for task in view.tasks.values()]
    return view.updated, view.state, len(view.tasks), used
