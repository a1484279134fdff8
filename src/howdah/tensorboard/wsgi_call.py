"""Calls a WSGI application (PEP 3333)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Application = Callable[[Mapping[str, Any], Callable[..., Any]], Iterable[bytes]]


def call_application(application: Application, environ: Mapping[str, Any]) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return the status, the headers and the body of an answer."""
    started: list[tuple[int, list[tuple[str, str]]]] = []

    def start(status: str, headers: list[tuple[str, str]], _: object = None) -> Callable[[bytes], None]:
        started[:] = [(int(status.split(" ", 1)[0]), headers)]
        return written.append

    written: list[bytes] = []
    parts = application(environ, start)
    try:
        written.extend(parts)
    finally:
        getattr(parts, "close", int)()
    return (*started[0], b"".join(written))
