"""Signed calls to the master of a running job."""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from howdah.api.errors import error_for_status
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, RequestRefused, StagingError
from howdah.spec import JobReport, TaskId
from howdah.spec.codec import decode
from howdah.spec.event_lines import from_record
from howdah.spec.events import Event
from howdah.spec.values import dataclass
from howdah.wire import auth
from howdah.wire.connection import MasterConnection, WireError
from howdah.wire.messages import LogChunk

if TYPE_CHECKING:
    from howdah.api.curve_schemas import Stacks

READ_BYTES = 1 << 20
_REFUSED = (400, 404, 409, 410)


@dataclass(frozen=True)
class EventBatch:
    """The master's answer to a request for events."""

    events: list[Event]
    """The events from the requested number on."""
    next: int
    """The number to ask from next."""
    usage: list[Event]
    """The latest usage samples."""


class MasterClient:
    """Calls the master of one job. All calls raise `howdah.wire.connection.WireError`."""

    def __init__(self, url: str, job_key: bytes) -> None:
        self._connection = MasterConnection(url, auth.CLIENT, auth.derive(job_key, auth.CLIENT), timeout=5.0)
        self.url, self.job_key = url, job_key

    def __enter__(self) -> MasterClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def events(self, since: int, wait_s: float) -> EventBatch:
        """Return the events from number `since` on; wait up to `wait_s` seconds for one."""
        answer = self._connection.call("GET", f"/v1/events?since={since}&wait={wait_s}", timeout=wait_s + 5.0)
        return EventBatch(_events(answer["events"]), answer["next"], _events(answer["usage"]))

    def changes(self, wait_s: float = 5.0) -> Iterator[list[Event]]:
        """Yield all later events: an empty list at once, then a list at least every `wait_s` seconds."""
        since = self.events(0, 0.0).next
        yield []
        while True:
            batch = self.events(since, wait_s)
            since = batch.next
            yield batch.events

    def log(self, task: TaskId, stream: str, offset: int, limit: int = READ_BYTES, attempt: int = 0) -> LogChunk:
        """Return bytes of a task's stream from `offset` on (from its end if negative); `attempt` 0 is the present
        one."""
        path = f"/v1/logs/{task}?stream={stream}&offset={offset}&limit={limit}&attempt={attempt}"
        return decode(LogChunk, self._connection.call("GET", path, timeout=15.0))

    def search(self, **query: object) -> dict[str, Any]:
        """Search the logs of all tasks; parameters and answer are those of the API's `search` (docs/api.md)."""
        path = f"/v1/search?{urllib.parse.urlencode(query)}"
        found: dict[str, Any] = self._connection.call("GET", path, timeout=130.0)
        return found

    def cancel(self, by: str) -> None:
        """Ask the master to end the job."""
        self._connection.call("POST", "/v1/actions/cancel", {"by": by})

    def save(self, by: str, output: int = -1) -> list[tuple[int, int]]:
        """Take a snapshot of an output (-1: of all); return pairs of an output and the number of its snapshot."""
        answer = self._connection.call("POST", "/v1/actions/save", {"by": by, "output": output})
        return [(int(number), int(snapshot)) for number, snapshot in answer["saves"]]

    def stacks(self, by: str, task: str = "", native: bool = False) -> Stacks:
        """Return the stacks of the programs: `stacks` by task, the `uri` where they are kept, and the `problem` if they
        could not be kept."""
        arguments = {"by": by, "task": task, "native": native}
        answer: Stacks = self._connection.call("POST", "/v1/actions/stacks", arguments, timeout=45.0)
        return answer

    def tensorboard(self, by: str, idle_s: float) -> dict[str, str]:
        """Start the job's TensorBoard if it does not run; return its `state`, `url` ("" until it is open) and `detail`.
        TensorBoard ends after `idle_s` seconds without a request."""
        arguments = {"by": by, "idle_s": idle_s}
        answer: dict[str, str] = self._connection.call("POST", "/v1/actions/tensorboard", arguments, timeout=30.0)
        return answer

    def end_tensorboard(self, by: str) -> None:
        """End the job's TensorBoard if it runs."""
        self._connection.call("POST", "/v1/actions/tensorboard/stop", {"by": by})

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@contextlib.contextmanager
def translate_refusals(job_id: str) -> Iterator[None]:
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
            raise RequestRefused(text) if error.status == 400 else error_for_status(error.status, text) from None
        if error.reason:
            raise EngineUnavailable(f"{job_id}: {error.reason}") from None
        raise EngineUnavailable(f"the master of {job_id} does not answer: {error}") from error


def _events(records: list[dict[str, object]]) -> list[Event]:
    return [event for event in map(from_record, records) if event is not None]


def job_key(engine: Engine, report: JobReport) -> bytes:
    """Return the key of a running job.

    Raises:
        StagingError: the key is gone, because the job has ended, or this user may not read it.
    """
    key = engine.job_key(report)
    if key is None:
        raise StagingError(f"{report.id}: its key is gone, because the job has ended")
    return key


def connect(engine: Engine, report: JobReport) -> MasterClient | None:
    """Connect to the master of a job on `engine`; None when no master is known, or the job has just ended and its key
    is gone.

    Raises:
        StagingError: this user may not read the key.
    """
    key = engine.job_key(report) if report.master else None
    return MasterClient(report.master, key) if key is not None else None
