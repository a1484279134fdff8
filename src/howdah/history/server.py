"""The history server: scans the jobs' directories again and again, and answers callers that have its token.

The rule: whatever goes wrong while the index is updated, its present content is served.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable

from howdah.api import history_servers
from howdah.api.auth import check_host_and_origin
from howdah.api.http_server import Request, Response, serve
from howdah.api.router import ApiRouter, error_response
from howdah.errors import NotPermitted, NotReady, StagingError
from howdah.history.directory_scan import Scanner
from howdah.history.event_scalars import EventScalars
from howdah.history.index import Index
from howdah.history.options import HistoryOptions, index_directory, key_of
from howdah.history.retention import sweep
from howdah.history.running_jobs import RunningJobs
from howdah.history.source import HistorySource
from howdah.wire import auth

MIN_PAUSE_S, MAX_PAUSE_S, PAUSE_FACTOR = 2.0, 60.0, 10
"""The pause between two scans is PAUSE_FACTOR times the time that a scan took, within the bounds (seconds), unless the
options say how long it is."""
SWEEP_S = 3600.0
"""Seconds between two searches for jobs that are old enough to be removed."""
EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - asked for by --host only


class HistoryServer:
    """A history server; make it in a running event loop. `print_link` is called with its link."""

    def __init__(self, options: HistoryOptions, print_link: Callable[[str], None]) -> None:
        self.options, self._print_link = options, print_link
        self.key = key_of(options.state)
        self.index = Index(index_directory(options))
        self.source = HistorySource(
            self.index, options.clusters, options.conf_dir, self.key, options.link_command, options.prices
        )
        self._scanner = Scanner(self.index, options.roots, options.conf_dir_of)
        self._running_jobs = RunningJobs(self.index, options.clusters)
        self._event_scalars = EventScalars(self.index, options.conf_dir_of, self.source.user_on)
        self._router = ApiRouter(self.source)
        self._hosts: set[str] = set()
        self._swept_at = float("-inf")
        self._printed_problems: list[str] = []
        self._damage: sqlite3.DatabaseError | None = None
        self._last_request_at = time.monotonic()

    async def run(self) -> None:
        """Serve until cancelled, or until no request has come for the time in the options.

        Raises:
            StagingError: the index can't be stored, or another program has the port.
        """
        self._open()
        server, link = await self._listen()
        with history_servers.announce_link(self.options.state, link):
            self._print_link(link)
            await self._update_index_until_idle(server)

    async def _update_index_until_idle(self, server: asyncio.Server) -> None:
        """Bring the index up to date again and again while `server` answers."""
        scanning: asyncio.Future[None] | None = None
        reading = asyncio.ensure_future(self._event_scalars.run())
        try:
            while not self._has_idled_out():
                begun = time.monotonic()
                scanning = asyncio.ensure_future(asyncio.to_thread(self._scan))
                await asyncio.shield(scanning)
                took = time.monotonic() - begun
                pause = self.options.pause_s or min(MAX_PAUSE_S, max(MIN_PAUSE_S, PAUSE_FACTOR * took))
                await asyncio.sleep(pause)
        finally:
            server.close()
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, sqlite3.Error):
                await reading
            self.source.archived_logs.close()
            await self.source.close_event_files()
            self._scanner.end()
            if scanning is not None:
                await scanning
            self.index.close()

    def _open(self) -> None:
        try:
            if not self.index.claim():
                self._report_problems(["another history server keeps this index up to date: this one reads it"])
        except (sqlite3.Error, OSError) as error:
            raise StagingError(f"{self.index.path}: no index can be kept here: {error}") from error

    async def _listen(self) -> tuple[asyncio.Server, str]:
        """Listen; return the server and its link."""
        host, port = self.options.host, self.options.port
        try:
            server = await serve(self._answer, self.source.access.identify, host, port)
        except OSError as error:
            raise StagingError(
                f"{host}:{port} can't be listened at: {error.strerror or error}; --port 0 takes any free one"
            ) from error
        port = server.sockets[0].getsockname()[1]
        names = {host, "127.0.0.1", "localhost", *self.options.names}
        if host in EVERYWHERE:
            names |= _host_names()
        self._hosts = {f"{name}:{port}" for name in names}
        shown = socket.gethostname() if host in EVERYWHERE else host
        return server, f"http://{shown}:{port}{auth.page_link(self.key)}"

    def _has_idled_out(self) -> bool:
        """Return whether no request has come for the time in the options."""
        return 0 < self.options.idle_s < time.monotonic() - self._last_request_at

    async def _answer(self, request: Request) -> Response:
        try:
            check_host_and_origin(request, self._hosts)
        except NotPermitted as refused:
            return error_response(refused, request)
        self._last_request_at = time.monotonic()
        try:
            return await self._router.answer(request)
        except sqlite3.Error as error:
            if type(error) is sqlite3.DatabaseError:  # the next scan may not read the damaged part
                self._damage = error
            return error_response(NotReady(f"the index can't be read now: {error}"), request)

    def _scan(self) -> None:
        """Update the index once; runs in a thread of its own."""
        try:
            if self.index.claim():
                damage, self._damage = self._damage, None
                if damage is not None:
                    raise damage
                self._report_problems(self._update())
        except sqlite3.OperationalError as error:  # a full disk, mostly
            self._report_problems(
                [f"the index can't be written: {error}; what is shown is as of {time.strftime('%F %T')}"]
            )
        except Exception as error:
            if type(error) is sqlite3.DatabaseError:  # its subclasses mean something else
                self._report_problems([f"the index was damaged ({error}) and is made anew"])
                self.index.renew()
                return
            traceback.print_exc(file=sys.stderr)  # a bug: the index is served all the same
            self._report_problems(
                [f"the jobs could not be looked at: {error}; what is shown is as of {time.strftime('%F %T')}"]
            )

    def _update(self) -> list[str]:
        looked = self._scanner.scan()
        problems = [*looked.problems, *self._running_jobs.refresh(time.time())]
        options = self.options
        if options.keep_s and time.monotonic() - self._swept_at > SWEEP_S:
            self._swept_at = time.monotonic()
            owner = self.source.user_on if options.remove_files else None
            problems += sweep(self.index, time.time() - options.keep_s, owner, options.conf_dir_of)
        return problems

    def _report_problems(self, problems: list[str]) -> None:
        """Print each problem once to standard error; the page shows it as long as it lasts."""
        for problem in problems:
            if problem.partition("; what is")[0] not in self._printed_problems:
                print(f"howdah history: {problem}", file=sys.stderr, flush=True)
        self._printed_problems = [problem.partition("; what is")[0] for problem in problems]
        self.source.set_problems(problems)


def _host_names() -> set[str]:
    """Return the names under which callers may know this machine."""
    names = {socket.gethostname(), socket.getfqdn(), "[::1]"}
    with contextlib.suppress(OSError):
        names |= {str(found[4][0]) for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    return names


def serve_until_signal(options: HistoryOptions, print_link: Callable[[str], None]) -> None:
    """Run the server until the process gets SIGTERM or SIGINT."""

    async def main() -> None:
        server = asyncio.ensure_future(HistoryServer(options, print_link).run())
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, server.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await server

    asyncio.run(main())
