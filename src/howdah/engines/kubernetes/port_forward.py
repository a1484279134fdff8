"""Forwards a port of this machine to a port of a pod through the API server, as `kubectl port-forward` does.

The API server's WebSocket carries one connection: each message begins with the number of its channel, 0 for data and 1
for errors, and the first message of each channel names the port.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import sys
import threading
import urllib.parse
from collections.abc import Iterable, Iterator

from websockets.client import ClientProtocol
from websockets.exceptions import WebSocketException
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from howdah.engines.kubernetes.api import CALL_LIMIT_S, KubernetesApi
from howdah.errors import EngineUnavailable, HowdahError

REACH_LIMIT_S, PAUSE_S = 1.0, 1.0
_PIECE, _DATA, _ERROR = 1 << 16, 0, 1
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_PROTOCOL = Subprotocol("v4.channel.k8s.io")


def reaches(url: str) -> bool:
    """Return whether the address of `url` can be reached directly."""
    address = urllib.parse.urlsplit(url)
    try:
        socket.create_connection((address.hostname or "", address.port or 80), REACH_LIMIT_S).close()
    except OSError:
        return False
    return True


class PodForward:
    """Forwards connections to the port of a pod that `url` names. It works in threads until `close`, or until this
    process ends. `address` is the address on this machine.

    Raises:
        EngineUnavailable: `url` names no port.
    """

    def __init__(self, api: KubernetesApi, pod: str, url: str) -> None:
        port = urllib.parse.urlsplit(url).port
        if port is None:
            raise EngineUnavailable(f"no port of {pod} can be forwarded: its address is {url!r}, without a port")
        self._api, self._pod, self._port = api, pod, port
        self._closed = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept_connections, name=f"forward to {pod}", daemon=True).start()

    def close(self) -> None:
        """Accept no more connections; open connections end by themselves."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._server.close()

    def _accept_connections(self) -> None:
        while not self._closed.is_set():
            with contextlib.ExitStack() as unserved:
                try:
                    near = unserved.enter_context(self._server.accept()[0])
                    threading.Thread(target=self._serve, args=(near,), daemon=True).start()
                except (OSError, RuntimeError):  # this process has no file, or no thread, to spare now
                    self._closed.wait(PAUSE_S)
                else:
                    unserved.pop_all()

    def _serve(self, near: socket.socket) -> None:
        """Forward one connection; when one side ends, the other side is ended, too."""
        with near, contextlib.suppress(OSError, WebSocketException):
            try:
                far, protocol = self._open()
            except (HowdahError, OSError, WebSocketException) as error:
                print(f"no way to {self._pod}: {error}", file=sys.stderr, flush=True)
                return
            with far:
                self._relay(near, far, protocol)

    def _open(self) -> tuple[socket.socket, ClientProtocol]:
        """Return a connection to the API server that has become a WebSocket, and the state of its protocol."""
        api = self._api
        path = api.on_server(api.path("pods", self._pod, "portforward", ports=str(self._port)))
        host = urllib.parse.urlsplit(api.cluster.server).netloc
        # `ws` stands for TLS, too: the socket is encrypted already.
        protocol = ClientProtocol(parse_uri(f"ws://{host}{path}"), subprotocols=[_PROTOCOL], max_size=None)
        far = api.open_socket(CALL_LIMIT_S)
        try:
            request = protocol.connect()
            request.headers.update(api.authorization())
            protocol.send_request(request)
            far.sendall(b"".join(protocol.data_to_send()))
            while protocol.state is State.CONNECTING and protocol.handshake_exc is None:
                if data := far.recv(_PIECE):
                    protocol.receive_data(data)
                else:
                    protocol.receive_eof()
            if protocol.handshake_exc is not None:
                raise protocol.handshake_exc
        except BaseException:
            far.close()
            raise
        return far, protocol

    def _relay(self, near: socket.socket, far: socket.socket, protocol: ClientProtocol) -> None:
        """Carry data in both directions until one side ends. One thread does it all, because two may not use one TLS
        connection at the same time."""
        near.setblocking(False)
        far.setblocking(False)
        reader, ended = _ChannelReader(), False
        to_near, to_far = bytearray(reader.data_of(protocol.events_received())), bytearray()
        while to_near or not ended:
            to_far += b"".join(protocol.data_to_send())
            ready = _wait(
                (near, bool(not ended and not to_far), bool(to_near)),
                (far, bool(not ended and not to_near), bool(not ended and to_far)),
            )
            if far in ready:
                _write(far, to_far)
                for data in _read(far) if not to_near else ():
                    ended = ended or not data
                    protocol.receive_data(data)
                to_near += reader.data_of(protocol.events_received())
                ended = ended or reader.refused is not None or protocol.state is not State.OPEN
            if near in ready:
                _write(near, to_near)
                for data in _read(near) if not to_far and not ended else ():
                    if not data or _has_ended(near):  # a client that has disconnected waits for no answer
                        protocol.send_close(CloseCode.NORMAL_CLOSURE)
                        _write(far, to_far + b"".join(protocol.data_to_send()))
                        return
                    protocol.send_binary(bytes([_DATA]) + data)
        if reader.refused is not None:
            print(f"no way to {self._pod}: {reader.refused}", file=sys.stderr, flush=True)


class _ChannelReader:
    """Puts the messages of the channels together from frames; `refused` is the message of the error channel, if there
    is one."""

    def __init__(self) -> None:
        self.refused: str | None = None
        self._begun: set[int] = set()
        self._message = bytearray()

    def data_of(self, events: Iterable[object]) -> bytes:
        """Return the data that these events of the protocol bring."""
        return b"".join(self._data_of(events))

    def _data_of(self, events: Iterable[object]) -> Iterator[bytes]:
        for event in events:
            if not isinstance(event, Frame) or event.opcode not in (Opcode.BINARY, Opcode.CONT):
                continue
            self._message += event.data
            if not event.fin or not self._message:
                continue
            channel, data = self._message[0], bytes(self._message[1:])
            self._message.clear()
            if channel not in self._begun:
                self._begun.add(channel)
            elif channel == _DATA:
                yield data
            elif channel == _ERROR and data:
                self.refused = data.decode("utf-8", "replace").strip()


def _wait(*wanted: tuple[socket.socket, bool, bool]) -> list[socket.socket]:
    """Wait until a socket can be read or written, among those that need it; return the sockets that can."""
    poll = select.poll()
    for each, reads, writes in wanted:
        if reads or writes:
            poll.register(each, (select.POLLIN if reads else 0) | (select.POLLOUT if writes else 0))
    numbers = {number for number, _ in poll.poll()}
    return [each for each, _, _ in wanted if each.fileno() in numbers]


def _read(side: socket.socket) -> Iterator[bytes]:
    """Yield the bytes that can be read now; b"" at the end."""
    with contextlib.suppress(*_NOT_NOW):
        yield side.recv(_PIECE)
        while isinstance(side, ssl.SSLSocket) and side.pending():
            yield side.recv(_PIECE)


def _write(side: socket.socket, data: bytearray) -> None:
    """Write as many bytes as possible now, and remove them from `data`."""
    with contextlib.suppress(*_NOT_NOW):
        if data:
            del data[: side.send(data)]


def _has_ended(side: socket.socket) -> bool:
    """Return whether the other end has closed this connection, and no bytes are left to read."""
    with contextlib.suppress(BlockingIOError):
        return not side.recv(1, socket.MSG_PEEK)
    return False
