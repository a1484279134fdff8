"""Runs the event-file service, which answers requests over a Unix socket, for the one program that started the service.

A request is a POST of the path that a browser requests from the parent, `/curves/…` or `/checkpoints…`. Its body, made
by the parent alone, gives the places of that job's files: {"places": [[prefix, URI], …], "checkpoints": [URI, …],
"owner": the only user whose files are read, "" for everybody's}.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import signal
import socketserver
import sys
import threading
import time
import traceback
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from howdah.errors import EngineUnavailable, HowdahError, InvalidRequest, NotFound, StagingError
from howdah.eventfiles import embed, oom_priority
from howdah.eventfiles.directory_cache import EventDirectories
from howdah.eventfiles.errors import FileUnreadable, NoLibrary
from howdah.eventfiles.queries import JobEventFiles, Query
from howdah.localfiles.temporary_directory import remove_if_empty

if TYPE_CHECKING:
    from howdah.eventfiles.checkpoint_contents import CheckpointContents

IDLE_S, TICK_S = 600.0, 0.25
MAX_BODY = 4 << 20
_PR_SET_PDEATHSIG = 1
Answer = tuple[int, str, bytes]
"""Status, content type and body."""
JSON, HTML, SVG, PNG = "application/json", "text/html; charset=utf-8", "image/svg+xml", "image/png"
SCRIPT = "text/javascript; charset=utf-8"
CHARTS = ("scalars", "histograms", "distributions")
"""The charts that exist as SVG and PNG, and that can be embedded."""
_STATUSES: Mapping[type[HowdahError], int] = {
    NotFound: 404,
    NoLibrary: 501,
    InvalidRequest: 400,
    FileUnreadable: 422,
    StagingError: 404,
    EngineUnavailable: 503,
    HowdahError: 500,
}
"""The status of each error: that of the first class in this order that the error belongs to."""
_TABLES: Mapping[str, Callable[[JobEventFiles, Query], Mapping[str, Any]]] = {
    "runs": JobEventFiles.runs,
    "scalars": JobEventFiles.scalars,
    "histograms": JobEventFiles.histograms,
    "distributions": JobEventFiles.distributions,
    "images": JobEventFiles.images,
    "audio": JobEventFiles.audio,
    "pr_curves": JobEventFiles.pr_curves,
    "text": JobEventFiles.texts,
    "hparams": JobEventFiles.hparams,
}
"""The methods that answer `curves/NAME` with JSON."""
_CONTENTS: Mapping[str, Callable[[JobEventFiles, Query], tuple[str, bytes]]] = {
    "image": JobEventFiles.image,
    "audio_clip": JobEventFiles.audio_clip,
}
"""The methods that answer `curves/NAME` with a content type and bytes."""


class EventFileServer:
    """Answers requests, and keeps the values of earlier readings."""

    def __init__(self) -> None:
        self._directories = EventDirectories()
        self.last_request_at = time.monotonic()
        self.active_requests = 0

    def answer(self, target: str, body: bytes) -> Answer:
        """Return status, content type and body for a request."""
        self.last_request_at = time.monotonic()
        path, _, query = target.partition("?")
        name = urllib.parse.unquote(path).strip("/")
        try:
            request = json.loads(body or b"{}")
            locations = [(str(prefix), str(uri)) for prefix, uri in request.get("places", ())]
            checkpoints = [str(uri) for uri in request.get("checkpoints", ())]
            owner = str(request.get("owner", ""))
        except (ValueError, TypeError, AttributeError):
            return _error(400, "the body must be JSON that says where the files are")
        try:
            if name.startswith("curves/"):
                return self._curves(name.removeprefix("curves/"), query, locations, owner)
            return self._checkpoints(name, query, checkpoints or [uri for _, uri in locations], owner)
        except HowdahError as error:
            return _error(next(status for kind, status in _STATUSES.items() if isinstance(error, kind)), str(error))
        except Exception as error:  # a bug in howdah: the answer says so, and the log has the traceback
            traceback.print_exc(file=sys.stderr)
            return _error(500, f"a fault in the event-file service: {type(error).__name__}")
        finally:
            self.last_request_at = time.monotonic()

    def _curves(self, name: str, query_text: str, locations: Sequence[tuple[str, str]], owner: str) -> Answer:
        query = urllib.parse.parse_qs(query_text, keep_blank_values=True)
        if name in ("embed.html", "embed.js"):
            chart = query.get("chart", ["scalars"])[-1]
            if chart not in CHARTS:
                raise InvalidRequest(f"chart={chart[:40]}: one of {', '.join(CHARTS)}")
            is_page = name == "embed.html"
            return (200, HTML, embed.page(query_text).encode()) if is_page else (200, SCRIPT, embed.SCRIPT.encode())
        kind, _, suffix = name.partition(".")
        is_picture = kind in CHARTS and suffix in ("svg", "png")
        if not is_picture and name not in {*_TABLES, *_CONTENTS}:
            return _error(404, f"nothing answers curves/{name[:100]}")
        job = self._directories.read_job(locations, owner)
        if name in _CONTENTS:
            return 200, *_CONTENTS[name](job, query)
        if is_picture:
            return _chart(job, kind, query, suffix == "png")
        if query.get("since") == [str(job.version)]:
            return _json({"version": job.version, "unchanged": True})
        return _json(_TABLES[name](job, query))

    @functools.cached_property
    def _contents(self) -> CheckpointContents:
        # Loading the code for checkpoints takes as long as loading all the rest.
        from howdah.eventfiles.checkpoint_contents import CheckpointContents

        return CheckpointContents()

    def _checkpoints(self, name: str, query_text: str, directories: Sequence[str], owner: str) -> Answer:
        query = dict(urllib.parse.parse_qsl(query_text, keep_blank_values=True))
        if name == "checkpoints":
            return _json(self._contents.checkpoints(directories, owner))
        if name == "checkpoints/tensors":
            return _json(self._contents.tensors(directories, query.get("uri", ""), owner))
        if name == "checkpoints/statistics":
            uri, tensor = query.get("uri", ""), query.get("name", "")
            return _json(self._contents.statistics(directories, uri, tensor, owner))
        return _error(404, f"nothing answers {name[:100]}")


def _chart(job: JobEventFiles, kind: str, query: Query, as_png: bool) -> Answer:
    from howdah.eventfiles import chart, histogram_chart, png, svg

    style = svg.style(query, "light" if as_png else "auto")
    if kind == "scalars":
        document = chart.draw_curves(list(job.curves({"points": [str(max(50, style.width))], **query})), style)
    elif kind == "distributions":
        document = histogram_chart.draw_distribution(job.tag_histograms(query), style)
    else:
        draw = histogram_chart.draw_bars if "step" in query else histogram_chart.draw_map
        document = draw(job.tag_histograms(query), style)
    return (200, PNG, png.png(document)) if as_png else (200, SVG, document.encode())


def _json(value: Mapping[str, Any]) -> Answer:
    return 200, JSON, json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _error(status: int, text: str) -> Answer:
    return status, JSON, json.dumps({"error": " ".join(text.split()), "place": "curves"}).encode()


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64
    service: EventFileServer

    def handle_error(self, request: object, client_address: object) -> None:
        """Print the traceback, unless the parent only closed the connection before its answer."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            traceback.print_exc(file=sys.stderr)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > MAX_BODY:
            status, kind, body = _error(413, f"a body has at most {MAX_BODY} bytes")
            self.close_connection = True
        else:
            service = self.server.service
            service.active_requests += 1
            try:
                status, kind, body = service.answer(self.path, self.rfile.read(int(length)))
            finally:
                service.active_requests -= 1
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "parent"

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: requests may carry tokens."""


def serve(path: str, idle_s: float = IDLE_S) -> None:
    """Answer at socket `path` until no request came for `idle_s`, the parent has ended, or this process has grown so
    large that its container might be killed."""
    parent = os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: _exit(Path(path)))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    oom_priority.prefer_as_oom_victim()
    before = os.umask(0o177)
    try:
        server = _Server(path, _Handler)
    finally:
        os.umask(before)
    service = server.service = EventFileServer()
    threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True, name="serve").start()
    print("ready", flush=True)
    limit = oom_priority.memory_limit()
    while os.getppid() == parent and (service.active_requests or time.monotonic() - service.last_request_at < idle_s):
        time.sleep(min(TICK_S, idle_s / 4))
        if limit and (size := oom_priority.resident_bytes()) > limit:
            used, allowed = size >> 20, limit >> 20
            print(f"the event-file service uses {used} MiB, above its limit of {allowed} MiB: exiting", file=sys.stderr)
            break
    _exit(Path(path))


def _exit(socket: Path) -> NoReturn:
    """End this process and remove its socket and the socket's directory, since the parent may have been killed."""
    with contextlib.suppress(OSError):
        socket.unlink()
        remove_if_empty(socket.parent)
    os._exit(0)  # library threads that never return must not keep it running
