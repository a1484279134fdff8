"""Imports TonY's history: a `.jhist` file, with the configuration beside it, becomes a job with an event log.

The file's name holds most facts: application, begin, end, user, state. Nothing is guessed: exit codes are those that
TonY's diagnostics name, and memory peaks those of its metrics.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import Any

from howdah.compat.tony import roles
from howdah.compat.tony.conf import Conf
from howdah.config.extras import how_to_install
from howdah.errors import SpecError, StagingError
from howdah.hadoop.conf import parse
from howdah.spec import Container, Exit, JobSpec, Outcome, Role, StagedJob, State, TaskId, event_lines, uris
from howdah.spec.codec import encode
from howdah.spec.events import Ended, Event, JobFinished, JobStarted, Joined, Launched, Started, Used, WorldFormed
from howdah.spec.usage import Usage
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import FileSystem
from howdah.supervisor.state import SUBMITTED

_NAME = re.compile(r"(application_\d+_\d+)-(\d+)-(\d+)-(.+)-([A-Z]+)\.jhist")
_CONFIGURATIONS = ("tony-final.xml", "config.xml")
_EXIT_CODE = re.compile(r"[Ee]xit(?:ed with)?(?: code| status)?[: ]+(-?\d+)")
_STATES = {"SUCCEEDED": State.SUCCEEDED, "FAILED": State.FAILED, "KILLED": State.CANCELLED, "FINISHED": State.CANCELLED}
_MAX_BYTES = 256 << 20


@dataclass(frozen=True)
class History:
    """A job that was imported."""

    id: str
    """The application's id."""
    state: State
    staged: StagedJob
    """The job's spec, as far as it is known."""
    events: tuple[Event, ...]
    """The job's events."""


def find_histories(paths: Iterable[str], hadoop: str = "") -> Iterator[str]:
    """Yield the URIs of the finished histories in files and directories, on this machine or on the cluster of the
    configuration in `hadoop`. If an application has several attempts, only its last one is yielded.

    Raises:
        StagingError: a path does not exist, or has no such history below it.
    """
    for path in paths:
        uri = path if uris.has_scheme(path) else uris.of_local(path)
        files = filesystem(uri, hadoop)
        entry = files.stat(uri)
        if entry is None:
            raise StagingError(f"{path}: no such file or directory")
        if not entry.is_dir:
            yield entry.uri
            continue
        found: dict[str, str] = {}
        for file in sorted((each.uri for each in files.walk(uri)), key=uris.name):
            if file.endswith(".jhist"):
                match = _NAME.fullmatch(uris.name(file))
                found[match[1] if match else file] = file
        if not found:
            raise StagingError(f"{path}: no .jhist file of a job that has ended is in it or below it")
        yield from found.values()


def read_history(uri: str, hadoop: str = "") -> History:
    """Read one history.

    Raises:
        StagingError: the job has not ended, or the file is no history; names the file.
    """
    name, shown = uris.name(uri), uris.path(uri) if uri.startswith("file:") else uri
    match = _NAME.fullmatch(name)
    if match is None:
        still = name.endswith(".inprogress")
        problem = "has not ended" if still else "has no name like application_1_2-BEGIN-END-USER-STATE.jhist"
        raise StagingError(f"{shown}: {problem}, and is not imported")
    files = filesystem(uri, hadoop)
    try:
        entry = files.stat(uri)
        if entry is not None and entry.size > _MAX_BYTES:
            raise ValueError("it is larger than any history")
        return _read(files, uri, *match.groups())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StagingError(f"{shown}: no history of TonY: {error or type(error).__name__}") from error


def _read(files: FileSystem, uri: str, application_id: str, begun: str, ended: str, user: str, word: str) -> History:
    found = list(_recorded_events(files.read_bytes(uri)))
    state = _STATES.get(word, State.FAILED)
    job = _job(_configuration(files, uris.parent(uri)), found, application_id)
    log = _Log(application_id, user, job, int(begun) / 1000, int(ended) / 1000, state)
    return History(application_id, state, StagedJob(job, "", user=user), tuple(log.events(found)))


def _configuration(files: FileSystem, directory: str) -> Conf:
    """Return the configuration beside a history; one that cannot be read is ignored."""
    conf = Conf({})
    for name in _CONFIGURATIONS:
        uri = uris.join(directory, name)
        if files.exists(uri):
            with contextlib.suppress(SpecError):
                conf.add(parse(files.read_bytes(uri), name), name)
            break
    return conf


def write_history(history: History, home: str, hadoop: str = "") -> str:
    """Write a history below `home`, the URI of an engine's home, over an earlier import of the same job; return the
    job's directory. A job on this machine is called `local-application_…`.
    """
    is_local = uris.split(home)[0] == "file"
    directory = uris.join(home, "jobs", f"local-{history.id}" if is_local else history.id)
    files = filesystem(directory, hadoop)
    files.mkdirs(directory, 0o700)
    begun = history.events[0].time
    files.write_bytes(uris.join(directory, "job.json"), json.dumps(encode(history.staged)).encode())
    if is_local:  # the engine sorts jobs by this time
        files.write_bytes(uris.join(directory, SUBMITTED), json.dumps({"submitted": begun}).encode())
    log = "".join(map(event_lines.to_line, history.events))
    files.write_bytes(uris.join(directory, "events.jsonl"), log.encode())
    return directory


def _recorded_events(data: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the events of an Avro file, or of JSON lines, into which some sites convert Avro files."""
    if data[:1] == b"{":
        for line in data.decode("utf-8", "replace").splitlines():
            if line.strip():
                yield json.loads(line)
        return
    yield from avro_records(data)


def avro_records(data: bytes) -> Iterator[Any]:
    """Yield the records of an Avro file. If the file is cut off or damaged, yield those of its complete blocks.

    Raises:
        StagingError: fastavro is not installed.
        ValueError: the file can't be read from its start.
    """
    try:
        import fastavro
    except ImportError:
        raise StagingError(f".jhist files are read by fastavro: {how_to_install('records')}") from None
    try:
        blocks = iter(fastavro.block_reader(BytesIO(data)))
    except Exception as error:  # fastavro and each of its codecs have errors of their own
        raise ValueError(f"its header can't be read: {type(error).__name__}: {error}") from None
    with contextlib.suppress(Exception):
        for block in blocks:
            yield from list(block)


def _job(conf: Conf, entries: list[Mapping[str, Any]], name: str) -> JobSpec:
    """Return the job's spec, from its configuration if there is one, and from its tasks."""
    made = roles.roles(conf, roles.job_types(conf), conf.get("tony.containers.command"))
    for event in entries:
        body = _body(event)
        if "taskType" in body:
            role = made.setdefault(str(body["taskType"]), Role(replicas=0))
            replicas = max(role.replicas, int(body["taskIndex"]) + 1)
            made[str(body["taskType"])] = Role(**{**vars(role), "replicas": replicas})
    return JobSpec(
        roles=made,
        name=conf.get("tony.application.name") if conf.origins else name,
        framework=f"tony-{conf.get('tony.application.framework')}".replace("tony-standalone", "tony"),
        queue=conf.get("tony.yarn.queue"),
        application_type="TONY",
    )


def _body(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the event's own fields. JSON names the branch of a union: `{"com.linkedin.tony.events.TaskStarted":
    {…}}`."""
    body = event.get("event")
    if isinstance(body, Mapping) and len(body) == 1 and isinstance(inner := next(iter(body.values())), Mapping):
        return inner
    return body if isinstance(body, Mapping) else {}


@dataclass(frozen=True)
class _Log:
    """Converts TonY's events."""

    id: str
    user: str
    job: JobSpec
    begin: float
    end: float
    state: State

    def events(self, entries: list[Mapping[str, Any]]) -> Iterator[Event]:
        host = next(
            (str(_body(event).get("host", "")) for event in entries if event["type"] == "APPLICATION_INITED"), ""
        )
        yield JobStarted(self.begin, self.id, "tony", self.user, self.job, host)
        yield WorldFormed(self.begin, 1)  # TonY counted the job's duration from here
        reason = ""
        for event in entries:
            moment, body = float(event.get("timestamp", self.begin * 1000)) / 1000, _body(event)
            if event["type"] == "TASK_STARTED":
                yield from self._started(moment, body)
            elif event["type"] == "TASK_FINISHED":
                yield from self._finished(moment, body)
                if body.get("status") == "FAILED":
                    reason = reason or f"{self._task(body)}: {_exit(body)}"
            elif event["type"] == "APPLICATION_FINISHED":
                reason = str(body.get("diagnostics") or reason)
        yield JobFinished(self.end, Outcome(self.state, "" if self.state is State.SUCCEEDED else reason))

    def _started(self, moment: float, body: Mapping[str, Any]) -> Iterator[Event]:
        task, host = self._task(body), str(body.get("host", ""))
        container = Container(_text(body.get("containerID")), host, task.role, self.job.roles[task.role].resources)
        yield Launched(moment, task, 1, container)
        yield Joined(moment, task, 1, 1, host)
        yield Started(moment, task, 1, 1, 0)

    def _finished(self, moment: float, body: Mapping[str, Any]) -> Iterator[Event]:
        metrics = {str(metric["name"]): float(metric["value"]) for metric in body.get("metrics") or ()}
        peak, mean = metrics.get("MAX_MEMORY_BYTES", 0.0), metrics.get("AVG_MEMORY_BYTES", 0.0)
        task = self._task(body)
        if peak > 0:
            yield Used(moment, task, Usage(memory_mib=mean / (1 << 20), peak_mib=peak / (1 << 20)))
        exit = _exit(body)
        yield Ended(moment, task, 1, 1, exit, counts=exit.cause == "exit")

    def _task(self, body: Mapping[str, Any]) -> TaskId:
        return TaskId(str(body["taskType"]), int(body["taskIndex"]))


def _exit(body: Mapping[str, Any]) -> Exit:
    status, diagnostics = str(body.get("status", "")), _text(body.get("containerDiagnostic")).strip()
    if status == "SUCCEEDED":
        return Exit("exit", 0)
    if status != "FAILED":  # FINISHED: TonY's master ended it
        return Exit("stopped", detail=diagnostics)
    match = _EXIT_CODE.search(diagnostics)
    lines = tuple(diagnostics.splitlines()[-20:])
    return Exit("exit", int(match[1]) if match else None, detail="" if match else "failed", lines=lines)


def _text(value: Any) -> str:
    """Return a text; in JSON it may be in a mapping with the name of its type."""
    if isinstance(value, Mapping):
        value = next(iter(value.values()), "")
    return "" if value is None else str(value)
