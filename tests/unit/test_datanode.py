"""Tests reading a block from DataNodes that answer rightly, and from some that do not."""

from __future__ import annotations

import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence

import pytest

from howdah.hadoop.datanode import BadBlock, DataNodeConnection
from howdah.hadoop.proto import datanode_pb2 as pb
from howdah.hadoop.proto import namenode_pb2
from howdah.hadoop.rpc import delimited
from howdah.wire.credentials import Token

CHUNK, CRC32 = 512, 1
DATA = bytes(range(256)) * 1024
Serve = Callable[[bytes], tuple[str, int]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A DataNode that says one thing to whoever connects, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def start(said: bytes) -> tuple[str, int]:
            def run() -> None:
                peer, _ = server.accept()
                with peer:
                    peer.recv(1 << 16)
                    peer.sendall(said)
                    peer.shutdown(socket.SHUT_WR)
                    while peer.recv(1 << 16):
                        pass

            threading.Thread(target=run, daemon=True).start()
            host, port = server.getsockname()
            return host, port

        yield start


def answer(chunk_offset: int = 0, kind: int = CRC32) -> bytes:
    checksum = pb.Checksum(type=kind, bytes_per_checksum=CHUNK)
    return delimited(pb.Answer(status=0, read=pb.ReadInfo(checksum=checksum, chunk_offset=chunk_offset)))


def packet(data: bytes, sums: Sequence[int] | None = None, last: bool = False) -> bytes:
    if sums is None:
        sums = [zlib.crc32(data[at : at + CHUNK]) for at in range(0, len(data), CHUNK)]
    header = pb.Packet(offset=0, number=0, last=last, length=len(data)).SerializeToString()
    stored = struct.pack(f">{len(sums)}I", *sums)
    return struct.pack(">IH", 4 + len(stored) + len(data), len(header)) + header + stored + data


END = packet(b"", last=True)


def read(place: tuple[str, int], length: int, start: int = 0, token: Token | None = None) -> bytes:
    block = namenode_pb2.LocatedBlock(
        block=namenode_pb2.ExtendedBlock(pool="p", block_id=7, generation=1, length=length), offset=0
    )
    connection = DataNodeConnection(*place, limit_s=5, connect_limit_s=5, token=token)
    try:
        views = connection.read(block, start, length, {CRC32: lambda value, data: zlib.crc32(data, value)})
        return b"".join(bytes(view) for some in views for view in some)
    finally:
        connection.close()


@pytest.mark.parametrize("size", [1, 511, 512, 513, 65536, 65536 * 3 + 700, len(DATA)])
def test_a_block_in_packets(serve: Serve, size: int) -> None:
    packets = b"".join(packet(DATA[at : min(at + 65536, size)]) for at in range(0, size, 65536))
    assert read(serve(answer() + packets + END), size) == DATA[:size]


def test_a_range_begins_where_it_was_asked_for(serve: Serve) -> None:
    said = answer(chunk_offset=1024) + packet(DATA[1024:3072]) + END
    assert read(serve(said), 1000, start=1500) == DATA[1500:2500]


def test_a_wrong_checksum_is_noticed(serve: Serve) -> None:
    sums = [zlib.crc32(DATA[:CHUNK]), 1]
    with pytest.raises(BadBlock, match="checksums are wrong"):
        read(serve(answer() + packet(DATA[:1024], sums) + END), 1024)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (delimited(pb.Answer(status=1, message="no such replica")), "refuses to read block 7: no such replica"),
        (answer(kind=9) + packet(DATA[:512]) + END, "kind 9"),
        (answer() + packet(DATA[:512]) + END, "512 bytes too few"),
        (answer() + struct.pack(">IH", 1 << 30, 25), "announces a packet"),
        (answer() + struct.pack(">IH", 40, 30) + b"\xff" * 100, "not a block"),
    ],
)
def test_what_is_no_block(serve: Serve, said: bytes, problem: str) -> None:
    with pytest.raises(BadBlock, match=problem):
        read(serve(said), 1024)


def test_a_node_that_dies(serve: Serve) -> None:
    with pytest.raises(ConnectionResetError, match="closed the connection"):
        read(serve(answer() + packet(DATA[:1024])[:700]), 1024)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (delimited(pb.Handshake(status=2, message="it has expired")), "refuses the login: it has expired"),
        (delimited(pb.Handshake(status=0, payload=b"no challenge")), "the login fails: .*malformed"),
        (delimited(pb.Handshake(status=0, payload=b'nonce="n",qop="auth-conf"')), "the login fails: .*auth-conf"),
        (delimited(pb.Handshake(status=0, payload=b"rspauth=00")), "could not prove that it knows"),
        (b"\x05\xff\xff\xff\xff\xff", "the login fails"),
    ],
)
def test_a_login_that_fails(serve: Serve, said: bytes, problem: str) -> None:
    with pytest.raises(BadBlock, match=problem):
        read(serve(said), 512, token=Token(b"who", b"secret", "HDFS_BLOCK_TOKEN", ""))
