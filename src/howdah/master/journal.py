"""Appends lines to a file in the job's directory.

On a local directory each line is written at once, or with the next `flush` after the disk was full. Elsewhere lines
are appended in batches, off the loop, because an append to HDFS takes tens of milliseconds, and its bytes are visible
to others only afterwards. On an object store each batch is a segment (`howdah.storage.segmented_log`).
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
import urllib.parse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from howdah.errors import EngineUnavailable, HowdahError
from howdah.master.owned_file import LogChanged, LogOwnerChanged, OwnedFile, SegmentedFile, owned_file
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import ConnectionBroken
from howdah.storage.retry import LIMITS_S, retry_until

REPORT_S = 10.0
CLAIM_TRIES = 5
"""How often a file that grows while it is read is read again."""
MERGE_S = 20.0
"""How long the end of a job waits for the merging of segments, without which readers do more requests."""
_RETRIED_S = {**LIMITS_S, ConnectionBroken: LIMITS_S[EngineUnavailable]}
"""For how long a takeover repeats what failed: an object store that does not answer breaks the connection."""


class Journal:
    """Keeps lines until they are written to the file `uri`, which is made with its first line. `what` names the file in
    messages, `begun` is as for AppendedFile, `size` is the number of characters it holds, and `problem` is why the last
    `flush` failed."""

    def __init__(self, uri: str, what: str, begun: str = "") -> None:
        self.uri, self.what, self.size = uri, what, 0
        self._begun = begun
        self._owned: OwnedFile | None = None
        self._local = uri.startswith("file:")
        self._file: Any = None
        self._pending: list[str] = []
        self._writing = asyncio.Lock()
        self._merging: asyncio.Task[None] | None = None
        self._replacing = False
        self._reported_at, self.problem = float("-inf"), ""

    @property
    def owned(self) -> OwnedFile:
        """Return the file; call this off the loop, because the library of its file system is imported here."""
        if self._owned is None:
            self._owned = owned_file(self.uri, self.what, filesystem(self.uri), self._begun)
        return self._owned

    def read(self) -> list[str]:
        """Return what an earlier master wrote; nothing when there is no file.

        Raises:
            StagingError, EngineUnavailable: the file is there and cannot be read.
        """
        text = self.owned.read().decode("utf-8", "replace")
        self.size, self._pending = len(text), []
        if text and not text.endswith("\n"):  # the writer was killed in the middle of a line
            self.write("\n")
        return text.splitlines()

    def resume(self) -> None:
        """Continue where an earlier master stopped, without reading what it wrote.

        Raises:
            StagingError, EngineUnavailable: the file cannot be continued.
        """
        self.owned.resume()
        self.size = self.owned.known

    @property
    def is_local(self) -> bool:
        """Return whether the file is on this machine, where no other master lives beside this one."""
        return self._local

    @property
    def pending(self) -> list[str]:
        """Return the lines that are in no file yet."""
        return list(self._pending)

    def write(self, line: str) -> None:
        """Add a line, with its line end: on this machine at once, elsewhere with the next `flush`."""
        self.size += len(line)
        in_time = self._local and not self._replacing and not self._pending
        self._pending.append(line)
        if in_time:
            self._write_local()

    def _write_local(self) -> bool:
        """Write the pending lines as far as the disk has room; return True if they are in the file."""
        written, data = 0, b""
        try:
            if self._file is None:
                path = Path(urllib.parse.unquote(urllib.parse.urlsplit(self.uri).path))
                path.touch(0o600)
                self._file = path.open("ab", buffering=0)  # a buffer would lose what a full disk does not take
            for line in self._pending:
                data = line.encode("utf-8", "surrogateescape")
                while data:
                    data = data[self._file.write(data) :]
                written += 1
        except OSError as error:
            self.problem = str(error)
            self._report_once(f"{self.uri}: {error}; kept for later")
        if data:
            self._pending[written] = data.decode("utf-8", "surrogateescape")
        del self._pending[:written]
        return not self._pending

    def _report_once(self, problem: str) -> None:
        """Report a problem once, not for each of a thousand lines."""
        if time.monotonic() - self._reported_at > REPORT_S:
            self._reported_at = time.monotonic()
            print(f"{self.what}: {problem}", file=sys.stderr, flush=True)

    async def flush(self) -> bool:
        """Write all pending lines; return True if they are in the file. If not, they are kept for the next time.

        Raises:
            LogOwnerChanged: another master has written to it.
        """
        async with self._writing:
            if not self._pending:
                return True
            if self._local:
                return self._write_local()
            batch, self._pending = self._pending, []
            try:
                await asyncio.to_thread(lambda: self.owned.append("".join(batch).encode()))
            except LogOwnerChanged:
                raise
            except Exception as error:  # the file system may not answer for a while: keep the lines
                self._pending, self.problem = batch + self._pending, str(error).splitlines()[0] if str(error) else "?"
                self._report_once(f"{self.uri}: {error}; kept for later")
                return False
            if isinstance(self.owned, SegmentedFile) and (self._merging is None or self._merging.done()):
                self._merging = asyncio.get_running_loop().create_task(self._merge())
            return True

    async def _merge(self, at_the_end: bool = False) -> None:
        """Merge segments, beside the lines that are written meanwhile."""
        try:
            await asyncio.to_thread(lambda: self.owned.merge(at_the_end))
        except HowdahError as error:
            self._report_once(f"{self.uri}: its segments were not merged: {error}")

    async def finish(self) -> None:
        """Merge the last segments, because no line follows."""
        if self._local or not self.size:
            return
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._merge(at_the_end=True), MERGE_S)

    async def confirm(self) -> bool:
        """Return whether all lines are in the file, and none of another master; False when this cannot be checked.

        Raises:
            LogOwnerChanged: another master has written to it.
        """
        if self._local:
            return True
        if not await self.flush():
            return False
        async with self._writing:
            try:
                await asyncio.to_thread(lambda: self.owned.check())
            except LogOwnerChanged:
                raise
            except HowdahError as error:
                self.problem = str(error)
                return False
            return True

    async def take_over(self, line: Callable[[], str]) -> list[str]:
        """Return what an earlier master wrote, and write `line()` after it: from now on the file is this master's alone
        (`OwnedFile.claim`). Return nothing, and begin no file, when there is none.

        Raises:
            StagingError, EngineUnavailable: the file is there and cannot be read.
            LogChanged: the earlier master writes faster than the file can be read.
        """
        for left in reversed(range(CLAIM_TRIES)):
            lines = await asyncio.to_thread(retry_until, self.read, _RETRIED_S)
            if not lines:
                break
            try:
                await self._claim(lines, line())
                return lines
            except LogChanged:
                if not left:
                    raise
        return []

    async def _claim(self, lines: list[str], line: str) -> None:
        """Claim the file. On one machine no other master can live; where the file cannot be replaced, the line is
        appended later. Wait for a file system that does not answer: until the file is this master's, the earlier one
        may go on."""
        if self._local:
            self.write(line)
            return
        kept, self._pending = self._pending, []  # the end of a line that was cut short
        try:
            content = "".join(f"{each}\n" for each in lines)
            claim = partial(self.owned.claim, content.encode(), line.encode())
            await asyncio.to_thread(retry_until, claim, _RETRIED_S)
            self.size = self.owned.known
        except LogChanged:
            raise
        except HowdahError as error:
            self._report_once(f"{self.uri}: {error}; not replaced")
            self._pending = [*kept, *self._pending]
            self.write(line)

    async def replace(self, lines: list[str]) -> None:
        """Replace all lines by `lines`, which say as much as what was written before.

        Raises:
            StagingError, EngineUnavailable: the file cannot be written, and is as it was.
        """
        text = "".join(lines)
        async with self._writing:
            kept, self._pending, self._replacing = self._pending, [], True
            self.close()
            try:
                await asyncio.to_thread(self._replace, "".join(kept).encode(), text.encode())
                self.size = len(text)
            except BaseException:
                self._pending = kept + self._pending
                raise
            finally:
                self._replacing = False
                if self._local:
                    late, self._pending = self._pending, []
                    for line in late:
                        self.write(line)

    def _replace(self, pending: bytes, content: bytes) -> None:
        if isinstance(self.owned, SegmentedFile) and pending:  # they count only if the file is this master's
            self.owned.append(pending)
        self.owned.replace(content)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def clear(self) -> None:
        """Empty the file of an earlier master, which says nothing of this job."""
        self.close()
        self.owned.clear()
        self.size = 0

    def remove(self) -> None:
        """Remove the file, whose job is over."""
        self.close()
        self.owned.remove()
