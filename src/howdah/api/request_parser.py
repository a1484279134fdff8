"""A strict parser of HTTP/1.1 requests of bounded size, which reads each byte once however small the pieces are.

The parser is strict because a proxy in front (an engine's, or a reverse proxy) must not understand another request
than this server does; RFC 9112 says what to refuse.
"""

from __future__ import annotations

import functools
import re
import sys
import urllib.parse
from collections.abc import Mapping

from howdah.spec.values import dataclass

MAX_HEAD = 16 << 10
"""The most bytes of a request line with its headers."""
MAX_LENGTH_DIGITS = 12
MAX_CACHED_TARGET = 256
"""Characters of the longest target whose parts are cached."""
_FIRST = re.compile(rb"([A-Z]{1,16}) ([!-~]{1,16384}) HTTP/1\.([01])")
_HEADERS = re.compile(rb"(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*)*")
_ONCE = frozenset(("host", "content-length", "howdah-signature", "howdah-token", "origin"))
"""Headers that may come only once: with two of them it would be open which one counts."""


@dataclass(frozen=True)
class Caller:
    """A caller who has proved, by the head of a request alone, that it may send requests."""

    name: str
    """The principal that signed the request; "" for the holder of a token."""
    max_body: int
    """The most bytes of a body that this caller may send."""
    key: bytes = b""
    """The key with which the principal signs."""


class Request:
    """An HTTP request. `body` is empty, and `caller` None, until they are known."""

    __slots__ = ("body", "caller", "headers", "method", "peer", "target")

    def __init__(self, method: str, target: str, headers: Mapping[str, str], body: bytes, peer: str) -> None:
        self.method, self.target = method, target
        """The path with its query, as sent."""
        self.headers = headers
        """The values of headers, by name in lower case."""
        self.body = body
        self.peer = peer
        """The caller's IP address."""
        self.caller: Caller | None = None

    @property
    def path(self) -> str:
        """Return the path without its query."""
        return _split(self.target)[0]

    @property
    def query(self) -> dict[str, str]:
        """Return the last value of each name in the query."""
        return dict(_split(self.target)[1])


def _split(target: str) -> tuple[str, Mapping[str, str]]:
    return _cached_split(target) if len(target) < MAX_CACHED_TARGET else _cached_split.__wrapped__(target)


@functools.lru_cache(maxsize=256)
def _cached_split(target: str) -> tuple[str, Mapping[str, str]]:
    """Return path and query, cached because ten thousand executors send the same target."""
    path, _, query = target.partition("?")
    return urllib.parse.unquote(path), dict(urllib.parse.parse_qsl(query))


class BadRequest(Exception):
    """The bytes are not a request that this server accepts; `status` is the status of the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def parse_head(head: bytes, peer: str) -> tuple[Request, int, bool]:
    """Return the request of a `head` (without the empty line at its end), the length of its body, and whether the
    connection stays open after the answer.

    Raises:
        BadRequest: the head is not a request that this server accepts.
    """
    line_end = head.find(b"\r\n")
    line_end = len(head) if line_end < 0 else line_end
    first = _FIRST.fullmatch(head, 0, line_end)
    if first is None:
        raise BadRequest(400, "not an HTTP/1.1 request line")
    if _HEADERS.fullmatch(head, line_end) is None:
        raise BadRequest(400, "a header is not `name: value` of visible characters")
    headers: dict[str, str] = {}
    for line in head[line_end + 2 :].decode("latin-1").split("\r\n") if line_end < len(head) else ():
        name, _, value = line.partition(":")
        name = sys.intern(name.lower())
        if name in headers and name in _ONCE:
            raise BadRequest(400, f"the header {name} is there twice")
        headers[name] = value.strip(" \t")
    if "transfer-encoding" in headers:
        raise BadRequest(400, "send a Content-Length, not chunks")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise BadRequest(400, "Content-Length is not a number")
    if len(length) > MAX_LENGTH_DIGITS:
        raise BadRequest(413, "the body is too large")
    connection = headers.get("connection", "").lower()
    keep_alive = connection == "keep-alive" if first[3] == b"0" else connection != "close"
    return Request(first[1].decode(), first[2].decode(), headers, b"", peer), int(length), keep_alive
