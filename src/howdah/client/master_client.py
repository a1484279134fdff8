"""The client's way to a living master, and to the event log of one that has ended."""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Iterator
from typing import Any

from howdah.api.errors import refusal
from howdah.errors import EngineUnavailable, RequestRefused, StagingError
from howdah.spec import JobReport, State, TaskId
from howdah.spec.codec import decode
from howdah.spec.event_lines import from_record, read_log
from howdah.spec.events import Event
from howdah.spec.values import dataclass
from howdah.spec.view import JobView
from howdah.storage.filesystem import filesystem
from howdah.wire import auth
from howdah.wire.connection import MasterConnection, WireError
from howdah.wire.messages import LogChunk
from howdah.wire.tensorboard_link import link as board_link

READ_BYTES = 1 << 20
HOURS = 12
"""How long a link may act unless its maker says otherwise."""
_REFUSED = (400, 404, 409, 410)


@dataclass(frozen=True)
class RecordedEvents:
    """Events after the ones asked for, the number to ask from next, and the latest usage samples."""

    events: list[Event]
    next: int
    usage: list[Event]


class MasterClient:
    """Signed calls to the master of one job. All of them raise `howdah.wire.connection.WireError`."""

    def __init__(self, url: str, job_key: bytes) -> None:
        self._connection = MasterConnection(url, auth.CLIENT, auth.derive(job_key, auth.CLIENT), timeout=5.0)
        self.url = url

    def __enter__(self) -> MasterClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def events(self, since: int, wait_s: float) -> RecordedEvents:
        """Events from number `since` on; waits up to `wait_s` seconds for one."""
        answer = self._connection.call("GET", f"/v1/events?since={since}&wait={wait_s}", timeout=wait_s + 5.0)
        return RecordedEvents(_events(answer["events"]), answer["next"], _events(answer["usage"]))

    def changes(self, wait_s: float = 5.0) -> Iterator[list[Event]]:
        """What happens from now on, again and again: nothing at first, then after `wait_s` at the latest."""
        since = self.events(0, 0.0).next
        yield []
        while True:
            news = self.events(since, wait_s)
            since = news.next
            yield news.events

    def log(self, task: TaskId, stream: str, offset: int, limit: int = READ_BYTES, attempt: int = 0) -> LogChunk:
        """Bytes of a task's stream from `offset` (from its end if negative); `attempt` 0 is the present one."""
        path = f"/v1/logs/{task}?stream={stream}&offset={offset}&limit={limit}&attempt={attempt}"
        return decode(LogChunk, self._connection.call("GET", path, timeout=15.0))

    def search(self, **query: object) -> dict[str, Any]:
        """Lines in what all tasks printed, as the API's `search` finds them (docs/api.md)."""
        path = f"/v1/search?{urllib.parse.urlencode(query)}"
        found: dict[str, Any] = self._connection.call("GET", path, timeout=130.0)
        return found

    def cancel(self, by: str) -> None:
        """Ask the master to end the job."""
        self._connection.call("POST", "/v1/actions/cancel", {"by": by})

    def save(self, by: str, output: int = -1) -> list[tuple[int, int]]:
        """Ask for a copy of an output as it is now (-1: of all); pairs of an output and its copy's number."""
        answer = self._connection.call("POST", "/v1/actions/save", {"by": by, "output": output})
        return [(int(number), int(copy)) for number, copy in answer["saves"]]

    def stacks(self, by: str, task: str = "", native: bool = False) -> dict[str, Any]:
        """What the programs are doing: `stacks` by task, the `uri` where they are kept, or the `problem` with that."""
        wish = {"by": by, "task": task, "native": native}
        answer: dict[str, Any] = self._connection.call("POST", "/v1/actions/stacks", wish, timeout=45.0)
        return answer

    def tensorboard(self, by: str, idle_s: float) -> dict[str, str]:
        """Have the job's TensorBoard started, where it does not run: `state`, `url` ("" until it is open), `detail`. It
        ends when nobody has looked for `idle_s`."""
        wish = {"by": by, "idle_s": idle_s}
        answer: dict[str, str] = self._connection.call("POST", "/v1/actions/tensorboard", wish, timeout=30.0)
        return answer

    def end_tensorboard(self, by: str) -> None:
        """Have it ended; nothing when it does not run."""
        self._connection.call("POST", "/v1/actions/tensorboard/stop", {"by": by})

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()


@contextlib.contextmanager
def refusals(job_id: str) -> Iterator[None]:
    """Turn the error answers of the master of `job_id` into howdah's errors.

    Raises:
        RequestRefused: the master refuses; the message is the master's.
        EngineUnavailable: the master does not answer, or answers with a fault.
    """
    try:
        yield
    except WireError as error:
        if error.status in _REFUSED:
            text = f"{job_id}: {error.reason}"
            raise RequestRefused(text) if error.status == 400 else refusal(error.status, text) from None
        if error.reason:
            raise EngineUnavailable(f"{job_id}: {error.reason}") from None
        raise EngineUnavailable(f"the master of {job_id} does not answer: {error}") from error


def _events(records: list[dict[str, object]]) -> list[Event]:
    return [event for event in map(from_record, records) if event is not None]


def job_key(report: JobReport) -> bytes:
    """The job's key, which only its owner can read, and only until the job has ended.

    Raises:
        StagingError: it is not there, or not ours to read.
    """
    uri = f"{report.directory}/key"
    with filesystem(uri, report.conf_dir).open_read(uri) as file:
        return bytes.fromhex(file.read().decode().strip())


def connect(report: JobReport) -> MasterClient | None:
    """A link to the job's master; None when it has none that is known, or has just ended and taken the key with it.

    Raises:
        StagingError: the key is not ours to read.
    """
    key = _key_of_living(report) if report.master else None
    return MasterClient(report.master, key) if key is not None else None


def _key_of_living(report: JobReport) -> bytes | None:
    """The job's key; None when it is gone, which it is from the moment on at which the job has ended."""
    uri = f"{report.directory}/key"
    files = filesystem(uri, report.conf_dir)
    try:
        return job_key(report)
    except StagingError:
        if files.exists(uri):
            raise
        return None


def recorded_events(report: JobReport) -> Iterator[Event]:
    """The event log as far as it is written, without what cannot be read.

    Raises:
        StagingError: there is none.
    """
    return (event for event in recorded_log(report) if event is not None)


def recorded_log(report: JobReport) -> Iterator[Event | None]:
    """The event log as far as it is written, with None for what cannot be read.

    Raises:
        StagingError: there is none.
    """
    uri = f"{report.directory}/events.jsonl"
    with filesystem(uri, report.conf_dir).open_read(uri) as file:
        text = file.read().decode("utf-8", "replace")
    yield from read_log(line for line in text.splitlines() if line)


def tensorboard_url(report: JobReport, view: JobView) -> str:
    """A link that opens the job's TensorBoard, "" while there is none: the one beside it, or the job itself."""
    if view.job is not None and view.job.framework == "board":
        task = next(iter(view.tasks.values()))
        port = task.ports.get("main", 0) if task.state is State.RUNNING else 0
        key = _key_of_living(report) if port else None
        return board_link(task.host, port, auth.gang_key(key)) if key is not None else ""
    at = view.board
    key = _key_of_living(report) if at.state == "open" else None
    return board_link(at.host, at.port, auth.board_token(key)) if key is not None else ""


def page_url(report: JobReport) -> str:
    """A link to the job's page that its owner can open: through the engine's proxy, else with its own token. It is ""
    when no master serves the page, or the job has just ended."""
    if report.tracking_url:
        return report.tracking_url
    key = _key_of_living(report) if report.master else None
    return _page_link(report, key) if key is not None else ""


def page_link(report: JobReport, expires: float = 0.0) -> str:
    """A link whoever has it can open; it may act until `expires` (epoch seconds, 0: it may only look).

    Raises:
        StagingError: the key is gone, with the job, or not ours to read.
    """
    return _page_link(report, job_key(report), expires)


def _page_link(report: JobReport, key: bytes, expires: float = 0.0) -> str:
    """The tokens stand behind the `#`: no browser sends that to a server or tells it to another page."""
    act = f"&act={auth.act_token(key, expires)}" if expires else ""
    return f"{_base(report)}#token={auth.view_token(key)}{act}"


def embed_url(report: JobReport) -> str:
    """The job's curves, for an iframe in another page: `&run=` and `&tag=` choose."""
    token = auth.embed_token(job_key(report))
    return f"{_base(report)}api/v1/jobs/{report.id}/curves/embed.html?token={token}"


def _base(report: JobReport) -> str:
    return (report.tracking_url or report.master).rstrip("/") + "/"
