"""Reads files of an HDFS directly from its DataNodes, with a third of the CPU time that hdfs-native takes. Of a file
that is being written it also reads the flushed bytes, which only the DataNodes know.

It reads only unencrypted files without erasure coding. For all others, and after any failure, it raises `NotSupported`;
hdfs-native then goes on from the same byte, and reports errors.
"""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
import weakref
import zlib
from collections import defaultdict
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from howdah.errors import HowdahError, SpecError
from howdah.hadoop.datanode import DataNodeConnection, Sum, token_of, visible_length
from howdah.hadoop.identity import is_secure
from howdah.hadoop.namenode import NameNodes, before, login
from howdah.hadoop.proto import namenode_pb2 as pb
from howdah.spec import uris
from howdah.storage import native_codecs
from howdah.storage.hdfs.errors import NotSupported

T = TypeVar("T")
_PROTECTION = "dfs.data.transfer.protection"
_CONNECT_S = 5.0
_ANSWER_S = 20.0
# A DataNode waits 4 s for the next request (dfs.datanode.socket.reuse.keepalive).
_MAX_IDLE_S = 3.0
_AVOID_FAILED_NODE_S = 60.0
_LOCATE_BYTES = 1 << 33  # bytes whose blocks are asked for at once
_MAX_PARALLEL_REQUESTS = 32
_CRC32, _CRC32C = 1, 2
_PRIVILEGED = 1024

Address = tuple[str, int]


class DirectReader:
    """Reads from one cluster as one user. Several threads may use it, but not after a fork."""

    def __init__(self, root: str, conf: Mapping[str, str], limit_s: float, checksums: Mapping[int, Sum]) -> None:
        authority = uris.split(root)[1]
        self._namenodes, self._user, self._limit_s = NameNodes(authority, conf), login(authority, conf), limit_s
        self._secure = bool(conf.get(_PROTECTION))
        self._wants_tokens = is_secure(conf) or conf.get("dfs.block.access.token.enable") == "true"
        self._by_name = conf.get("dfs.client.use.datanode.hostname") == "true"
        self._checksums = checksums
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True, name="namenode").start()
        self._connections: dict[Address, list[tuple[float, DataNodeConnection]]] = defaultdict(list)
        weakref.finalize(self, _close_all, self._connections)
        self._failed: dict[Address, float] = {}
        self._names = {socket.gethostname(), socket.getfqdn()}

    @classmethod
    def for_root(cls, root: str, conf: Mapping[str, str], limit_s: float) -> DirectReader:
        """Return a reader of the file system `root`, which names its NameNodes.

        Raises:
            NotSupported: the cluster, or what is installed here, does not permit it.
        """
        known = ("", "authentication") if is_secure(conf) else ("",)
        if conf.get("dfs.encrypt.data.transfer") == "true" or conf.get(_PROTECTION, "").strip() not in known:
            raise NotSupported("its bytes travel encrypted")
        crc32c = native_codecs.more_crc32c()
        if crc32c is None:
            raise NotSupported("google-crc32c, or libcrc32c, is not installed here")
        sums = {_CRC32: lambda value, data: zlib.crc32(data, value), _CRC32C: crc32c}
        try:
            return cls(root, conf, limit_s, sums)
        except SpecError as error:
            raise NotSupported(error) from error

    def read(self, uri: str, start: int, places: object = None, size: int | None = None) -> Iterator[list[memoryview]]:
        """Yield the file's checked bytes from `start` to the end, or up to `size`. Each list is valid until the next
        list but one is asked for."""
        located = places if isinstance(places, pb.LocatedBlocks) else self._run(self._locate(uri, start))
        while start < (stop := located.file_length if size is None else min(size, located.file_length)):
            reached = start
            for block in located.blocks:
                end = min(stop, block.offset + block.block.length)
                if block.offset <= start < end:
                    yield from self._read_block(block, start - block.offset, end - block.offset)
                    start = end
            if start == reached:
                raise NotSupported(f"the NameNode reports no block for byte {start} of {uri}")
            if start < stop:
                located = self._run(self._locate(uri, start))

    def list_files(self, directory: str, first: str, last: str) -> Iterator[pb.FileStatus]:
        """Yield the files of a directory from one name to another, with the locations of their blocks."""
        if self._wants_tokens:
            raise NotSupported("a listing brings no tokens for its blocks")
        after, end = before(first), last.encode()
        while after < end:
            request = pb.GetListingRequest(source=uris.path(directory), start_after=after, need_location=True)
            question = self._namenodes.call("getListing", request, pb.GetListingResponse, _ANSWER_S)
            listing = self._run(question).listing
            yield from listing.partial_listing
            if not listing.remaining_entries or not listing.partial_listing:
                return
            after = listing.partial_listing[-1].path

    def sizes(self, names: Sequence[str], starts: Sequence[int]) -> list[int | None]:
        """Return the number of readable bytes of each file, including flushed bytes of a file that is being written;
        None if it cannot be found out. `starts` are offsets before which nothing is new."""
        slots = asyncio.Semaphore(_MAX_PARALLEL_REQUESTS)

        async def size_of(uri: str, start: int) -> int | None:
            try:
                async with slots:
                    return (await self._locate(uri, start)).file_length
            except (HowdahError, NotSupported):
                return None

        async def sizes() -> list[int | None]:
            return await asyncio.gather(*map(size_of, names, starts))

        return self._run(sizes())

    async def _locate(self, uri: str, start: int) -> pb.LocatedBlocks:
        request = pb.GetBlockLocationsRequest(source=uris.path(uri), offset=start, length=_LOCATE_BYTES)
        answer = await self._namenodes.call("getBlockLocations", request, pb.GetBlockLocationsResponse, _ANSWER_S)
        located = answer.locations
        if located.under_construction:
            await self._add_flushed(located)
        if not _is_plain(located):
            raise NotSupported(f"{uri} is encrypted, erasure-coded or damaged")
        return located

    async def _add_flushed(self, located: pb.LocatedBlocks) -> None:
        """Add the readable part of the block that is being written; a NameNode counts a block when it is full or
        closed."""
        if located.last_is_complete or not located.HasField("last_block"):
            return
        last = located.last_block
        for number in reversed(range(len(located.blocks))):
            if located.blocks[number].block.block_id == last.block.block_id:
                del located.blocks[number]
        addresses = [(self._host(node.id), node.id.ipc_port) for node in last.locations]
        length = await visible_length(last, addresses, self._user, _CONNECT_S)
        if length is None:
            raise NotSupported(f"no DataNode reports how much of block {last.block.block_id} is flushed")
        if length:
            last.block.length = length
            located.blocks.append(last)
            located.file_length = last.offset + last.block.length

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except HowdahError as error:
            raise NotSupported(error) from error

    def _read_block(self, block: pb.LocatedBlock, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Yield a range of a block from the nearest node; bytes that one node fails to send come from the next one."""
        failure = OSError("no DataNode has the block")
        for address in self._addresses(block):
            for kept in (True, False):
                connection = None
                try:
                    connection = self._idle_connection(address) if kept else self._open_connection(address, block)
                    if connection is None:
                        continue
                    for views in connection.read(block, start, stop - start, self._checksums):
                        start += sum(map(len, views))
                        yield views
                    self._connections[address].append((time.monotonic(), connection))
                    connection = None
                    return
                except OSError as error:
                    failure = error
                finally:
                    if connection is not None:
                        connection.close()
                if start == stop:
                    return
                if isinstance(failure, TimeoutError):  # another connection would wait as long
                    break
            self._failed[address] = time.monotonic()
        raise NotSupported(failure, isinstance(failure, TimeoutError)) from failure

    def _addresses(self, block: pb.LocatedBlock) -> list[Address]:
        """Return the block's nodes: this machine first, nodes that failed lately last, others in any order, because a
        directory's listing does not say which is nearest."""
        now = time.monotonic()
        found = []
        for node in random.sample(list(block.locations), len(block.locations)):
            address = (self._host(node.id), node.id.transfer_port)
            failed = now - self._failed.get(address, -_AVOID_FAILED_NODE_S) < _AVOID_FAILED_NODE_S
            found.append((failed, node.id.host_name not in self._names, address))
        return [address for *_, address in sorted(found, key=lambda entry: entry[:2])]

    def _host(self, node: pb.DatanodeId) -> str:
        return node.host_name if self._by_name else node.ip_address

    def _idle_connection(self, address: Address) -> DataNodeConnection | None:
        while idle := self._connections[address]:
            try:
                since, connection = idle.pop()
            except IndexError:  # another thread has taken it
                break
            if time.monotonic() - since < _MAX_IDLE_S:
                return connection
            connection.close()
        return None

    def _open_connection(self, address: Address, block: pb.LocatedBlock) -> DataNodeConnection:
        # DataNodes at root's own ports need no login, because no other user can listen there.
        token = token_of(block) if self._secure and address[1] >= _PRIVILEGED else None
        try:
            return DataNodeConnection(*address, self._limit_s, min(_CONNECT_S, self._limit_s), token)
        except TimeoutError as error:  # it is down, which shows soon; another node may be up
            raise ConnectionError(f"no connection to {address[0]}:{address[1]}") from error


def is_readable_directly(located: pb.LocatedBlocks) -> bool:
    """Return whether the file is complete, and its blocks hold its bytes as they are."""
    return not located.under_construction and _is_plain(located)


def _is_plain(located: pb.LocatedBlocks) -> bool:
    special = located.HasField("encryption") or located.HasField("erasure_coding")
    return not special and not any(block.corrupt or not block.locations for block in located.blocks)


def _close_all(connections: Mapping[Address, list[tuple[float, DataNodeConnection]]]) -> None:
    for idle in connections.values():
        for _, connection in idle:
            connection.close()
