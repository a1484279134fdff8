"""Serve the page with invented answers, to look at it without a job: `python dev/serve.py [--tasks N] [--state STATE]`.

The server answers as docs/api.md says. Some names would do harm if the page took them for HTML.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import urllib.parse
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fake_answers
import fake_runs

STATIC = Path(__file__).resolve().parents[2] / "src" / "howdah" / "api" / "static"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'"
)
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Handler(BaseHTTPRequestHandler):
    """Answers requests for the page's files and for the API."""

    protocol_version = "HTTP/1.1"
    options: argparse.Namespace

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        params = fake_answers.parse_query(query)
        path = urllib.parse.unquote(path)
        if not path.startswith("/api/v1/"):
            self._file(path.lstrip("/") or "index.html")
        elif path.endswith("/curves/image"):
            self._send(200, _png(), "image/png")
        else:
            options = self.options
            value = fake_answers.answer(
                path.removeprefix("/api/v1/"), params, options.kind, options.tasks, options.points, options.state
            )
            status = 404 if value is None else 200
            self._send(status, json.dumps(value or {"error": f"nothing at {path}"}).encode(), "application/json")

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urllib.parse.unquote(self.path.partition("?")[0])
        # The page also creates its session by PUT.
        value = fake_answers.action_answer(path.partition("/actions/")[2]) if "/actions/" in path else {}
        self._send(404 if value is None else 200, json.dumps(value).encode(), "application/json")

    def _file(self, name: str) -> None:
        packed = STATIC / f"{name}.gz"
        if ".." in name or not packed.is_file():
            self._send(404, b"", "text/plain")
            return
        headers = {"Content-Encoding": "gzip", "Content-Security-Policy": CSP}
        self._send(200, packed.read_bytes(), TYPES.get(Path(name).suffix, "text/plain"), headers)

    def _send(self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def _png() -> bytes:
    """Return a square of grey shades as PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((x * 7 + y * 3) % 256 for x in range(28)) for y in range(28))
    head = struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def main() -> None:
    """Print the address and serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--points", type=int, default=0, help="points of every scalar series, not down-sampled")
    parser.add_argument("--state", choices=fake_runs.STATES, default="RUNNING", help="the state of the job")
    parser.add_argument("--kind", choices=("master", "history"), default="history")
    parser.add_argument("--port", type=int, default=0)
    Handler.options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", Handler.options.port), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}/", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
