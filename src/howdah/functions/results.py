"""Reads what the tasks of a function's job have kept: what the function returned, or raised."""

from __future__ import annotations

import contextlib
import pickle
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from howdah.client.engine_registry import settings_for
from howdah.errors import HowdahError, JobCancelled, JobFailed, StagingError
from howdah.frameworks import find
from howdah.program.run_function import ERROR, RESULT
from howdah.spec import JobSpec, Outcome, State, TaskId, uris
from howdah.spec.values import dataclass
from howdah.spec.view import JobView
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Entry, FileSystem

KEPT_S = 7 * 86400.0
"""Seconds for which results that nobody reads are kept. A client reads its own results at once, but a laptop may sleep
some days."""
_PRIVATE = 0o700
_PLACE = re.compile(r"[0-9a-f]{32}(\.failed)?")


class RemoteTraceback(Exception):
    """The traceback of an exception in a task, as text; it is the `__cause__` of the exception that is raised here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def new_place(home: str) -> str:
    """Return the URI of a new directory in howdah's `home` for the results of a job; it does not exist yet."""
    return uris.join(home, "results", secrets.token_hex(16))


def end_of_job(job_id: str, outcome: Outcome) -> JobFailed:
    """Return the error for a job that has ended without success, with the last lines of the task that failed first."""
    lines = "\n".join(outcome.exit.lines) if outcome.exit is not None else ""
    kind = JobCancelled if outcome.state is State.CANCELLED else JobFailed
    return kind(f"{job_id} {outcome.state.value}: {outcome.diagnostics}\n{lines}".rstrip())


def tasks_by_rank(job: JobSpec) -> tuple[TaskId, ...]:
    """Return the tasks whose results are kept: all but those that the job does not wait for, such as a `ps`."""
    roles = find(job.framework).expand(job).roles
    waited_for = ((name, role) for name, role in roles.items() if role.tracked is not False)
    return tuple(TaskId(name, index) for name, role in waited_for for index in range(role.replicas))


def nodes_by_task(view: JobView) -> dict[str, str]:
    """Return the nodes of the tasks, by their names."""
    return {str(task.id): task.node for task in view.tasks.values()}


@dataclass(frozen=True)
class Results:
    """Reads what the tasks of one job have kept, and removes it."""

    place: str
    """The URI of the output; the remains of a failed job are beside it."""
    tasks: tuple[TaskId, ...]
    """The tasks that keep a result, by rank."""
    conf_dir: str
    """Hadoop's configuration directory."""

    def of_tasks(self, takes_part: Callable[[TaskId], bool]) -> Results:
        """Return a Results of the tasks for which `takes_part` is true: an elastic gang may have shrunk before the
        job's end."""
        return replace(self, tasks=tuple(filter(takes_part, self.tasks)))

    def prepare(self) -> None:
        """Make the parent directory of the results, which only this user may read, and remove old results there that
        nobody has read."""
        files = filesystem(self.place, self.conf_dir)
        files.mkdirs(uris.parent(self.place), _PRIVATE)
        with contextlib.suppress(HowdahError):
            _remove_old(files, uris.parent(self.place), time.time() - KEPT_S)

    def read(self, count: int, join: Callable[[list[Any]], list[Any]] = list) -> list[Any]:
        """Call `join` with what the function returned in each of the first `count` tasks, and return its result. Then
        remove the files; if an error is raised, they stay.

        Raises:
            JobFailed: a task has kept nothing.
            StagingError: something can't be read.
        """
        files = filesystem(self.place, self.conf_dir)
        found = []
        for task in self.tasks[:count]:
            uri = uris.join(self.place, task.slug, RESULT)
            try:
                content = files.read_bytes(uri) if files.exists(uri) else None
            except HowdahError as error:
                text = f"{error}; {_stays('the tasks', self.place)}"
                error.args = (text, *error.args[1:])
                raise
            if content is None:
                ended = f"{task} returned nothing: its program ended before the function did"
                raise JobFailed(f"{ended}; {_stays('others', self.place)}")
            found.append(_load_result(content, uri, str(task)))
        joined = join(found)
        self.remove()
        return joined

    def failure(self, ended: HowdahError, outcome: Outcome, nodes: Mapping[str, str]) -> BaseException:
        """Return what to raise for a job that has not succeeded: what the function raised in the task that failed
        first, else `ended`, caused by what another task raised. `nodes` are those of the tasks. The files are removed,
        unless there is more in them: the error says then where they stay."""
        raised, more = self._raised()
        if not more:
            self.remove()
        first = raised.get(str(outcome.first)) or next(iter(raised.values()), None)
        if first is None:
            ended.args = (f"{ended}\n{more}".rstrip(), *ended.args[1:])
            return ended
        failure: BaseException = ended
        if first["task"] == str(outcome.first):
            failure = JobFailed(f"{outcome.diagnostics}\n{first['text']}")
            if first["error"] is not None:
                with contextlib.suppress(Exception):  # a module that only the tasks have
                    failure = _load(first["error"])
        node = nodes.get(first["task"], "")
        where = f"{first['task']} on {node}" if node else first["task"]
        failure.__cause__ = RemoteTraceback(f"in {where}:\n{first['traceback'].rstrip()}\n{more}".rstrip())
        return failure

    def _raised(self) -> tuple[dict[str, Any], str]:
        """Return the exceptions of tasks by their names, and a text for people about what else is there; "" if there is
        nothing else."""
        found, place = {}, f"{self.place}.failed"
        try:
            there = _kept_files(filesystem(place, self.conf_dir), place)
            for task in self.tasks:
                if (uri := uris.join(place, task.slug, ERROR)) in there:
                    found[str(task)] = _load(filesystem(uri, self.conf_dir).read_bytes(uri))
        except HowdahError as error:
            return found, f"not all could be read of what the tasks have kept; it stays for a week in {place}: {error}"
        count = sum(uris.name(uri) == RESULT for uri in there)
        if not count:
            return found, ""
        of = "1 task" if count == 1 else f"{count} tasks"
        return found, _stays(of, place)

    def remove(self) -> None:
        """Remove the files. What can't be removed stays."""
        with contextlib.suppress(HowdahError):
            files = filesystem(self.place, self.conf_dir)
            for uri in (self.place, f"{self.place}.failed"):
                files.delete(uri)


def kept_results(place: str, profile: str = "") -> dict[str, Any]:
    """Return what tasks have returned whose job has failed, by their names: `place` is the URI that the error has
    named, `profile` one of your configuration. Of `howdah.map` these are pairs: the number of an item, from 0, and its
    result. The files stay. As with every pickle, load only what you have made.

    Raises:
        StagingError, EngineUnavailable: something can't be read.
    """
    files = filesystem(place, settings_for({"profile": profile})["hadoop_conf_dir"])
    found = sorted(uri for uri in _kept_files(files, place) if uris.name(uri) == RESULT)
    names = {uri: uris.name(uris.parent(uri)).rpartition("-") for uri in found}
    tasks = {uri: f"{role}:{index}" for uri, (role, _, index) in names.items()}
    return {task: _load_result(files.read_bytes(uri), uri, task) for uri, task in tasks.items()}


def _stays(whose: str, place: str) -> str:
    return f"what {whose} returned stays for a week: howdah.kept_results({place!r}) loads it"


def _load_result(content: bytes, uri: str, task: str) -> Any:
    try:
        return _load(content)
    except Exception as error:
        kind = type(error).__name__
        raise StagingError(f"what {task} returned can't be read here, and stays in {uri}: {kind}: {error}") from error


def _kept_files(files: FileSystem, place: str) -> set[str]:
    return {uris.normalize(entry.uri) for entry in files.walk(place)} if files.exists(place) else set()


def _load(content: bytes) -> Any:
    return pickle.loads(content)  # noqa: S301 - written by the user's own tasks, into his own directory


def _remove_old(files: FileSystem, directory: str, before: float) -> None:
    """Remove the results in `directory` to which nothing was written since `before`: their clients were killed, or
    could not read them. The parts of a running job have other names."""

    def is_old(entry: Entry) -> bool:
        return entry.modified_ms < before * 1000.0

    for entry in files.children(directory):
        # An object store knows no time of a directory.
        if _PLACE.fullmatch(uris.name(entry.uri)) and is_old(entry) and all(map(is_old, files.walk(entry.uri))):
            files.delete(entry.uri)
