"""Tests the limits that the HTTP server sets to clients which have not authenticated, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from howdah.api import connection_limits, http_server
from howdah.api.http_server import Caller, Limits, Request, Response

KNOWN = 1 << 20


async def echo(request: Request) -> Response:
    name = request.caller.name if request.caller else "stranger"
    return Response(200, f"{name} {request.method} {request.path} ".encode() + request.body, "text/plain")


def identify(request: Request) -> Caller | None:
    name = request.headers.get("x-name", "")
    return Caller(name, KNOWN) if name else None


@contextlib.asynccontextmanager
async def serving(**limits: float) -> AsyncIterator[tuple[str, int]]:
    running = await http_server.serve(echo, identify, "127.0.0.1", limits=Limits(**limits))
    try:
        yield running.sockets[0].getsockname()
    finally:
        running.close()
        await take_turns()


async def take_turns() -> None:
    """Let the loop see that its clients have left: then the server's ends of their connections are closed, too."""
    for _ in range(10):
        await asyncio.sleep(0)


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 120)).decode()
    length = int(head.partition("Content-Length: ")[2].partition("\r\n")[0])
    return int(head.split(" ")[1]), await reader.readexactly(length)


def request(name: str = "", body: bytes = b"", path: str = "/x") -> bytes:
    named = f"X-Name: {name}\r\n" if name else ""
    return f"POST {path} HTTP/1.1\r\nHost: h\r\n{named}Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_a_body_is_refused_before_it_is_sent() -> None:
    async def run() -> None:
        async with serving() as address:
            for name, maximum in (("", connection_limits.MAX_BODY), ("ann", KNOWN)):
                reader, writer = await asyncio.open_connection(*address)
                writer.write(request(name, bytes(maximum)))
                assert (await answer(reader))[0] == 200
                writer.write(request(name, bytes(maximum + 1))[: -maximum - 1])
                assert (await answer(reader))[0] == 413
                assert await asyncio.wait_for(reader.read(), 120) == b""
                writer.close()

    asyncio.run(run())


def test_a_request_in_single_bytes_is_for_those_who_are_known() -> None:
    async def run() -> None:
        async with serving() as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            writer.write(request("ann"))
            assert await answer(reader) == (200, b"ann POST /x ")
            for piece in pieces_of(request("ann", b"x" * 300)):
                writer.write(piece)
                await asyncio.sleep(0)
            assert await answer(reader) == (200, b"ann POST /x " + b"x" * 300)
            writer.close()

    asyncio.run(run())


def test_a_stranger_that_sends_crumbs_is_refused() -> None:
    """Each in a packet of its own, for the loops of both sides are one."""

    async def run() -> None:
        async with serving() as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sent = 0
            with contextlib.suppress(ConnectionError):
                for piece in pieces_of(b"GET /" + b"x" * 4000):
                    writer.write(piece)
                    await writer.drain()
                    sent += 1
                    await asyncio.sleep(0.001)
                    if reader._buffer:  # type: ignore[attr-defined] # what has come already
                        break
            assert (await answer(reader))[0] == 400
            assert connection_limits.MAX_READS <= sent < 4000
            writer.close()

    asyncio.run(run())


def pieces_of(data: bytes) -> list[bytes]:
    return [data[number : number + 1] for number in range(len(data))]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.sampled_from(["", "ann"]), st.binary(max_size=100)), min_size=1, max_size=4),
    st.lists(st.integers(1, 200), max_size=8),
)
def test_however_requests_are_cut_each_is_answered_in_turn(bodies: list[tuple[str, bytes]], cuts: list[int]) -> None:
    async def run() -> None:
        async with serving() as address:
            reader, writer = await asyncio.open_connection(*address)
            sent = b"".join(request(name, body, f"/{number}") for number, (name, body) in enumerate(bodies))
            for cut in cuts:
                piece, sent = sent[:cut], sent[cut:]
                writer.write(piece)
                await asyncio.sleep(0.001)
            writer.write(sent)
            for number, (name, body) in enumerate(bodies):
                expected = f"{name or 'stranger'} POST /{number} ".encode() + body
                assert await answer(reader) == (200, expected)
            writer.close()

    asyncio.run(run())


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.binary(max_size=400), st.booleans())
def test_whatever_comes_the_server_answers_the_next(capfd: pytest.CaptureFixture[str], data: bytes, end: bool) -> None:
    async def run() -> None:
        async with serving() as address:
            _, bad = await asyncio.open_connection(*address)
            bad.write(data + (b"\r\n\r\n" if end else b""))
            reader, writer = await asyncio.open_connection(*address)
            writer.write(request("ann"))
            assert (await answer(reader))[0] == 200
            writer.close()
            bad.transport.abort()
            await asyncio.sleep(0)

    asyncio.run(run())
    assert "Traceback" not in capfd.readouterr().err


def test_much_that_comes_behind_a_request_waits_at_the_caller() -> None:
    async def run() -> None:
        async with serving() as address:
            reader, writer = await asyncio.open_connection(*address)
            one = request("ann", bytes(10_000))
            for _ in range(300):
                writer.write(one)
            for _ in range(300):
                assert (await answer(reader))[0] == 200
            writer.close()

    asyncio.run(run())


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nX: ", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"])
def test_who_does_not_finish_is_closed_and_who_is_known_is_not(sent: bytes) -> None:
    async def run() -> None:
        async with serving(request_s=0.2) as address:
            known, its_writer = await asyncio.open_connection(*address)
            its_writer.write(request("ann"))
            assert (await answer(known))[0] == 200
            reader, writer = await asyncio.open_connection(*address)
            writer.write(sent)
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 120) == b""
            its_writer.write(request("ann"))
            assert (await answer(known))[0] == 200
            writer.close()
            its_writer.close()

    asyncio.run(run())


def test_a_fault_of_ours_is_written_down_once(capfd: pytest.CaptureFixture[str]) -> None:
    async def fail(request: Request) -> Response:
        raise RuntimeError(f"broken by {request.path}")

    async def run() -> None:
        running = await http_server.serve(fail, identify, "127.0.0.1")
        reader, writer = await asyncio.open_connection(*running.sockets[0].getsockname())
        for number in range(20):
            writer.write(request(path=f"/{number}"))
            assert (await answer(reader))[0] == 500
        writer.close()
        running.close()
        await take_turns()

    asyncio.run(run())
    assert capfd.readouterr().err.count("Traceback") == 1
