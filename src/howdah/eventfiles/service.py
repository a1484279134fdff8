"""Run the curves service: answer requests over a Unix socket, for the one program that started the service.

A request is a POST of the path that a browser requests from the parent, `/curves/…` or `/checkpoints…`; its body, made
by the parent alone, says where that job's files are: {"places": [[prefix, URI], …], "checkpoints": [URI, …]}.
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

from howdah.errors import EngineUnavailable, HowdahError, StagingError
from howdah.eventfiles import embed, oom_priority
from howdah.eventfiles.errors import Absent, NoLibrary, Unreadable, Wrong
from howdah.eventfiles.queries import EventDirectories, JobEventFiles, Query
from howdah.localfiles.temporary_directory import remove_if_empty

if TYPE_CHECKING:
    from howdah.eventfiles.checkpoint_contents import CheckpointContents

IDLE_S, TICK_S = 600.0, 0.25
MOST_BODY = 4 << 20
_DIED = 1  # PR_SET_PDEATHSIG
Answer = tuple[int, str, bytes]
JSON, HTML, SVG, SCRIPT, PNG = (
    "application/json",
    "text/html; charset=utf-8",
    "image/svg+xml",
    "text/javascript; charset=utf-8",
    "image/png",
)
CHARTS = ("scalars", "histograms", "distributions")
"""The charts that exist as SVG and PNG, and that can be embedded."""
_SCRIPT = embed.SCRIPT.encode()


class EventFileServer:
    """Answer requests, and keep what was read between them."""

    def __init__(self) -> None:
        self._store = EventDirectories()
        self.heard_at = time.monotonic()
        self.answering = 0
        self._json: Mapping[str, Callable[[JobEventFiles, Query], Mapping[str, Any]]] = {
            "runs": JobEventFiles.runs,
            "scalars": JobEventFiles.scalars,
            "histograms": JobEventFiles.histograms,
            "distributions": JobEventFiles.distributions,
            "images": JobEventFiles.images,
            "text": JobEventFiles.texts,
            "hparams": JobEventFiles.hparams,
        }

    def answer(self, target: str, body: bytes) -> Answer:
        """Return status, content type and body for a request."""
        self.heard_at = time.monotonic()
        path, _, query = target.partition("?")
        name = urllib.parse.unquote(path).strip("/")
        try:
            request = json.loads(body or b"{}")
            places = [(str(prefix), str(uri)) for prefix, uri in request.get("places", ())]
            folders = [str(uri) for uri in request.get("checkpoints", ())]
        except (ValueError, TypeError, AttributeError):
            return _error(400, "the body must be JSON that says where the files are")
        try:
            if name.startswith("curves/"):
                return self._curves(name.removeprefix("curves/"), query, places)
            return self._checkpoints(name, query, folders or [uri for _, uri in places])
        except Absent as error:
            return _error(404, str(error))
        except NoLibrary as error:
            return _error(501, str(error))
        except Wrong as error:
            return _error(400, str(error))
        except Unreadable as error:
            return _error(422, str(error))
        except StagingError as error:
            return _error(404, str(error))
        except EngineUnavailable as error:
            return _error(503, str(error))
        except HowdahError as error:
            return _error(500, str(error))
        except Exception as error:  # a bug in howdah: the answer says so, and the log has the traceback
            traceback.print_exc(file=sys.stderr)
            return _error(500, f"a fault in the curves service: {type(error).__name__}")
        finally:
            self.heard_at = time.monotonic()

    def _curves(self, name: str, query: str, places: Sequence[tuple[str, str]]) -> Answer:
        asked = urllib.parse.parse_qs(query, keep_blank_values=True)
        if name in ("embed.html", "embed.js"):
            chart = asked.get("chart", ["scalars"])[-1]
            if chart not in CHARTS:
                raise Wrong(f"chart={chart[:40]}: one of {', '.join(CHARTS)}")
            return (200, HTML, embed.page(query).encode()) if name == "embed.html" else (200, SCRIPT, _SCRIPT)
        kind, _, ending = name.partition(".")
        drawn = kind in CHARTS and ending in ("svg", "png")
        if not drawn and name not in {*self._json, "image"}:
            return _error(404, f"nothing answers curves/{name[:100]}")
        board = self._store.board(places)
        if name == "image":
            return 200, *board.image(asked)
        if name in self._json:
            if asked.get("since") == [str(board.version)]:
                return _json({"version": board.version, "unchanged": True})
            return _json(self._json[name](board, asked))
        return _chart(board, kind, asked, ending == "png")

    @functools.cached_property
    def _contents(self) -> CheckpointContents:
        # Loading the code for checkpoints takes as long as loading all the rest.
        from howdah.eventfiles.checkpoint_contents import CheckpointContents

        return CheckpointContents()

    def _checkpoints(self, name: str, query: str, folders: Sequence[str]) -> Answer:
        asked = urllib.parse.parse_qs(query, keep_blank_values=True)
        one = {key: values[-1] for key, values in asked.items()}
        contents = self._contents
        if name == "checkpoints":
            return _json(contents.checkpoints(folders))
        if name == "checkpoints/tensors":
            return _json(contents.tensors(folders, one.get("uri", "")))
        if name == "checkpoints/statistics":
            return _json(contents.statistics(folders, one.get("uri", ""), one.get("name", "")))
        return _error(404, f"nothing answers {name[:100]}")


def _chart(board: JobEventFiles, kind: str, asked: Query, as_png: bool) -> Answer:
    from howdah.eventfiles import chart, histogram_chart, png, svg

    style = svg.style(asked, "light" if as_png else "auto")
    if kind == "scalars":
        points = {"points": [str(max(50, style.width))], **asked}
        document = chart.draw_curves(list(board.curves(points)), style)
    elif kind == "distributions":
        document = histogram_chart.draw_distribution(board.tag_histograms(asked), style)
    else:
        draw = histogram_chart.draw_bars if "step" in asked else histogram_chart.draw_map
        document = draw(board.tag_histograms(asked), style)
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
        if not length.isdigit() or int(length) > MOST_BODY:
            status, kind, body = _error(413, f"a body has at most {MOST_BODY} bytes")
            self.close_connection = True
        else:
            service = self.server.service
            service.answering += 1
            try:
                status, kind, body = service.answer(self.path, self.rfile.read(int(length)))
            finally:
                service.answering -= 1
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
    signal.signal(signal.SIGTERM, lambda *_: _leave(Path(path)))
    _die_with_parent()
    oom_priority.prefer_as_oom_victim()
    before = os.umask(0o177)
    try:
        server = _Server(path, _Handler)
    finally:
        os.umask(before)
    service = server.service = EventFileServer()
    threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True, name="serve").start()
    print("ready", flush=True)
    most = oom_priority.limit()
    while os.getppid() == parent and (service.answering or time.monotonic() - service.heard_at < idle_s):
        time.sleep(min(TICK_S, idle_s / 4))
        if most and (size := oom_priority.resident()) > most:
            print(f"the curves service has {size >> 20} MiB, {most >> 20} are the most: it ends", file=sys.stderr)
            break
    _leave(Path(path))


def _leave(socket: Path) -> NoReturn:
    """End this process and remove its socket and the socket's directory, since the parent may have been killed."""
    with contextlib.suppress(OSError):
        socket.unlink()
        remove_if_empty(socket.parent)
    os._exit(0)  # library threads that never return must not keep it


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIED, signal.SIGTERM, 0, 0, 0)
