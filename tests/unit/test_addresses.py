"""Tests how an executor finds its numeric address, for frameworks that accept no host names."""

from __future__ import annotations

import socket

from howdah.executor.identity import Identity
from howdah.executor.ports import PortReservation


def identity() -> Identity:
    with socket.create_server(("127.0.0.1", 0)) as master:
        return Identity("worker:0", 1, ("127.0.0.1", master.getsockname()[1]), b"key", host="localhost")


def test_reserved_ports_know_the_address_they_are_on() -> None:
    held = PortReservation("localhost", ["main", "tensorboard"])
    assert held.address in ("127.0.0.1", "::1")
    assert len(set(held.ports.values())) == 2
    held.release()


def test_a_host_that_is_not_ours_has_no_address_here() -> None:
    held = PortReservation("192.0.2.7", ["main"])  # a documentation address, of nobody
    assert held.address == ""
    held.release()


def test_an_address_of_the_network_is_taken_as_it_is() -> None:
    assert identity().numeric("192.0.2.7") == "192.0.2.7"


def test_a_host_that_calls_itself_the_loopback_is_known_by_its_way_to_the_master() -> None:
    assert identity().numeric("127.0.1.1") == "127.0.0.1"
    assert identity().numeric("") == "127.0.0.1"
