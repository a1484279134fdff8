"""Plays a Hadoop IPC server on loopback: answers as its script says, and logs tokens in as a real one does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from digest_server import DigestServer
from google.protobuf.message import Message

from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.hadoop import rpc

Handler = Callable[[str, bytes], Awaitable[Message]]


class Remote(Exception):
    """Is raised by the handler to have the client see a Java exception."""

    def __init__(self, java_class: str, text: str) -> None:
        super().__init__(java_class)
        self.java_class, self.text = java_class, text


@dataclass
class HadoopServer:
    """Answers with `handler(method, request bytes)`; `passwords` by token identifier, or None for SIMPLE only.

    `proves` false plays a server that does not know the password: it says SUCCESS without proof.
    """

    handler: Handler
    passwords: dict[bytes, bytes] | None = None
    proves: bool = True
    port: int = 0
    users: list[str] = field(default_factory=list)
    identifiers: list[bytes] = field(default_factory=list)

    async def __aenter__(self) -> HadoopServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    @property
    def address(self) -> rpc.Address:
        return rpc.Address("127.0.0.1", self.port, "ResourceManager", "yarn.resourcemanager.address")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers: set[asyncio.Task[None]] = set()
        try:
            assert await reader.readexactly(7) == b"hrpc\x09\x00" + (b"\x00" if self.passwords is None else b"\xdf")
            login = DigestServer((self.passwords or {}).get)
            while True:
                data = await rpc.read_frame(reader)
                header, position = rpc.parse_delimited(pb.RpcRequestHeader, data)
                if header.call_id == rpc.SASL_CALL:
                    self._log_in(login, rpc.parse_delimited(pb.Sasl, data, position)[0], writer)
                elif header.call_id == rpc.CONTEXT_CALL:
                    self.users.append(rpc.parse_delimited(pb.ConnectionContext, data, position)[0].user.effective_user)
                else:
                    answers.add(asyncio.create_task(self._answer(header.call_id, data, position, writer)))
        except (EOFError, ConnectionError, PermissionError):
            pass
        finally:
            for answer in answers:
                answer.cancel()
            writer.close()

    def _log_in(self, login: DigestServer, message: pb.Sasl, writer: asyncio.StreamWriter) -> None:
        answer = pb.Sasl(state=rpc.SUCCESS)
        if message.state == rpc.NEGOTIATE:
            answer.state = rpc.NEGOTIATE
            answer.auths.add(
                method="TOKEN", mechanism="DIGEST-MD5", protocol="", server_id="default", challenge=login.challenge()
            )
        elif self.proves:
            try:
                answer.token = login.verify(message.token)
                self.identifiers.append(login.identifier)
            except PermissionError as error:
                _refuse(writer, rpc.SASL_CALL, 2, "javax.security.sasl.SaslException", str(error))
                raise
        writer.write(rpc.frame(pb.RpcResponseHeader(call_id=rpc.SASL_CALL & 0xFFFFFFFF, status=0), answer))

    async def _answer(self, call_id: int, data: bytes, position: int, writer: asyncio.StreamWriter) -> None:
        header, position = rpc.parse_delimited(pb.RequestHeader, data, position)
        length, start = rpc._DecodeVarint32(data, position)
        try:
            response = await self.handler(header.method, data[start : start + length])
            writer.write(rpc.frame(pb.RpcResponseHeader(call_id=call_id, status=0), response))
        except Remote as error:
            _refuse(writer, call_id, 1, error.java_class, error.text)


def _refuse(writer: asyncio.StreamWriter, call_id: int, status: int, java_class: str, text: str) -> None:
    header = pb.RpcResponseHeader(
        call_id=call_id & 0xFFFFFFFF, status=status, exception_class=java_class, error_message=text
    )
    writer.write(rpc.frame(header))
