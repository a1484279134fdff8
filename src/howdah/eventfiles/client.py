"""The curves service as its parent sees it: started when it is first asked, and again when it has ended.

Standard library only, and little of it: the master imports this.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from howdah.localfiles.temporary_directory import TemporaryDirectory

START_S, ANSWER_S = 20.0, 60.0
_MOST = 256 << 20

EMBED_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; img-src 'self'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors *",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""What `curves/embed.html` must be sent with. Everything else that comes from here needs nosniff, and a policy that
lets nothing run; `embed.js` and images that other pages show, `Cross-Origin-Resource-Policy: cross-origin`."""


class Answer(NamedTuple):
    """Of the service, or of this module when there is none: then JSON with an `error`."""

    status: int
    content_type: str
    body: bytes


class EventFileService:
    """One service of this process; it ends with it. `environ` is its environment, this process's own without one."""

    def __init__(self, environ: Mapping[str, str] | None = None, idle_s: float = 0.0) -> None:
        self._environ, self._idle_s = dict(environ) if environ is not None else None, idle_s
        self._folder: TemporaryDirectory | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()

    async def get(self, target: str, places: Sequence[tuple[str, str]] = (), checkpoints: Sequence[str] = ()) -> Answer:
        """The answer to `curves/…` or `checkpoints…` with its query. `places` are (prefix of runs, URI), as
        `howdah.eventfiles.locations.of` has them; `checkpoints` URIs of directories that hold some, the same places
        without.

        It never raises: what fails is an answer, too.
        """
        body = json.dumps({"places": list(places), "checkpoints": list(checkpoints)}).encode()
        for again in (True, False):
            try:
                await self._started()
                return await asyncio.wait_for(self._asked("/" + target.lstrip("/"), body), ANSWER_S)
            except (asyncio.TimeoutError, TimeoutError):
                return _error(504, f"the curves service has not answered within {ANSWER_S:.0f} s: {target[:100]}")
            except _NotStarted as error:
                return _error(503, str(error))
            except (OSError, EOFError, ValueError, IndexError) as error:
                if not again:  # it has ended, or is just ending: another one is started, once
                    return _error(503, f"the curves service ended while it was asked: {error or type(error).__name__}")
                await self.close()
        raise AssertionError

    async def close(self) -> None:
        """End it; it is started again when it is asked."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    async def _started(self) -> None:
        async with self._starting:
            if self._process is not None and self._process.returncode is None:
                return
            await self.close()
            # Names of sockets have 107 bytes at most, fewer than some temporary directories.
            self._folder = TemporaryDirectory("howdah-curves-", _short_directory())
            command = [sys.executable, "-m", "howdah.eventfiles", "--socket", str(self._folder.path / "s")]
            if self._idle_s:
                command += ["--idle", str(self._idle_s)]
            pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
            self._process = await asyncio.create_subprocess_exec(*command, stdin=null, stdout=pipe, env=self._environ)
            assert self._process.stdout is not None
            try:
                line = await asyncio.wait_for(self._process.stdout.readline(), START_S)
            except (asyncio.TimeoutError, TimeoutError):
                await self.close()
                raise _NotStarted(f"the curves service has not started within {START_S:.0f} s") from None
            if not line:
                status = await self._process.wait()
                raise _NotStarted(f"the curves service ended with {status} when it was started: see the log")

    async def _asked(self, target: str, body: bytes) -> Answer:
        assert self._folder is not None
        reader, writer = await asyncio.open_unix_connection(str(self._folder.path / "s"), limit=1 << 20)
        try:
            length = f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write(f"POST {_line(target)} HTTP/1.1\r\nHost: curves\r\n{length}".encode("ascii") + body)
            await writer.drain()
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            size = int(headers["content-length"])
            if size > _MOST:
                return _error(502, f"an answer of {size} bytes is more than is passed on")
            return Answer(int(lines[0].split(" ")[1]), headers["content-type"], await reader.readexactly(size))
        except KeyError as error:
            raise ValueError(f"no {error}") from error
        finally:
            writer.close()


class _NotStarted(Exception):
    """With the sentence to tell."""


def _line(target: str) -> str:
    """What may stand in a request's first line."""
    return "".join(each if "!" <= each <= "~" else "%20" if each == " " else "%EF%BF%BD" for each in target)


def _short_directory() -> str | None:
    usual = tempfile.gettempdir()
    return usual if len(usual) < 60 else "/tmp" if os.access("/tmp", os.W_OK) else None  # noqa: S108


def _error(status: int, text: str) -> Answer:
    return Answer(status, "application/json", json.dumps({"error": text, "place": "curves"}).encode())
