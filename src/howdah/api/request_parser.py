"""HTTP/1.1 requests as bytes: strict, of bounded size, and read once however small the pieces they arrive in.

Strict, because whoever passes requests on (YARN's proxy, a reverse proxy) must not understand another request than we
do: RFC 9112 says what else to refuse.
"""

from __future__ import annotations

import functools
import re
import sys
import urllib.parse
from collections.abc import Mapping

from howdah.spec.values import dataclass

MAX_HEAD = 16 << 10
"""Bytes of a request line and headers."""
MAX_LENGTH_DIGITS = 12
_SHORT = 256
_FIRST = re.compile(rb"([A-Z]{1,16}) ([!-~]{1,16384}) HTTP/1\.([01])")
_HEADERS = re.compile(rb"(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*)*")
_ONCE = frozenset(("host", "content-length", "howdah-signature", "howdah-token", "origin"))
"""Headers of which two would leave open which one counts."""


@dataclass(frozen=True)
class Caller:
    """Somebody who has shown, by the head of a request alone, that it may ask."""

    name: str
    """The principal that has signed; "" for the holder of a token."""
    max_body: int
    """Bytes of a body that are taken from this caller."""
    key: bytes = b""
    """What the principal signs with."""


class Request:
    """One request. `body` is empty, and `caller` None, until both are known."""

    __slots__ = ("body", "caller", "headers", "method", "peer", "target")

    def __init__(self, method: str, target: str, headers: Mapping[str, str], body: bytes, peer: str) -> None:
        self.method, self.target = method, target
        """`target` is the path with its query, as sent."""
        self.headers = headers
        """Values by name in lower case."""
        self.body = body
        self.peer = peer
        """The caller's IP address."""
        self.caller: Caller | None = None

    @property
    def path(self) -> str:
        """The path without its query."""
        return _split(self.target)[0]

    @property
    def query(self) -> dict[str, str]:
        """The query's last value of each name."""
        return dict(_split(self.target)[1])


def _split(target: str) -> tuple[str, Mapping[str, str]]:
    return _known(target) if len(target) < _SHORT else _known.__wrapped__(target)


@functools.lru_cache(maxsize=256)
def _known(target: str) -> tuple[str, Mapping[str, str]]:
    """Ten thousand executors ask for the same."""
    path, _, query = target.partition("?")
    return urllib.parse.unquote(path), dict(urllib.parse.parse_qsl(query))


class BadRequest(Exception):
    """The bytes are not a request that is taken; `status` is what the caller is answered."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def parse_head(head: bytes, peer: str) -> tuple[Request, int, bool]:
    """The request of a `head` (without the empty line at its end), the length of its body, and whether the connection
    goes on afterwards.

    Raises:
        BadRequest: it is none.
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
    goes_on = connection == "keep-alive" if first[3] == b"0" else connection != "close"
    return Request(first[1].decode(), first[2].decode(), headers, b"", peer), int(length), goes_on
