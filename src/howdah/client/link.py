"""The client's way to a living master, and to the event log of one that has ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from howdah.data.fs import filesystem
from howdah.spec import JobReport, TaskId
from howdah.spec.codec import decode
from howdah.spec.events import Event, from_record, read_lines
from howdah.wire import auth
from howdah.wire.connection import Connection
from howdah.wire.messages import LogChunk

READ_BYTES = 1 << 20


@dataclass(frozen=True)
class News:
    """Events after the ones asked for, the number to ask from next, and the latest usage samples."""

    events: list[Event]
    next: int
    usage: list[Event]


class MasterLink:
    """Signed calls to the master of one job. All of them raise `howdah.wire.connection.WireError`."""

    def __init__(self, url: str, job_key: bytes) -> None:
        self._connection = Connection(url, auth.CLIENT, auth.derive(job_key, auth.CLIENT), timeout=5.0)
        self.url = url

    def __enter__(self) -> MasterLink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def news(self, since: int, wait_s: float) -> News:
        """Events from number `since` on; waits up to `wait_s` seconds for one."""
        answer = self._connection.call("GET", f"/v1/events?since={since}&wait={wait_s}", timeout=wait_s + 5.0)
        return News(_events(answer["events"]), answer["next"], _events(answer["usage"]))

    def log(self, task: TaskId, stream: str, offset: int, limit: int = READ_BYTES) -> LogChunk:
        """Bytes of a task's stream from `offset`; a negative one counts from the end."""
        path = f"/v1/logs/{task}?stream={stream}&offset={offset}&limit={limit}"
        return decode(LogChunk, self._connection.call("GET", path, timeout=15.0))

    def cancel(self, by: str) -> None:
        """Ask the master to end the job."""
        self._connection.call("POST", "/v1/cancel", {"by": by})

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()


def _events(records: list[dict[str, object]]) -> list[Event]:
    return [event for event in map(from_record, records) if event is not None]


def job_key(report: JobReport) -> bytes:
    """The job's key, which only its owner can read.

    Raises:
        StagingError: it is not there, or not ours to read.
    """
    uri = f"{report.directory}/key"
    with filesystem(uri, report.conf_dir).open_read(uri) as file:
        return bytes.fromhex(file.read().decode().strip())


def link_to(report: JobReport) -> MasterLink | None:
    """A link to the job's master, if it has one that is known."""
    return MasterLink(report.master, job_key(report)) if report.master else None


def recorded_events(report: JobReport) -> Iterator[Event]:
    """The event log as far as it is written.

    Raises:
        StagingError: there is none.
    """
    uri = f"{report.directory}/events.jsonl"
    with filesystem(uri, report.conf_dir).open_read(uri) as file:
        text = file.read().decode("utf-8", "replace")
    yield from read_lines(line for line in text.splitlines() if line)


def page_url(report: JobReport) -> str:
    """A link to the job's page that its owner can open: through the engine's proxy, else with its own token."""
    if report.tracking_url:
        return report.tracking_url
    return f"{report.master}/?token={auth.view_token(job_key(report))}" if report.master else ""


def to_json(value: object) -> str:
    """One line of JSON, as `--json` prints it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
