"""Tests that each request gets a port of its own from a range, or an explanation why it got none."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Iterator

import pytest

from howdah.api.http_server import Request, Response, serve
from howdah.executor.ports import PortReservation
from howdah.master.server import listening
from howdah.spec import port_range
from howdah.wire.ports import bind_socket

WIDTH = 4


@pytest.fixture
def few() -> range:
    """Some that were free a moment ago."""
    for first in range(21000, 29000, WIDTH):
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(first, first + WIDTH):
                held.enter_context(contextlib.closing(bind_socket(socket.AF_INET, "", [port])))
            return range(first, first + WIDTH)
    pytest.skip("no ports are free here")


@contextlib.contextmanager
def reserved(count: int, among: range) -> Iterator[PortReservation]:
    held = PortReservation("127.0.0.1", [f"p{number}" for number in range(count)], among)
    yield held
    held.release()


def test_each_reservation_gets_a_port_of_its_own(few: range) -> None:
    """Although each lets a program share its port."""
    with reserved(2, few) as one, reserved(2, few) as other:
        assert sorted([*one.ports.values(), *other.ports.values()]) == list(few)


def test_none_is_left(few: range) -> None:
    with reserved(WIDTH - 1, few):
        with pytest.raises(OSError, match=f"none of the ports {few[0]} to {few[-1]} is free") as error:
            PortReservation("127.0.0.1", ["main", "other"], few)
        assert error.value.errno == errno.EADDRINUSE
        with reserved(1, few):  # what was taken in vain was given back
            pass


@pytest.mark.parametrize("option", [socket.SO_REUSEADDR, socket.SO_REUSEPORT])
def test_the_program_can_have_it_all_the_same(few: range, option: int) -> None:
    with reserved(1, few) as held, socket.socket() as program:
        program.setsockopt(socket.SOL_SOCKET, option, 1)
        program.bind(("127.0.0.1", held.ports["p0"]))
        program.listen()


def test_none_is_in_use_on_another_address(few: range) -> None:
    """A server that listens on all addresses, as LightGBM's does, without any option would find it taken."""
    with contextlib.closing(bind_socket(socket.AF_INET, "127.0.0.3", few)) as other, reserved(WIDTH - 1, few) as held:
        ports = list(held.ports.values())
        assert other.getsockname()[1] not in ports
        held.release()
        for port in ports:
            bind_socket(socket.AF_INET, "", [port]).close()


def test_a_host_that_is_not_ours(few: range) -> None:
    held = PortReservation("192.0.2.7", ["main"], few)  # a documentation address, of nobody
    assert (held.address, held.ports["main"] in few) == ("", True)
    held.release()


def test_a_server_takes_none_that_is_reserved(few: range) -> None:
    async def answer(_: Request) -> Response:
        return Response()

    async def port() -> int:
        server = await serve(answer, lambda _: None, "127.0.0.1", among=few)
        taken: int = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        return taken

    with reserved(WIDTH - 1, few) as held:
        assert asyncio.run(port()) in set(few) - set(held.ports.values())
    with reserved(WIDTH, few), pytest.raises(OSError, match="port_range"):
        asyncio.run(port())


def test_a_master_waits_for_the_port_of_the_one_before_it(
    few: range, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(listening, "PORT_AGAIN_S", 0.01)

    async def answer(_: Request) -> Response:
        return Response()

    async def main() -> int:
        with reserved(WIDTH, few):
            coming = asyncio.ensure_future(listening.bind_with_retry(answer, lambda _: None, "127.0.0.1", few))
            tries = 0
            while tries < 3:
                await asyncio.sleep(0)
                tries += capfd.readouterr().err.count("trying again")
            assert not coming.done()
        server = await coming
        port: int = server.sockets[0].getsockname()[1]
        server.close()
        return port

    assert asyncio.run(asyncio.wait_for(main(), 60)) in few
    monkeypatch.setattr(listening, "PORT_S", 0.0)
    with reserved(WIDTH, few), pytest.raises(OSError, match="port_range"):
        asyncio.run(listening.bind_with_retry(answer, lambda _: None, "127.0.0.1", few))


def test_as_people_write_it() -> None:
    assert list(port_range.ports("2000-2002")) == [2000, 2001, 2002]
    assert not port_range.ports("")
