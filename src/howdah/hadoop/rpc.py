"""Speaks Hadoop IPC version 9 over asyncio: one connection carries many calls at once, which are distinguished by their
call id.

A connection opens itself at the first call, and again after it was lost. After a login with a token or with Kerberos,
nothing is read from a server that has not proved its identity.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import struct
from typing import Protocol, TypeVar

from google.protobuf.internal.decoder import _DecodeVarint32  # type: ignore[attr-defined]
from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]
from google.protobuf.message import DecodeError, Message

from howdah.errors import EngineRejected, EngineUnavailable
from howdah.hadoop.proto import ipc_pb2 as pb
from howdah.hadoop.sasl import MAX_WRAPPED_BYTES, DigestClient
from howdah.spec.values import dataclass
from howdah.wire.credentials import Token

M = TypeVar("M", bound=Message)

CONTEXT_CALL, SASL_CALL = -3, -33
SUCCESS, NEGOTIATE, INITIATE, CHALLENGE, RESPONSE, WRAP = range(6)
PROTOCOL_BUFFERS = 2
CLIENT_ID_BYTES = 16
CONNECT_TIMEOUT_S = 20.0
CALL_TIMEOUT_S = 60.0
_PIECE = MAX_WRAPPED_BYTES // 2  # bytes that are wrapped at a time
MAX_RESPONSE_BYTES = 128 << 20  # ipc.maximum.response.length


@dataclass(frozen=True)
class Address:
    """The address of a Hadoop server. For messages it also names the server and the setting that has this address."""

    host: str
    port: int
    server: str = "server"
    setting: str = ""

    @classmethod
    def parse(cls, text: str, default_port: int, server: str, setting: str = "") -> Address:
        """Read `host` or `host:port`."""
        host, _, port = text.rpartition(":") if text.rpartition(":")[2].isdigit() else (text, "", "")
        return cls(host.strip("[]"), int(port or default_port), server, setting)

    def __str__(self) -> str:
        setting = f" ({self.setting})" if self.setting else ""
        return f"{self.server} {self.host}:{self.port}{setting}"


@dataclass(frozen=True)
class SimpleLogin:
    """SIMPLE authentication: the server trusts the name."""

    name: str
    """The user's name."""


@dataclass(frozen=True)
class Kerberos:
    """A login with a Kerberos ticket."""

    principal: str
    """The principal that the server must have, from the configuration: `rm/_HOST@REALM`."""


Login = SimpleLogin | Token | Kerberos


class RpcError(EngineRejected):
    """The server answered with an exception; `java_class` is the full name of its class, `text` the whole message."""

    def __init__(self, address: Address, java_class: str, text: str) -> None:
        self.java_class, self.text = java_class, text
        # A wrapped exception puts its stack trace into the message: the first line is the sentence.
        first = text.strip().splitlines()[0] if text.strip() else "no message"
        super().__init__(f"{address.server}: {self.name}: {first}")

    @property
    def name(self) -> str:
        """Return the name of the class without its package, and without the class in which it is declared."""
        return self.java_class.rpartition(".")[2].rpartition("$")[2]


class _Mechanism(Protocol):
    finished: bool

    @property
    def layered(self) -> bool: ...

    def step(self, challenge: bytes) -> bytes: ...

    def wrap(self, data: bytes) -> bytes: ...

    def unwrap(self, data: bytes) -> bytes: ...


class ByteReader(Protocol):
    """A stream that bytes are read from."""

    async def readexactly(self, n: int) -> bytes:
        """Read exactly `n` bytes.

        Raises:
            EOFError: the connection ended before.
            OSError: the connection broke.
        """


class ByteWriter(Protocol):
    """A stream that bytes are written to."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


def delimited(message: Message) -> bytes:
    """Return a message preceded by its length."""
    data = message.SerializeToString()
    return bytes(_VarintBytes(len(data))) + data


def parse_delimited(kind: type[M], data: bytes, position: int = 0) -> tuple[M, int]:
    """Return the message at `position`, which its length precedes, and the position after it."""
    length, start = _DecodeVarint32(data, position)
    if start + length > len(data):
        raise DecodeError("the message is cut off")
    return kind.FromString(data[start : start + length]), start + length


def frame(*messages: Message) -> bytes:
    """Return one IPC packet: its length, then each message preceded by its own."""
    body = b"".join(map(delimited, messages))
    return struct.pack(">I", len(body)) + body


async def read_frame(reader: ByteReader) -> bytes:
    """Read the body of the next IPC packet.

    Raises:
        EOFError: the connection ended before.
        OSError: the connection broke, or the other side does not speak Hadoop IPC.
    """
    (length,) = struct.unpack(">I", await reader.readexactly(4))
    if length > MAX_RESPONSE_BYTES:
        raise OSError(f"a message of {length} bytes announced: that is not Hadoop IPC")
    return await reader.readexactly(length)


class RpcConnection:
    """Calls the methods of one protocol on one server.

    `call` raises EngineUnavailable if the server cannot be reached or does not answer in time, RpcError if it answers
    with an exception, and EngineRejected if it could not prove its identity.
    """

    def __init__(self, address: Address, protocol: str, login: Login, connect_timeout: float = CONNECT_TIMEOUT_S):
        self.address, self._protocol, self._login, self._connect_timeout = address, protocol, login, connect_timeout
        self._client_id, self._last_id = secrets.token_bytes(CLIENT_ID_BYTES), 0
        self._calls: dict[int, asyncio.Future[tuple[bytes, int]]] = {}
        self._writer: ByteWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()

    async def call(self, method: str, request: Message, kind: type[M], timeout: float = CALL_TIMEOUT_S) -> M:
        """Call `method`; `timeout` (seconds) starts when the request has been sent."""
        async with self._opening:
            writer = self._writer or await self._open()
        self._last_id += 1
        call_id, future = self._last_id, asyncio.get_running_loop().create_future()
        self._calls[call_id] = future
        header = pb.RequestHeader(method=method, protocol=self._protocol, protocol_version=1)
        writer.write(frame(self._request_header(call_id), header, request))
        try:
            data, position = await asyncio.wait_for(future, timeout)
            return parse_delimited(kind, data, position)[0]
        except (TimeoutError, asyncio.TimeoutError):
            raise EngineUnavailable(f"{self.address} did not answer {method} within {timeout:g} s") from None
        except (DecodeError, IndexError) as error:
            raise EngineUnavailable(f"{self.address} answered {method} with garbage: {error}") from None
        finally:
            self._calls.pop(call_id, None)

    async def close(self) -> None:
        """Close the connection. Calls in flight fail; a later call opens the connection again."""
        reading, self._reading = self._reading, None
        if reading:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading
        self._drop(EngineUnavailable(f"the connection to {self.address} was closed"))

    async def _open(self) -> ByteWriter:
        try:
            reader, writer = await asyncio.wait_for(self._log_in(), self._connect_timeout)
        except (TimeoutError, asyncio.TimeoutError):
            reason = f"no answer within {self._connect_timeout:g} s"
        except ConnectionRefusedError:
            reason = "connection refused"
        except (DecodeError, IndexError, EOFError):
            reason = "the connection was closed during the login: is it a Hadoop IPC port?"
        except OSError as error:
            reason = error.strerror or str(error)
        else:
            self._writer, self._reading = writer, asyncio.create_task(self._read(reader))
            return writer
        raise EngineUnavailable(f"{self.address}: {reason}")

    async def _log_in(self) -> tuple[ByteReader, ByteWriter]:
        streams = await asyncio.open_connection(self.address.host, self.address.port)
        reader: ByteReader = streams[0]
        writer: ByteWriter = streams[1]
        try:
            simple = isinstance(self._login, SimpleLogin)
            writer.write(b"hrpc" + bytes((9, 0, 0 if simple else 0xDF)))
            if not simple:
                mechanism = await self._authenticate(reader, writer)
                if mechanism.layered:
                    reader = writer = _Layered(reader, writer, mechanism, self._request_header(SASL_CALL))
            context = pb.ConnectionContext(protocol=self._protocol)
            # Any other login brings its identity with it, and naming one in addition would be impersonation.
            if isinstance(self._login, SimpleLogin):
                context.user.effective_user = self._login.name
            writer.write(frame(self._request_header(CONTEXT_CALL), context))
            return reader, writer
        except BaseException:
            writer.close()
            raise

    async def _authenticate(self, reader: ByteReader, writer: ByteWriter) -> _Mechanism:
        mechanism: _Mechanism | None = None
        message = pb.Sasl(state=NEGOTIATE)
        while True:
            writer.write(frame(self._request_header(SASL_CALL), message))
            answer = await self._sasl_answer(reader)
            if answer.state == NEGOTIATE and mechanism is None:
                auth = self._choose(list(answer.auths))
                mechanism = self._mechanism(auth)
                # Without a challenge in the offer the server sends one after INITIATE; Kerberos speaks first.
                first = auth.challenge or isinstance(self._login, Kerberos)
                message = pb.Sasl(state=INITIATE, token=mechanism.step(auth.challenge) if first else b"")
                message.auths.add().CopyFrom(auth)
                message.auths[0].ClearField("challenge")
            elif answer.state == CHALLENGE and mechanism is not None:
                message = pb.Sasl(state=RESPONSE, token=mechanism.step(answer.token))
            elif answer.state == SUCCESS:
                if mechanism and answer.token:
                    mechanism.step(answer.token)
                if not mechanism or not mechanism.finished:
                    raise EngineRejected(f"{self.address} ended the login without proving that it knows the secret")
                return mechanism
            else:
                raise EngineRejected(f"{self.address} sent SASL state {answer.state} out of turn")

    async def _sasl_answer(self, reader: ByteReader) -> pb.Sasl:
        data = await read_frame(reader)
        header, position = parse_delimited(pb.RpcResponseHeader, data)
        if header.status:
            raise RpcError(self.address, header.exception_class, header.error_message)
        return parse_delimited(pb.Sasl, data, position)[0]

    def _choose(self, offered: list[pb.SaslAuth]) -> pb.SaslAuth:
        wanted = "KERBEROS" if isinstance(self._login, Kerberos) else "TOKEN"
        for auth in offered:
            if auth.method == wanted:
                return auth
        methods = ", ".join(auth.method for auth in offered) or "nothing"
        raise EngineRejected(f"{self.address} offers {methods} to log in with, howdah has {wanted}")

    def _mechanism(self, auth: pb.SaslAuth) -> _Mechanism:
        if isinstance(self._login, Kerberos):
            self._check_principal(f"{auth.protocol}/{auth.server_id}", self._login.principal)
            from howdah.hadoop.gss import KerberosClient  # not worth its import where there is no Kerberos

            return KerberosClient(auth.protocol, auth.server_id)
        assert isinstance(self._login, Token)
        return DigestClient(self._login.identifier, self._login.password, f"{auth.protocol}/{auth.server_id}")

    def _check_principal(self, offered: str, principal: str) -> None:
        """Refuse another service of the realm, which could otherwise pose as this one with its own, valid key."""
        wanted = principal.partition("@")[0]
        hosts = (self.address.host, socket.getfqdn(self.address.host))
        if offered.lower() not in {wanted.replace("_HOST", host).lower() for host in hosts}:
            raise EngineRejected(f"{self.address} says it is {offered}, the configuration says {principal}")

    def _request_header(self, call_id: int) -> pb.RpcRequestHeader:
        client_id = b"" if call_id == SASL_CALL else self._client_id
        return pb.RpcRequestHeader(
            rpc_kind=PROTOCOL_BUFFERS, rpc_op=0, call_id=call_id, client_id=client_id, retry_count=-1
        )

    async def _read(self, reader: ByteReader) -> None:
        error: Exception = EngineUnavailable(f"{self.address} closed the connection")
        try:
            while True:
                data = await read_frame(reader)
                header, position = parse_delimited(pb.RpcResponseHeader, data)
                if header.status == 2:  # fatal: it concerns the connection, whatever call it names
                    error = RpcError(self.address, header.exception_class, header.error_message)
                    return
                self._deliver(header, data, position)
        except (EOFError, OSError, DecodeError, IndexError) as lost:
            if not isinstance(lost, EOFError):
                error = EngineUnavailable(f"{self.address}: connection lost: {lost}")
        finally:
            self._drop(error)

    def _deliver(self, header: pb.RpcResponseHeader, data: bytes, position: int) -> None:
        future = self._calls.get(header.call_id)
        if future is None or future.done():
            return
        if header.status:
            future.set_exception(RpcError(self.address, header.exception_class, header.error_message))
        else:
            future.set_result((data, position))

    def _drop(self, error: Exception) -> None:
        for future in self._calls.values():
            if not future.done():
                future.set_exception(error)
        writer, self._writer = self._writer, None
        if writer:
            writer.close()


class _Layered:
    """Wraps the connection in SASL messages, after a login that has agreed on integrity or privacy."""

    def __init__(
        self, reader: ByteReader, writer: ByteWriter, mechanism: _Mechanism, header: pb.RpcRequestHeader
    ) -> None:
        self._reader, self._writer, self._mechanism, self._header = reader, writer, mechanism, header
        self._plain = bytearray()

    def write(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE):
            token = self._mechanism.wrap(data[start : start + _PIECE])
            self._writer.write(frame(self._header, pb.Sasl(state=WRAP, token=token)))

    async def readexactly(self, n: int) -> bytes:
        while len(self._plain) < n:
            header, position = parse_delimited(pb.RpcResponseHeader, data := await read_frame(self._reader))
            if header.call_id != SASL_CALL & 0xFFFFFFFF:
                raise OSError("a message without the protection that was agreed on")
            try:
                self._plain += self._mechanism.unwrap(parse_delimited(pb.Sasl, data, position)[0].token)
            except EngineRejected as error:
                raise OSError(str(error)) from error
        found = bytes(self._plain[:n])
        del self._plain[:n]
        return found

    def close(self) -> None:
        self._writer.close()
