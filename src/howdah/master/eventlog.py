"""The event log: every fact, in order, in memory for those who watch and in a file for those who come later.

On a local directory each line is written at once; elsewhere lines are appended in batches, off the loop, because an
append to HDFS takes tens of milliseconds and its bytes are visible to others only after it.
"""

from __future__ import annotations

import asyncio
import sys
import urllib.parse
from pathlib import Path
from typing import Any

from howdah.master.bell import Bell
from howdah.spec.codec import encode
from howdah.spec.events import Event, Used, to_line
from howdah.spec.view import JobView, fold

FLUSH_S = 2.0


class EventLog:
    """`directory` is the URI of the job's directory. `records` are all events but usage samples, JSON-ready."""

    def __init__(self, directory: str) -> None:
        self.records: list[dict[str, Any]] = []
        self.usage: dict[str, dict[str, Any]] = {}
        self.view = JobView()
        self.changed = Bell()
        self._uri = f"{directory.rstrip('/')}/events.jsonl"
        self._pending: list[str] = []
        self._writing = asyncio.Lock()
        self._local = self._open_local()

    def _open_local(self) -> Any:
        if not self._uri.startswith("file:"):
            return None
        path = Path(urllib.parse.unquote(urllib.parse.urlsplit(self._uri).path))
        return path.open("a", encoding="utf-8", buffering=1)

    def append(self, event: Event) -> None:
        """Add one event; whoever waits for `changed` wakes."""
        record = {"kind": type(event).__name__, **encode(event)}
        if isinstance(event, Used):
            self.usage[str(event.task)] = record
        else:
            self.records.append(record)
        fold([event], self.view)
        if self._local is not None:
            self._write_local(to_line(event))
        else:
            self._pending.append(to_line(event))
        self.changed.ring()

    def _write_local(self, line: str) -> None:
        try:
            self._local.write(line)
        except OSError as error:
            print(f"event log: {error}; the job goes on, its history lacks this", file=sys.stderr, flush=True)

    async def flush_forever(self) -> None:
        """Bring batches to their file every `FLUSH_S` seconds, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_S)
            await self.flush()

    async def flush(self) -> None:
        """Bring what is pending to its file; what cannot be written now is kept for the next time."""
        async with self._writing:
            if not self._pending:
                return
            batch, self._pending = self._pending, []
            try:
                await asyncio.to_thread(self._append, "".join(batch).encode())
            except Exception as error:  # the file system may be down for a while: keep the lines
                self._pending = batch + self._pending
                print(f"event log: {self._uri}: {error}; kept for later", file=sys.stderr, flush=True)

    def close(self) -> None:
        """No more events come."""
        if self._local is not None:
            self._local.close()

    def _append(self, data: bytes) -> None:
        from howdah.data.fs import filesystem

        filesystem(self._uri).append(self._uri, data)
