"""Tests that a NameNode which does not answer yet is asked again, and one that refuses is not."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from howdah.errors import EngineUnavailable
from howdah.sandbox import readiness


class Refuses(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        self.send_error(403)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_who_does_not_answer_may_be_asked_again() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # nobody listens there
        assert not readiness.open_to_everyone(f"127.0.0.1:{nobody.getsockname()[1]}")


def test_who_refuses_is_believed() -> None:
    with HTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(EngineUnavailable, match="did not do /tmp"):
            readiness.open_to_everyone(f"127.0.0.1:{server.server_port}")
        server.shutdown()
