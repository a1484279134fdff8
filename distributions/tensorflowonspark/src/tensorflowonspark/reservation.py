"""Registers the nodes of a cluster: a server on the driver, and clients on the nodes.

Messages are lines of JSON, each with a digest by the server's key: nothing that comes from the network is unpickled.
The key is in the environment of the processes that need it (TFOS_SERVER_KEY), or in a file of the user's on the
driver's machine, by the server's port.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorflowonspark import node_environment

logger = logging.getLogger(__name__)

TFOS_SERVER_PORT = "TFOS_SERVER_PORT"
TFOS_SERVER_HOST = "TFOS_SERVER_HOST"
TFOS_SERVER_KEY = "TFOS_SERVER_KEY"
BUFSIZE = 1024
MAX_RETRIES = 3
MAX_MESSAGE = 1 << 20
_MAX_AGE_S = 60.0
_IDLE_S = 60.0


class Reservations:
    """What nodes have registered; `required` is how many must."""

    def __init__(self, required: int) -> None:
        self.required = required
        self.lock = threading.RLock()
        self.reservations: list[Any] = []

    def add(self, meta: Any) -> None:
        """Register a node."""
        with self.lock:
            self.reservations.append(meta)

    def done(self) -> bool:
        """Return whether all nodes have registered."""
        with self.lock:
            return len(self.reservations) >= self.required

    def get(self) -> list[Any]:
        """Return what the nodes have registered."""
        with self.lock:
            return list(self.reservations)

    def remaining(self) -> int:
        """Return how many nodes are missing."""
        with self.lock:
            return self.required - len(self.reservations)


class MessageSocket:
    """Sends and receives messages, which the key signs."""

    key: bytes = b""

    def receive(self, sock: socket.socket) -> Any:
        """Return the next message; None if the other side has ended.

        Raises:
            ConnectionError: the message is too long, too old, or signed with another key.
        """
        line = b""
        while not line.endswith(b"\n"):
            piece = sock.recv(BUFSIZE)
            if not piece:
                return None
            line += piece
            if len(line) > MAX_MESSAGE:
                raise ConnectionError("the message is too long")
        digest, _, body = line.rstrip(b"\n").partition(b" ")
        if not hmac.compare_digest(digest, self._digest(body)):
            raise ConnectionError("the message is signed with another key")
        message = json.loads(body)
        if abs(time.time() - message["time"]) > _MAX_AGE_S:
            raise ConnectionError("the message is too old, or the clocks differ")
        return message["message"]

    def send(self, sock: socket.socket, msg: Any) -> None:
        """Send a message, which JSON must be able to hold."""
        body = json.dumps({"time": time.time(), "message": msg}).encode()
        sock.sendall(self._digest(body) + b" " + body + b"\n")

    def _digest(self, body: bytes) -> bytes:
        return hmac.digest(self.key, b"tensorflowonspark " + body, "sha256").hex().encode()


class Server(MessageSocket):
    """Takes the nodes' registrations. `done` says that a node or a program wants the cluster to end."""

    reservations: Reservations | None = None
    done = False

    def __init__(self, count: int) -> None:
        if count <= 0:
            raise AssertionError("Expected reservations > 0")
        self.reservations = Reservations(count)
        self.key = bytes.fromhex(os.environ.get(TFOS_SERVER_KEY, "")) or secrets.token_bytes(32)
        self._listening: socket.socket | None = None

    def await_reservations(self, sc: Any, status: Mapping[str, Any] = {}, timeout: float = 600) -> list[Any]:
        """Return what all nodes have registered.

        Raises:
            Exception: a node has failed (`status` has its `error`), or some are missing after `timeout` seconds.
        """
        assert self.reservations is not None
        deadline = time.monotonic() + timeout
        while not self.reservations.done():
            if "error" in status:
                raise Exception(f"a node has failed: {status['error']}")
            if time.monotonic() > deadline:
                raise Exception(f"{self.reservations.remaining()} nodes have not registered in {timeout} s")
            time.sleep(0.1)
        return self.reservations.get()

    def _handle_message(self, sock: socket.socket, msg: Mapping[str, Any]) -> None:
        assert self.reservations is not None
        kind, answer = msg["type"], "OK"  # type: tuple[str, Any]
        if kind == "REG":
            self.reservations.add(msg["data"])
        elif kind == "QUERY":
            answer = self.reservations.done()
        elif kind == "QINFO":
            answer = self.reservations.get()
        elif kind == "STOP":
            self.done = True
        else:
            answer = "ERR"
        self.send(sock, answer)

    def start(self) -> tuple[str, int]:
        """Begin to listen; return the address for clients."""
        listening = self.start_listening_socket()
        self._listening = listening
        host, port = self.get_server_ip(), listening.getsockname()[1]
        file_of_key = _key_file(port)
        file_of_key.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(file_of_key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(self.key.hex())
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()
        logger.info("listening for reservations at %s", (host, port))  # programs that ask for the end need the address
        return host, port

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                sock, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            sock.settimeout(_IDLE_S)
            while (message := self.receive(sock)) is not None:
                self._handle_message(sock, message)

    def get_server_ip(self) -> str:
        """Return the host that clients connect to: TFOS_SERVER_HOST, or this machine's address."""
        return os.environ.get(TFOS_SERVER_HOST) or node_environment.get_ip_address()

    def get_server_ports(self) -> list[int]:
        """Return the ports to try: TFOS_SERVER_PORT has one, or a range like 5000-5010; 0 lets the system choose."""
        first, _, last = os.environ.get(TFOS_SERVER_PORT, "0").partition("-")
        return list(range(int(first), int(last or first) + 1))

    def start_listening_socket(self) -> socket.socket:
        """Return a socket that listens on the first port that is free.

        Raises:
            Exception: none is.
        """
        for port in self.get_server_ports():
            with contextlib.suppress(OSError):
                return socket.create_server(("", port))
        raise Exception(f"no port of {os.environ.get(TFOS_SERVER_PORT)} is free")

    def stop(self) -> None:
        """Listen no more."""
        self.done = True
        listening, self._listening = self._listening, None  # a program may shut its cluster down twice
        if listening is not None:
            _key_file(listening.getsockname()[1]).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()


class Client(MessageSocket):
    """A node's connection to the server."""

    sock: socket.socket | None = None
    server_addr: tuple[str, int] | None = None

    def __init__(self, server_addr: tuple[str, int]) -> None:
        self.server_addr = tuple(server_addr)  # type: ignore[assignment]
        given = os.environ.get(TFOS_SERVER_KEY)
        self.key = bytes.fromhex(given or _key_file(int(server_addr[1])).read_text())
        self.sock = socket.create_connection(self.server_addr, _IDLE_S)

    def _request(self, msg_type: str, msg_data: Any = None) -> Any:
        message = {"type": msg_type, **({} if msg_data is None else {"data": msg_data})}
        for attempt in range(MAX_RETRIES):
            try:
                assert self.sock is not None
                self.send(self.sock, message)
                answer = self.receive(self.sock)
                if answer is not None:
                    return answer
                raise ConnectionError("the server has ended, or does not know the key")
            except OSError:
                self.close()
                if attempt + 1 == MAX_RETRIES:
                    raise
                assert self.server_addr is not None
                self.sock = socket.create_connection(self.server_addr, _IDLE_S)
        return None

    def close(self) -> None:
        """Close the connection."""
        if self.sock is not None:
            self.sock.close()

    def register(self, reservation: Any) -> Any:
        """Register this node."""
        return self._request("REG", reservation)

    def get_reservations(self) -> list[Any]:
        """Return what nodes have registered so far."""
        found: list[Any] = self._request("QINFO")
        return found

    def await_reservations(self) -> list[Any]:
        """Return what nodes have registered, once all have."""
        while not self._request("QUERY"):
            time.sleep(0.1)
        return self.get_reservations()

    def request_stop(self) -> Any:
        """Ask for the end of the cluster."""
        return self._request("STOP")


def _key_file(port: int) -> Path:
    from howdah.localfiles.own_directories import state_directory  # nodes, which import this module, do not have it

    # Found anew each time: a driver in a container learns only from its SparkContext where it may write.
    return state_directory(os.environ) / "tensorflowonspark" / f"{port}.key"
