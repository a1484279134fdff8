"""Tests that what answers in place of a history server is told in a line."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from howdah.client.api_client import ApiClient
from howdah.client.remote_jobs import RemoteJobs
from howdah.errors import EngineUnavailable, HowdahError, SpecError, StagingError


@contextmanager
def answering(answer: bytes) -> Iterator[ApiClient]:
    """A service that sends `answer` to each caller, and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    caller, _ = server.accept()
                except OSError:
                    return
                with caller:
                    caller.recv(65536)
                    caller.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield ApiClient(f"http://127.0.0.1:{server.getsockname()[1]}/#token=x")
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", EngineUnavailable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", EngineUnavailable),
        (b"HTTP/1.1 200 OK\r\n\r\n<html>", SpecError),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000, SpecError),
        *((b"HTTP/1.1 200 OK\r\n\r\n" + body, StagingError) for body in (b"[]", b"{}", b'{"jobs": null}', b"null")),
    ],
)
def test_another_service_at_the_address(answer: bytes, error: type[HowdahError]) -> None:
    with answering(answer) as client:
        for ask in (lambda: RemoteJobs(client).list_jobs({}, 9), lambda: client.records("job_1")):
            with pytest.raises(error):
                ask()


def test_rows_that_are_none_of_jobs() -> None:
    with answering(b'HTTP/1.1 200 OK\r\n\r\n{"jobs": ["a"]}') as client, pytest.raises(StagingError):
        RemoteJobs(client).list_jobs({}, 9)
