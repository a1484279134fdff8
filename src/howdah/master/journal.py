"""Appends lines to a file in the job's directory.

On a local directory each line is written at once. Elsewhere lines are appended in batches, off the loop, because an
append to HDFS takes tens of milliseconds, and its bytes are visible to others only afterwards.
"""

from __future__ import annotations

import asyncio
import sys
import time
import urllib.parse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from howdah.errors import EngineUnavailable, HowdahError
from howdah.storage import begun_files
from howdah.storage.retry import retry_until

if TYPE_CHECKING:
    from howdah.storage.filesystem import FileSystem

REPORT_S = 10.0
CLAIM_TRIES = 5
"""How often a file that grows while it is read is read again."""
APPENDED_MODE = 0o644
"""The mode of a file that FileSystem.append makes; no other user can enter its directory."""


class Superseded(HowdahError):
    """Another master writes this file: it took over, because the cluster took this master for dead."""


class LogChanged(HowdahError):
    """The earlier master has written to a file after this master had read it."""


class OwnedFile:
    """A file that one master alone writes: a master that finds more in it than it wrote was replaced. Every call may
    take as long as the file system takes. The file system is `files`, or the one that `uri` names. `begun` is the URI
    of a file with an empty line that becomes this one when its first bytes are written, if it is there."""

    def __init__(self, uri: str, what: str, files: FileSystem | None = None, begun: str = "") -> None:
        self.uri, self.what, self._given, self._begun = uri, what, files, begun
        self.known = 0
        """Bytes that this master has read there, or has written."""

    def read(self) -> bytes:
        """Return what an earlier master wrote; nothing when there is no file.

        Raises:
            StagingError, EngineUnavailable: the file is there and cannot be read, or not to its end, because an earlier
                master that still lives has opened it again: HDFS then hides the last block from readers.
        """
        files = self._files()
        found = files.stat(self.uri)
        if found is None:
            return b""
        files.recover_lease(self.uri)
        content = files.read_bytes(self.uri)
        if len(content) < found.size:
            raise EngineUnavailable(
                f"{self.what} {self.uri}: {len(content)} of its {found.size} bytes can be read: it is being written"
            )
        self.known = len(content)
        return content

    def resume(self) -> None:
        """Continue the file that an earlier master wrote, and end its last line, in which that master may have been
        killed. The line is ended at once, so that an earlier master that still lives finds the file changed.

        Raises:
            StagingError, EngineUnavailable: the file cannot be continued.
        """
        if self._files().exists(self.uri):
            self._files().recover_lease(self.uri)
        self.known = self._size()
        if self.known:
            self.append(b"\n")

    def check(self) -> None:
        """Check that the file is still this master's.

        Raises:
            Superseded: another master has written to it.
        """
        if self._size() > self.known:
            raise self._superseded_error()

    def append(self, data: bytes) -> None:
        """Append `data`, or the rest of it: an append that failed may have written some of it.

        Raises:
            Superseded: another master has written to it.
        """
        files = self._files()
        if self._begun and not self.known:
            self.known = begun_files.take_begun_file(files, self._begun, self.uri)
        more = self._size() - self.known
        if more:
            content = files.read_bytes(self.uri)
            if more < 0 or content[self.known :] != data[:more]:
                raise self._superseded_error()
        if data[more:]:
            files.append(self.uri, data[more:])
        self.known += len(data)

    def claim(self, content: bytes) -> None:
        """Replace the file by `content` in one step: from now on the file is this master's alone. An earlier master
        that still lives, cut off from the engine and not from the file, finds out when it next writes. If masters
        appended instead, the first to append would keep the file, and that may be the earlier one.

        Raises:
            LogChanged: the earlier master has written to it meanwhile, and it must be read again.
        """
        if self._size() != self.known:
            raise LogChanged(f"{self.what} {self.uri} has grown since it was read")
        self.replace(content, APPENDED_MODE)

    def replace(self, content: bytes, mode: int = 0o600) -> None:
        """Replace the whole file by `content`."""
        self._files().write_bytes(self.uri, content, mode)
        self.known = len(content)

    def _size(self) -> int:
        found = self._files().stat(self.uri)
        return found.size if found is not None else 0

    def _superseded_error(self) -> Superseded:
        return Superseded(f"{self.what} {self.uri}: another master writes it")

    def _files(self) -> FileSystem:
        from howdah.storage.factory import filesystem

        return self._given or filesystem(self.uri)


class Journal:
    """Keeps lines until they are written to the file `uri`, which is made with its first line. `what` names the file in
    messages, `begun` is as for OwnedFile, `size` is the number of characters it holds, and `problem` is why the last
    `flush` failed."""

    def __init__(self, uri: str, what: str, begun: str = "") -> None:
        self.uri, self.what, self.size = uri, what, 0
        self.owned = OwnedFile(uri, what, begun=begun)
        self._local = uri.startswith("file:")
        self._file: Any = None
        self._pending: list[str] = []
        self._writing = asyncio.Lock()
        self._replacing = False
        self._reported_at, self.problem = float("-inf"), ""

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
    def pending(self) -> list[str]:
        """Return the lines that are in no file yet."""
        return list(self._pending)

    def write(self, line: str) -> None:
        """Add a line, with its line end: on this machine at once, elsewhere with the next `flush`."""
        self.size += len(line)
        if self._local and not self._replacing:
            self._write_local(line)
        else:
            self._pending.append(line)

    def _write_local(self, line: str) -> None:
        try:
            if self._file is None:
                path = Path(urllib.parse.unquote(urllib.parse.urlsplit(self.uri).path))
                path.touch(0o600)
                self._file = path.open("a", encoding="utf-8", buffering=1)
            self._file.write(line)
        except OSError as error:
            self._report_once(f"{error}; the job goes on, this is lost")

    def _report_once(self, problem: str) -> None:
        """Report a problem once, not for each of a thousand lines."""
        if time.monotonic() - self._reported_at > REPORT_S:
            self._reported_at = time.monotonic()
            print(f"{self.what}: {problem}", file=sys.stderr, flush=True)

    async def flush(self) -> bool:
        """Write all pending lines; return True if they are in the file. If not, they are kept for the next time.

        Raises:
            Superseded: another master has written to it.
        """
        async with self._writing:
            if not self._pending:
                return True
            batch, self._pending = self._pending, []
            try:
                await asyncio.to_thread(self.owned.append, "".join(batch).encode())
            except Superseded:
                raise
            except Exception as error:  # the file system may not answer for a while: keep the lines
                self._pending, self.problem = batch + self._pending, str(error).splitlines()[0] if str(error) else "?"
                self._report_once(f"{self.uri}: {error}; kept for later")
                return False
            return True

    async def confirm(self) -> bool:
        """Return whether all lines are in the file, and none of another master; False when this cannot be checked.

        Raises:
            Superseded: another master has written to it.
        """
        if self._local:
            return True
        if not await self.flush():
            return False
        async with self._writing:
            try:
                await asyncio.to_thread(self.owned.check)
            except Superseded:
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
            lines = await asyncio.to_thread(retry_until, self.read)
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
            text = "".join((*(f"{each}\n" for each in lines), line))
            await asyncio.to_thread(retry_until, partial(self.owned.claim, text.encode()))
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
                await asyncio.to_thread(self.owned.replace, text.encode())
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

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Remove the file, whose job is over."""
        from howdah.storage.factory import filesystem

        self.close()
        filesystem(self.uri).delete(self.uri)
