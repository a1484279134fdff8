"""Lines at the end of a file in the job's directory.

On a local directory each is written at once; elsewhere they are appended in batches, off the loop, because an append to
HDFS takes tens of milliseconds and its bytes are visible to others only after it.
"""

from __future__ import annotations

import asyncio
import sys
import time
import urllib.parse
from pathlib import Path
from typing import Any

from howdah.errors import HowdahError

TELL_S = 10.0


class Superseded(HowdahError):
    """Another master writes this file: it took over, because the cluster took this one for dead."""


class Journal:
    """`uri` is the file, made with its first line; `what` names it in messages. `size` are the characters it has taken,
    `problem` is why the last `flush` that failed did.

    Nobody else may write it: a master that finds more in it than it wrote has been replaced.
    """

    def __init__(self, uri: str, what: str) -> None:
        self.uri, self.what, self.size = uri, what, 0
        self._local = uri.startswith("file:")
        self._file: Any = None
        self._pending: list[str] = []
        self._writing = asyncio.Lock()
        self._replacing = False
        self._told_at, self.problem = float("-inf"), ""
        self._there = 0  # bytes that are in the file for certain

    def read(self) -> list[str]:
        """What the master before this one wrote; nothing when there is no file.

        Raises:
            StagingError, EngineUnavailable: it is there and cannot be read.
        """
        from howdah.data.fs import filesystem

        files = filesystem(self.uri)
        if not files.exists(self.uri):
            return []
        files.take_from_writer(self.uri)
        content = files.read_bytes(self.uri)
        self._there, text = len(content), content.decode("utf-8", "replace")
        if text and not text.endswith("\n"):  # killed in the middle of a line
            self.write("\n")
        self.size += len(text)
        return text.splitlines()

    def resume(self) -> None:
        """Go on where the master before this one stopped, without reading what it wrote.

        Raises:
            StagingError, EngineUnavailable: the file can't be gone on with.
        """
        from howdah.data.fs import filesystem

        files = filesystem(self.uri)
        if files.exists(self.uri):
            files.take_from_writer(self.uri)
        found = files.stat(self.uri)
        if found is not None and found.size:
            self._there = self.size = found.size
            self.write("\n")  # it may have been killed in the middle of a line

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
                await asyncio.to_thread(self._append, "".join(batch).encode())
            except Superseded:
                raise
            except Exception as error:  # the file system may be down for a while: keep the lines
                self._pending, self.problem = batch + self._pending, str(error).splitlines()[0] if str(error) else "?"
                self._tell(f"{self.uri}: {error}; kept for later")
                return False
            return True

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
                await asyncio.to_thread(self._replace, text.encode())
                self.size, self._there = len(text), len(text.encode())
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
        from howdah.data.fs import filesystem

        self.close()
        filesystem(self.uri).delete(self.uri)

    def _append(self, data: bytes) -> None:
        """Add `data`, or what of it is not there yet: an append that failed may have brought some of it."""
        from howdah.data.fs import filesystem

        files = filesystem(self.uri)
        found = files.stat(self.uri)
        more = (found.size if found is not None else 0) - self._there
        if more:
            content = files.read_bytes(self.uri)
            if more < 0 or content[self._there :] != data[:more]:
                raise Superseded(f"{self.what} {self.uri}: another master writes it")
        if data[more:]:
            files.append(self.uri, data[more:])
        self._there += len(data)

    def _replace(self, data: bytes) -> None:
        from howdah.data.fs import filesystem

        filesystem(self.uri).write_bytes(self.uri, data, 0o600)
