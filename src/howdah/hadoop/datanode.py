"""Reads blocks from DataNodes (DataTransferProtocol 28, OP_READ_BLOCK) and checks them; asks for the length of a block
that is being written (ClientDatanodeProtocol).

A block comes in packets of 64 KiB, each with a checksum for every 512 bytes. Bytes are passed on after they were
checked, in one of two buffers, which are filled in turn. A connection can read one block after another.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import mmap
import socket
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping

from google.protobuf.internal.decoder import _DecodeVarint32  # type: ignore[attr-defined]
from google.protobuf.message import DecodeError

from howdah.errors import EngineRejected, EngineUnavailable, HowdahError
from howdah.hadoop import rpc
from howdah.hadoop.proto import datanode_pb2 as pb
from howdah.hadoop.proto import ipc_pb2 as ipc
from howdah.hadoop.proto import namenode_pb2
from howdah.hadoop.rpc import M, RpcError, delimited
from howdah.hadoop.sasl import DigestClient
from howdah.wire.credentials import Token

PROTOCOL = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol"
_VERSION, _READ_BLOCK = 28, 81
_NO_CHECKSUM, _CHECKSUM_OK = 0, 6
_BUFFER = 1 << 20
_LENGTHS = struct.Struct(">IH")
_CLIENT = "howdah"
_SUM = 4  # bytes of a checksum
_SASL = 0xDEADBEEF
_REFUSED = ("AccessControlException", "AuthorizationException", "InvalidToken", "SaslException")

Sum = Callable[[int, bytes | memoryview], int]
"""A reflected CRC of 32 bits: it continues the CRC of the bytes before (0 at the start) with more bytes."""


class BadBlock(OSError):
    """A DataNode refuses to read a block, sends other bytes than were stored, or sends something that is not an
    answer."""


def token_of(block: namenode_pb2.LocatedBlock) -> Token | None:
    """Return the token that the NameNode has given for reading this block; None if DataNodes require none."""
    token = ipc.Token.FromString(block.token) if block.token else ipc.Token()
    return Token(token.identifier, token.password, token.kind, token.service) if token.identifier else None


async def visible_length(
    block: namenode_pb2.LocatedBlock, addresses: Iterable[tuple[str, int]], user: rpc.Login, limit_s: float
) -> int | None:
    """Return how many bytes of a block the writer has flushed, which readers may see; 0 if no DataNode has begun the
    block, None if no DataNode answers. `addresses` are the hosts and RPC ports of the DataNodes that write it; the
    first answer is used."""
    length, login = None, token_of(block) or user
    for host, port in addresses:
        connection = rpc.RpcConnection(rpc.Address(host, port, "DataNode"), PROTOCOL, login, limit_s)
        try:
            request = pb.VisibleLengthRequest(block=block.block)
            answer = await connection.call("getReplicaVisibleLength", request, pb.VisibleLengthResponse, limit_s)
            return answer.length
        except RpcError as error:  # a DataNode that did not refuse access has lost the block, or has not begun it
            length = length if error.name in _REFUSED else 0
        except (EngineRejected, EngineUnavailable):
            continue
        finally:
            await connection.close()
    return length


class DataNodeConnection:
    """Reads blocks from one DataNode; `token` logs in if the DataNodes require that.

    Raises:
        BadBlock: the DataNode sends something wrong.
        OSError: the DataNode is gone, or slower than `limit_s`.
    """

    def __init__(
        self, host: str, port: int, limit_s: float, connect_limit_s: float, token: Token | None = None
    ) -> None:
        self._name = f"DataNode {host}:{port}"
        self._socket = socket.create_connection((host, port), connect_limit_s)
        self._socket.settimeout(limit_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The kernel gives this memory only when it is used: most blocks are short.
        self._view, self._other = memoryview(mmap.mmap(-1, _BUFFER)), memoryview(mmap.mmap(-1, _BUFFER))
        self._start = self._end = 0  # the bytes that have come and were not read yet
        if token is not None:
            try:
                self._log_in(token)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close the connection, also in the middle of a block."""
        self._socket.close()

    def _log_in(self, token: Token) -> None:
        """Log in with the token of any block: each request has the token of its own block as well."""
        client, reply = DigestClient(token.identifier, token.password, "hdfs/0", plain=True), b""
        self._socket.sendall(struct.pack(">I", _SASL))
        try:
            while not client.finished:
                self._socket.sendall(delimited(pb.Handshake(status=0, payload=reply)))
                answer = self._message(pb.Handshake)
                if answer.status:
                    raise BadBlock(f"{self._name} refuses the login: {answer.message}")
                reply = client.step(answer.payload)
        except (DecodeError, HowdahError) as error:
            raise BadBlock(f"{self._name}: the login fails: {error}") from error

    def read(
        self, block: namenode_pb2.LocatedBlock, start: int, length: int, sums: Mapping[int, Sum]
    ) -> Iterator[list[memoryview]]:
        """Yield a range of the block. Each list is valid until the next list but one is asked for.

        `sums` computes the kinds of checksums that can be verified, by Hadoop's numbers for them.
        """
        header = pb.ClientHeader(base=pb.BlockHeader(block=block.block, token=block.token), client=_CLIENT)
        request = pb.ReadBlock(header=header, offset=start, length=length)
        self._swap_buffers()  # short blocks need not walk through a whole buffer
        self._socket.sendall(struct.pack(">hB", _VERSION, _READ_BLOCK) + delimited(request))
        answer = self._message(pb.Answer)
        if answer.status:
            raise BadBlock(f"{self._name} refuses to read block {block.block.block_id}: {answer.message}")
        skipped = start - answer.read.chunk_offset  # a packet begins where a checksum does
        left = skipped + length
        try:
            for views in self._packets(answer.read.checksum, sums):
                views, left = _cut_views(views, skipped, left)
                skipped = 0
                if views:
                    yield views
        except (DecodeError, struct.error, IndexError) as error:
            raise BadBlock(f"{self._name} sends bytes that are not a block: {error}") from error
        if left:
            raise BadBlock(f"{self._name} sends {left} bytes too few of block {block.block.block_id}")
        self._socket.sendall(delimited(pb.ReadStatus(status=_CHECKSUM_OK)))

    def _message(self, kind: type[M]) -> M:
        for known in itertools.count(1):
            self._fill(known)
            with contextlib.suppress(IndexError):
                length, size = _DecodeVarint32(bytes(self._view[self._start : self._end]), 0)
                break
        self._fill(size + length)
        self._start += size + length
        return kind.FromString(bytes(self._view[self._start - length : self._start]))

    def _packets(self, checksum: pb.Checksum, sums: Mapping[int, Sum]) -> Iterator[list[memoryview]]:
        """Yield the whole packets in a buffer at once, up to the last packet, which is empty."""
        check = _check(checksum, sums)
        views: list[memoryview] = []
        while True:
            if views and not self._holds_next():
                yield views
                views = []
            self._fill(_LENGTHS.size)
            size, header_size = self._lengths()
            self._fill(size)
            at = self._start + _LENGTHS.size
            packet = pb.Packet.FromString(bytes(self._view[at : at + header_size]))
            self._start += size
            if packet.length:
                data = self._view[self._start - packet.length : self._start]
                check(self._view[at + header_size : self._start - packet.length], data)
                views.append(data)
            if packet.last:
                break
        if views:
            yield views

    def _lengths(self) -> tuple[int, int]:
        """Return the length of the next packet, and that of its header."""
        data_size, header_size = _LENGTHS.unpack_from(self._view, self._start)
        return 2 + header_size + data_size, header_size  # `data_size` counts itself

    def _holds_next(self) -> bool:
        """Return whether the buffer has room for the next packet after the bytes in it."""
        if self._start + _LENGTHS.size > len(self._view):
            return False
        self._fill(_LENGTHS.size)
        return self._start + self._lengths()[0] <= len(self._view)

    def _fill(self, wanted: int) -> None:
        """Receive until `wanted` bytes are in the buffer."""
        if wanted > len(self._view):
            raise BadBlock(f"{self._name} announces a packet of {wanted} bytes")
        if self._start + wanted > len(self._view):
            self._swap_buffers()
        while self._end - self._start < wanted:
            count = self._socket.recv_into(self._view[self._end :])
            if not count:
                raise ConnectionResetError(f"{self._name} has closed the connection")
            self._end += count

    def _swap_buffers(self) -> None:
        """Continue in the other buffer, with the bytes that were not read yet."""
        rest = self._end - self._start
        self._other[:rest] = self._view[self._start : self._end]
        self._view, self._other = self._other, self._view
        self._start, self._end = 0, rest


def _cut_views(views: list[memoryview], skipped: int, left: int) -> tuple[list[memoryview], int]:
    """Cut the views to the bytes from `skipped` to `left`; return them, and the number of the `left` bytes that are
    still to come."""
    kept = []
    for view in views:
        view, left = view[skipped:left], left - min(left, len(view))
        skipped = 0
        if view:
            kept.append(view)
    return kept, left


def _check(checksum: pb.Checksum, sums: Mapping[int, Sum]) -> Callable[[memoryview, memoryview], None]:
    """Return a function that checks data against its stored checksums.

    It verifies the checksums of all whole chunks at once. As a polynomial, a chunk times x^32 equals its checksum,
    modulo the polynomial of the CRC. So a row of chunks, times x^32, equals the row of their checksums, each at the end
    of its chunk, with zeros between. (The initial and final XOR of a CRC add a constant.) Two long calls replace 128
    short ones.
    """
    if checksum.type == _NO_CHECKSUM:
        return lambda *_: None
    sum_of, chunk = sums.get(checksum.type), checksum.bytes_per_checksum
    if sum_of is None or chunk % _SUM:
        raise BadBlock(f"checksums of kind {checksum.type} for each {chunk} bytes are not known here")
    sparse = _Sparse(chunk)

    def check(stored: memoryview, data: memoryview) -> None:
        whole = len(data) // chunk
        at, size = whole * _SUM, whole * chunk
        good = len(stored) == at + (_SUM if size < len(data) else 0)
        if good and whole:
            of_sums = sum_of(0, sparse.holding(stored[:at]))
            of_data = sum_of(sum_of(0, data[:size]), bytes(_SUM))
            good = of_sums ^ of_data == _constant(sum_of, whole, chunk)
        if not good or (size < len(data) and sum_of(0, data[size:]) != int.from_bytes(stored[at:], "big")):
            raise BadBlock("a block's checksums are wrong")

    return check


class _Sparse:
    """A row of zeros, except for a checksum at the end of each chunk, its lowest byte first."""

    def __init__(self, chunk: int) -> None:
        self._chunk, self._bytes = chunk, memoryview(b"")

    def holding(self, sums: memoryview) -> memoryview:
        words = array("I", bytes(sums))
        words.byteswap()
        size = len(words) * self._chunk
        if len(self._bytes) < size:
            self._bytes = memoryview(bytearray(size))
        self._bytes[:size].cast("I")[self._chunk // _SUM - 1 :: self._chunk // _SUM] = memoryview(words)
        return self._bytes[:size]


@functools.lru_cache(maxsize=64)
def _constant(sum_of: Sum, whole: int, chunk: int) -> int:
    """Return the difference of the two CRCs for zeros, which is the difference for all data."""
    of_zeros = sum_of(0, bytes(chunk)).to_bytes(_SUM, "big")
    return sum_of(0, _Sparse(chunk).holding(memoryview(of_zeros * whole))) ^ sum_of(0, bytes(whole * chunk + _SUM))
