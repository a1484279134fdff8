"""Lines at the end of a file in the job's directory.

On a local directory each is written at once; elsewhere they are appended in batches, off the loop, because an append to
HDFS takes tens of milliseconds and its bytes are visible to others only after it.
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

from howdah.errors import HowdahError
from howdah.storage.retry import retry_until

if TYPE_CHECKING:
    from howdah.storage.filesystem import FileSystem

TELL_S = 10.0
CLAIM_TRIES = 5
"""So often a file is read again that grows while it is read."""
APPENDED_MODE = 0o644
"""That of a file made by FileSystem.append; its directory lets nobody else in."""


class Superseded(HowdahError):
    """Another master writes this file: it took over, because the cluster took this one for dead."""


class Changed(HowdahError):
    """The master before this one has written to a file after this one had read it."""


class OwnedFile:
    """A file that one master writes, and nobody else: a master that finds more in it than it wrote was replaced.

    Every call may take as long as the file system takes; that is `files`, else the one that `uri` names.
    """

    def __init__(self, uri: str, what: str, files: FileSystem | None = None) -> None:
        self.uri, self.what, self._given = uri, what, files
        self.known = 0
        """Bytes that this master has read there, or has written."""

    def read(self) -> bytes:
        """What the master before this one wrote; nothing when there is no file.

        Raises:
            StagingError, EngineUnavailable: it is there and cannot be read.
        """
        files = self._files()
        if not files.exists(self.uri):
            return b""
        files.recover_lease(self.uri)
        content = files.read_bytes(self.uri)
        self.known = len(content)
        return content

    def resume(self) -> None:
        """Go on after what the master before this one wrote, and end its last line, in which it may have been killed.

        The line is ended at once, so that the one before, if it still lives, finds the file changed.

        Raises:
            StagingError, EngineUnavailable: the file can't be gone on with.
        """
        if self._files().exists(self.uri):
            self._files().recover_lease(self.uri)
        self.known = self._size()
        if self.known:
            self.append(b"\n")

    def check(self) -> None:
        """Find out whether the file is still this master's.

        Raises:
            Superseded: another master has written to it.
        """
        if self._size() > self.known:
            raise self._superseded()

    def append(self, data: bytes) -> None:
        """Append `data`, or what of it is not there yet: an append that failed may have brought some of it.

        Raises:
            Superseded: another master has written to it.
        """
        files = self._files()
        more = self._size() - self.known
        if more:
            content = files.read_bytes(self.uri)
            if more < 0 or content[self.known :] != data[:more]:
                raise self._superseded()
        if data[more:]:
            files.append(self.uri, data[more:])
        self.known += len(data)

    def claim(self, content: bytes) -> None:
        """Let `content` take the place of what was read, in one step: from now on the file is this master's alone.

        A master before this one that still lives, cut off from the engine and not from the file, finds out when it
        writes next. By appending instead, the first to append would keep the file, and that may be the old one.

        Raises:
            Changed: the old one has written to it meanwhile; it is to be read again.
        """
        if self._size() != self.known:
            raise Changed(f"{self.what} {self.uri} has grown since it was read")
        self.replace(content, APPENDED_MODE)

    def replace(self, content: bytes, mode: int = 0o600) -> None:
        """Let `content` be all there is."""
        self._files().write_bytes(self.uri, content, mode)
        self.known = len(content)

    def _size(self) -> int:
        found = self._files().stat(self.uri)
        return found.size if found is not None else 0

    def _superseded(self) -> Superseded:
        return Superseded(f"{self.what} {self.uri}: another master writes it")

    def _files(self) -> FileSystem:
        from howdah.storage.filesystem import filesystem

        return self._given or filesystem(self.uri)


class Journal:
    """Lines that are kept until they are in their file: `uri`, made with its first line; `what` names it in messages.
    `size` are the characters it has taken, `problem` is why the last `flush` that failed did."""

    def __init__(self, uri: str, what: str) -> None:
        self.uri, self.what, self.size = uri, what, 0
        self.owned = OwnedFile(uri, what)
        self._local = uri.startswith("file:")
        self._file: Any = None
        self._pending: list[str] = []
        self._writing = asyncio.Lock()
        self._replacing = False
        self._told_at, self.problem = float("-inf"), ""

    def read(self) -> list[str]:
        """What the master before this one wrote; nothing when there is no file.

        Raises:
            StagingError, EngineUnavailable: it is there and cannot be read.
        """
        text = self.owned.read().decode("utf-8", "replace")
        self.size, self._pending = len(text), []
        if text and not text.endswith("\n"):  # killed in the middle of a line
            self.write("\n")
        return text.splitlines()

    def resume(self) -> None:
        """Go on where the master before this one stopped, without reading what it wrote.

        Raises:
            StagingError, EngineUnavailable: the file can't be gone on with.
        """
        self.owned.resume()
        self.size = self.owned.known

    @property
    def pending(self) -> list[str]:
        """Lines that are in no file yet."""
        return list(self._pending)

    def write(self, line: str) -> None:
        """Add it, with its line end: at once on this machine, else with the next `flush`."""
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
            self._tell(f"{error}; the job goes on, this is lost")

    def _tell(self, problem: str) -> None:
        """Not for each of a thousand lines."""
        if time.monotonic() - self._told_at > TELL_S:
            self._told_at = time.monotonic()
            print(f"{self.what}: {problem}", file=sys.stderr, flush=True)

    async def flush(self) -> bool:
        """Bring all that was written before to the file; whether it is there. If not it is kept for the next time.

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
            except Exception as error:  # the file system may be down for a while: keep the lines
                self._pending, self.problem = batch + self._pending, str(error).splitlines()[0] if str(error) else "?"
                self._tell(f"{self.uri}: {error}; kept for later")
                return False
            return True

    async def confirm(self) -> bool:
        """Whether all that was written before is in the file, and nothing of another master; False where nobody knows.

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
        """What the master before this one wrote, after which `line()` is written: the file is this master's alone from
        now on (`OwnedFile.claim`). Nothing when there is no file; none is begun.

        Raises:
            StagingError, EngineUnavailable: it is there and cannot be read.
            Changed: the master before this one writes faster than the file can be read.
        """
        for left in reversed(range(CLAIM_TRIES)):
            lines = await asyncio.to_thread(retry_until, self.read)
            if not lines:
                break
            try:
                await self._claim(lines, line())
                return lines
            except Changed:
                if not left:
                    raise
        return []

    async def _claim(self, lines: list[str], line: str) -> None:
        """On one machine no other master can live; and where the file can't be replaced, the line is appended later.
        A file system that is away is waited for: until the file is this master's the one before may go on."""
        if self._local:
            self.write(line)
            return
        kept, self._pending = self._pending, []  # the end of a line that was cut short
        try:
            text = "".join((*(f"{each}\n" for each in lines), line))
            await asyncio.to_thread(retry_until, partial(self.owned.claim, text.encode()))
        except Changed:
            raise
        except HowdahError as error:
            self._tell(f"{self.uri}: {error}; not replaced")
            self._pending = [*kept, *self._pending]
            self.write(line)

    async def replace(self, lines: list[str]) -> None:
        """Let these be all there is, for what was written before says no more than they do.

        Raises:
            StagingError, EngineUnavailable: it can't be written; the file is as it was.
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
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Its job is over."""
        from howdah.storage.filesystem import filesystem

        self.close()
        filesystem(self.uri).delete(self.uri)
