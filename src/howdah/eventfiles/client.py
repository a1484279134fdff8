"""Starts the event-file service with the first request, starts it again after it has ended, and sends it requests.

This module imports little, and only the standard library, because the master imports it.
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
_MAX_ANSWER = 256 << 20

EMBED_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; img-src 'self'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors *",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""The headers of `curves/embed.html`. All other answers need nosniff and a policy that runs no script; `embed.js` and
images that other pages show also need `Cross-Origin-Resource-Policy: cross-origin`."""


class Answer(NamedTuple):
    """Holds an answer of the service; JSON with an `error` if the service does not answer."""

    status: int
    content_type: str
    body: bytes


class EventFileService:
    """Runs one service, which ends with this process. `environ` is its environment, by default this process's own."""

    def __init__(self, environ: Mapping[str, str] | None = None, idle_s: float = 0.0) -> None:
        self._environ, self._idle_s = dict(environ) if environ is not None else None, idle_s
        self._directory: TemporaryDirectory | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()

    async def get(
        self,
        target: str,
        locations: Sequence[tuple[str, str]] = (),
        checkpoints: Sequence[str] = (),
        owner: str = "",
    ) -> Answer:
        """Return the answer to `curves/…` or `checkpoints…` with its query. `locations` are pairs (prefix of runs, URI)
        as `locations.event_file_locations` returns them. `checkpoints` are URIs of directories with checkpoints, by
        default those of `locations`. `owner` is the user whose files are read, by default everybody;
        `files_of_owner.NOBODY` stands for files without owners.

        No error is raised: a failure is an answer, too.
        """
        wanted = {"places": list(locations), "checkpoints": list(checkpoints), "owner": owner}
        body = json.dumps(wanted).encode()
        for is_last in (False, True):
            try:
                await self._ensure_started()
                return await asyncio.wait_for(self._request("/" + target.lstrip("/"), body), ANSWER_S)
            except (asyncio.TimeoutError, TimeoutError):
                return _error(504, f"the event-file service has not answered within {ANSWER_S:.0f} s: {target[:100]}")
            except _NotStarted as error:
                return _error(503, str(error))
            except (OSError, EOFError, ValueError, IndexError) as error:
                if is_last:  # the service had ended, or was just ending: a second one has been started
                    reason = error or type(error).__name__
                    return _error(503, f"the event-file service ended while it was asked: {reason}")
                await self.close()
        raise AssertionError

    async def close(self) -> None:
        """End the service; the next request starts it again."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._directory is not None:
            self._directory.remove()
            self._directory = None

    async def _ensure_started(self) -> None:
        async with self._starting:
            if self._process is not None and self._process.returncode is None:
                return
            await self.close()
            # Names of sockets have 107 bytes at most, fewer than some temporary directories.
            usual = tempfile.gettempdir()
            short = usual if len(usual) < 60 else "/tmp" if os.access("/tmp", os.W_OK) else None  # noqa: S108
            self._directory = TemporaryDirectory("howdah-curves-", short)
            command = [sys.executable, "-m", "howdah.eventfiles", "--socket", str(self._directory.path / "s")]
            if self._idle_s:
                command += ["--idle", str(self._idle_s)]
            pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
            self._process = await asyncio.create_subprocess_exec(*command, stdin=null, stdout=pipe, env=self._environ)
            assert self._process.stdout is not None
            try:
                line = await asyncio.wait_for(self._process.stdout.readline(), START_S)
            except (asyncio.TimeoutError, TimeoutError):
                await self.close()
                raise _NotStarted(f"the event-file service has not started within {START_S:.0f} s") from None
            if not line:
                status = await self._process.wait()
                raise _NotStarted(f"the event-file service ended with {status} when it was started: see the log")

    async def _request(self, target: str, body: bytes) -> Answer:
        assert self._directory is not None
        reader, writer = await asyncio.open_unix_connection(str(self._directory.path / "s"), limit=1 << 20)
        try:
            length = f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write(f"POST {_escaped(target)} HTTP/1.1\r\nHost: curves\r\n{length}".encode("ascii") + body)
            await writer.drain()
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            size = int(headers["content-length"])
            if size > _MAX_ANSWER:
                return _error(502, f"an answer of {size} bytes is more than is passed on")
            return Answer(int(lines[0].split(" ")[1]), headers["content-type"], await reader.readexactly(size))
        except KeyError as error:
            raise ValueError(f"no {error}") from error
        finally:
            writer.close()


class _NotStarted(Exception):
    """The service did not start; the message says why."""


def _escaped(target: str) -> str:
    """Escape characters that must not be in a request's first line."""
    return "".join(each if "!" <= each <= "~" else "%20" if each == " " else "%EF%BF%BD" for each in target)


def _error(status: int, text: str) -> Answer:
    return Answer(status, "application/json", json.dumps({"error": text, "place": "curves"}).encode())
