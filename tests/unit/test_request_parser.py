"""Tests which request heads are accepted, which are refused and why, and that no other error ever happens."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from howdah.api.request_parser import BadRequest, parse_head


def test_a_request_of_a_browser() -> None:
    request, length, goes_on = parse_head(
        b"POST /api/v1/jobs/a%20b?x=1&x=2 HTTP/1.1\r\nHost: h:80\r\nContent-Length: 12\r\nCookie:a=b; c=\xe4\r\nX:",
        "10.0.0.1",
    )
    assert (request.method, request.path, request.query, request.peer) == (
        "POST",
        "/api/v1/jobs/a b",
        {"x": "2"},
        "10.0.0.1",
    )
    assert request.headers == {"host": "h:80", "content-length": "12", "cookie": "a=b; c=ä", "x": ""}
    assert (length, goes_on) == (12, True)


@pytest.mark.parametrize(
    ("version", "header", "goes_on"),
    [("1.1", "", True), ("1.1", "Close", False), ("1.0", "", False), ("1.0", "keep-alive", True)],
)
def test_whether_the_connection_goes_on(version: str, header: str, goes_on: bool) -> None:
    head = f"GET / HTTP/{version}" + (f"\r\nConnection: {header}" if header else "")
    assert parse_head(head.encode(), "")[2] is goes_on


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"GET /", 400),
        (b"GET / HTTP/2.0", 400),
        (b"get / HTTP/1.1", 400),
        (b"GET  / HTTP/1.1", 400),
        (b"GET /\xff HTTP/1.1", 400),
        (b"GET / HTTP/1.1\r\nHost", 400),
        (b"GET / HTTP/1.1\r\n: h", 400),
        (b"GET / HTTP/1.1\r\nHost : h", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n b", 400),
        (b"GET / HTTP/1.1\r\nHost: a\nX: b", 400),
        (b"GET / HTTP/1.1\r\nHost: a\rX: b", 400),
        (b"GET / HTTP/1.1\r\nHost: a\0", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nhost: b", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: +1", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: \xb2", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1,1", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000, 413),
        (b"GET / HTTP/1.1\r\nHowdah-Signature: a\r\nHowdah-Signature: b", 400),
    ],
)
def test_what_is_refused(head: bytes, status: int) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_head(head, "")
    assert refused.value.status == status


WORDS = st.sampled_from(
    [
        b"GET ",
        b"/",
        b" HTTP/1.1",
        b"\r\n",
        b"Host",
        b": ",
        b"Content-Length",
        b"12",
        b"\xff",
        b"\0",
        b"\n",
        b"%zz",
        b"?a",
    ]
)


@given(st.one_of(st.binary(max_size=300), st.lists(WORDS, max_size=30).map(b"".join)))
@example(b"GET //[?%zz HTTP/1.1\r\nHost: [")
@example(b"GET * HTTP/1.1\r\nX: " + b"a " * 8000)
def test_whatever_the_bytes_are_they_are_a_request_or_refused(head: bytes) -> None:
    try:
        request, length, _ = parse_head(head, "10.0.0.1")
    except BadRequest:
        return
    assert length >= 0
    assert head.startswith(f"{request.method} {request.target} HTTP/1.".encode())
    assert isinstance(request.path, str)
    assert all(isinstance(value, str) for value in request.query.values())
    assert all("\n" not in value and "\r" not in value for value in request.headers.values())
