"""Tests how a master's pod gets howdah from an object store: by signed URLs, with Python's library alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from howdah.engines.kubernetes import master_start

URI = "s3://bucket/cache/ab/howdah-1.zip"


class Store(ThreadingHTTPServer):
    """Answers with the statuses of `answers`, one after the other, and then with the content."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[int] = []

    def signed(self, valid_s: float = 3600.0) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.server_port}/howdah-1.zip"
        return {"urls": {URI: url}, "until": time.time() + valid_s, "valid_s": 7 * 86400}


class Handler(BaseHTTPRequestHandler):
    server: Store

    def do_GET(self) -> None:
        status = self.server.answers.pop(0) if self.server.answers else 200
        self.send_response(status)
        self.send_header("Content-Length", "7" if status != 206 else "9")
        self.end_headers()
        self.wfile.write(b"content")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(master_start, "AGAIN_S", 0.0)
    with Store() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def test_a_store_that_has_much_to_do_is_asked_again(store: Store, tmp_path: Path) -> None:
    store.answers = [503, 206, 500]  # of the second answer the end is missing
    copy = master_start.download(URI, store.signed(), tmp_path / "downloads")
    assert copy == (tmp_path / "downloads/howdah-1.zip").as_uri()
    assert (tmp_path / "downloads/howdah-1.zip").read_bytes() == b"content"


def test_a_store_that_refuses_is_asked_once(store: Store, tmp_path: Path) -> None:
    store.answers = [403]
    with pytest.raises(SystemExit, match=f"does not give what a master needs: {URI}: HTTP Error 403"):
        master_start.download(URI, store.signed(), tmp_path)


def test_a_store_that_does_not_recover_is_given_up(store: Store, tmp_path: Path) -> None:
    store.answers = [503] * 9
    with pytest.raises(SystemExit, match="HTTP Error 503"):
        master_start.download(URI, store.signed(), tmp_path)
    assert len(store.answers) == 9 - master_start.TRIES


def test_a_master_that_starts_too_late_says_so(store: Store, tmp_path: Path) -> None:
    store.answers = [403]
    with pytest.raises(SystemExit, match="a master can start for 7 days after a job was submitted, and they are over"):
        master_start.download(URI, store.signed(valid_s=-1.0), tmp_path)
