"""Reaches HDFS through hdfs-native, without a JVM.

The library opens a block stream for every small read, panics beyond the end of a file, hangs after a fork, waits
minutes for a NameNode that is not there, and for ever for one that does not answer. Here reads are buffered and stay
within the file, each process has clients of its own, and every call has a time limit.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import hdfs_native

from howdah.errors import EngineUnavailable, HowdahError
from howdah.hadoop import conf as hadoop_conf
from howdah.spec import uris
from howdah.storage.filesystem import Buffer, Check, ConnectionBroken, Entry, FileSystem, Sink, go_on
from howdah.storage.hdfs import call_timeout, errors
from howdah.storage.hdfs.errors import BeingWritten, NodeLost, NodeStuck, NotSupported, explain
from howdah.storage.hdfs.reader import HdfsFileReader
from howdah.storage.hdfs.writer import PACKET_BYTES, PacketWriter
from howdah.storage.linked_tree import LeftOut
from howdah.storage.retry import retry_until

if TYPE_CHECKING:
    from howdah.hadoop.proto import namenode_pb2
    from howdah.storage.hdfs.direct_reader import DirectReader

T = TypeVar("T")
# hdfs-native waits sleep.base * 2^n between tries: about 4 s in all for one NameNode that refuses connections (its own
# defaults: 3 minutes), and half a minute for a pair of which one is about to become active.
_FAILOVER_OPTIONS = {"dfs.client.failover.sleep.base.millis": "200", "dfs.client.failover.sleep.max.millis": "1000"}
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.5, 8.0
_MAX_KEPT, _FILES_KEPT = 16 << 20, 4
_ATTEMPTS_SETTING, _ATTEMPTS, _ATTEMPTS_HA = "dfs.client.failover.max.attempts", "5", "30"
_PAGE_ENTRIES = 1000  # entries of a listing per call: as many as a NameNode sends at once
_MIN_LISTED_FILES, _MIN_LISTED_SHARE = 16, 0.02  # files wanted of a directory, and their share of what is listed
_FILE_TYPE = 2  # HdfsFileStatusProto.FileType
NAMENODE_LIMIT, DATANODE_LIMIT = "ipc.client.rpc-timeout.ms", "dfs.client.socket-timeout"
"""Settings of Hadoop's own clients: the time that a server may take for one answer. Their default here is a minute."""
DEFAULT_LIMIT_S = 60.0
_PACKETS = 16  # packets of 64 KiB that are read at once; more than 1 MiB of new memory costs more than it saves
_UNCHANGED = (1 << 64) - 1  # -1 in ClientProtocol.setTimes; the library takes unsigned numbers only


class HdfsFileSystem(FileSystem):
    """One cluster, for the user that HADOOP_USER_NAME, a Kerberos ticket, a token file or the account names."""

    def __init__(self, root: str, conf_dir: str = "") -> None:
        self.root = root
        self._conf_dir = hadoop_conf.directory(conf_dir)

    @property
    def _client(self) -> _Client:
        return _client(self.root, self._conf_dir)

    def _call_namenode_with_failover(self, uri: str, call: Callable[[hdfs_native.Client, str], T]) -> T:
        """Call the NameNode, or another one if it does not answer; the call must be idempotent."""
        try:
            return self._call_namenode(uri, call)
        except _NameNodeSilent:
            if not self._client.select_next_namenode():
                raise
        return self._call_namenode(uri, call)

    def _call_namenode(self, uri: str, call: Callable[[hdfs_native.Client, str], T]) -> T:
        client, path = self._client, uris.path(uri)
        return self._call_with_timeout(uri, lambda: call(client.inner, path), client.namenode_limit_s, _NameNodeSilent)

    def _call_datanode(
        self,
        uri: str,
        call: Callable[[], T],
        run: Callable[[Callable[[], T], float], Any] = call_timeout.call_with_timeout,
    ) -> T:
        """Move bytes from or to a DataNode, whose failure becomes ConnectionBroken."""
        try:
            return self._call_with_timeout(uri, call, self._client.datanode_limit_s, NodeStuck, run)
        except EngineUnavailable as error:
            if not isinstance(error.__cause__, OSError):
                raise
            # The library does not say whether the connection was to the NameNode: ask it.
            self._call_namenode(self.root + "/", lambda client, path: client.get_file_info(path))
            raise errors.datanode_failure(uri, error.__cause__, self._client.datanode_limit_s) from error

    def _call_with_timeout(
        self,
        uri: str,
        call: Callable[[], T],
        limit_s: float,
        timeout_error: type[HowdahError],
        run: Callable[[Callable[[], T], float], Any] = call_timeout.call_with_timeout,
    ) -> T:
        begun = time.monotonic()
        try:
            return run(call, limit_s)  # type: ignore[no-any-return]
        except (HowdahError, KeyboardInterrupt, SystemExit):
            raise
        except call_timeout.CallTimeout:
            text = errors.describe_overdue(uri, limit_s, timeout_error is NodeStuck, self._conf_dir)
            raise timeout_error(text) from None
        except BaseException as error:  # among them the library's panics
            raise explain(error, uri, time.monotonic() - begun, self._conf_dir) from error

    def stat(self, uri: str) -> Entry | None:
        try:
            return self._entry(self._call_namenode_with_failover(uri, _info))
        except _FileAbsent:
            return None

    def children(self, directory: str) -> list[Entry]:
        listed = self._call_namenode_with_failover(directory, lambda client, path: list(client.list_status(path)))
        return sorted(map(self._entry, listed), key=lambda entry: entry.uri)

    def walk(self, directory: str) -> Iterator[Entry]:
        return (entry for entry in self._list_recursively(directory) if not entry.is_dir)

    def list_tree(self, directory: str, left_out: LeftOut, skip_unreadable: bool = False) -> Iterator[Entry]:
        directories, holding = list[Entry](), set[str]()
        for entry in self._list_recursively(directory):
            holding.add(uris.parent(entry.uri))
            if entry.is_dir:
                directories.append(entry)
            else:
                yield entry
        yield from (entry for entry in directories if entry.uri not in holding)

    def _list_recursively(self, directory: str) -> Iterator[Entry]:
        listing = iter(self._call_namenode(directory, lambda client, path: client.list_status(path, True)))
        while statuses := self._call_namenode(directory, lambda *_: list(itertools.islice(listing, _PAGE_ENTRIES))):
            yield from map(self._entry, statuses)

    def glob(self, pattern: str) -> list[Entry]:
        found = self._call_namenode_with_failover(pattern, lambda client, path: client.glob_status(path))
        return sorted(map(self._entry, found), key=lambda entry: entry.uri)

    def open_read(self, uri: str) -> BinaryIO:
        return io.BufferedReader(self._reader(uri), PACKET_BYTES)

    def head(self, uri: str, max_bytes: int) -> bytes:
        """Read without memory for reading ahead."""
        return self._reader(uri).first(max_bytes)

    def _reader(self, uri: str) -> HdfsFileReader:
        def read(call: Callable[[], bytes]) -> bytes:
            if (pause := _usable_from[0] - time.monotonic()) > 0:
                time.sleep(pause)
            return self._call_datanode(uri, call)

        return HdfsFileReader(
            uri, lambda: self._call_namenode_with_failover(uri, lambda client, path: client.read(path)), read
        )

    def iter_chunks(self, uri: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file's bytes from one stream per block, in packets; `open_read` opens a stream for each read."""
        first = start
        try:
            for views in self._read_direct(uri, start):
                piece = b"".join(views)
                start += len(piece)
                yield piece
            return
        except NotSupported as reason:
            if start > first:  # the library would also open a file that has replaced this one
                raise ConnectionBroken(f"{uri}: {reason}") from reason
        reader = self._call_namenode_with_failover(uri, lambda client, path: client.read(path))
        left = len(reader) - start
        stream = iter(reader.read_range_stream(start, left)) if left > 0 else iter(())
        while left > 0:  # one more call to see the end would take as long as a call for a small file
            packets = self._call_datanode(uri, lambda: list(itertools.islice(stream, _PACKETS)))
            left = left - sum(map(len, packets)) if packets else 0
            yield from packets

    def copy_to(self, entry: Entry, start: int, take: Callable[[Sequence[Buffer]], object]) -> None:
        unread = entry.places is None  # nothing was read yet: the library opens the file that was looked up
        try:
            for views in self._read_direct(entry.uri, start, entry):
                take(views)
                start, unread = start + sum(map(len, views)), False
            return
        except NotSupported:
            there = entry if unread else self.stat(entry.uri)
            if there is None or there.modified_ms != entry.modified_ms:  # the size grows while the file is written
                raise ConnectionBroken(f"{entry.uri}: has changed since it was looked up") from None
        self._copy_with_library(entry.uri, start, take)

    def _read_direct(self, uri: str, start: int, entry: Entry | None = None) -> Iterator[list[memoryview]]:
        """Read without hdfs-native, up to the size of a known `entry`; raise NotSupported or NodeStuck."""
        direct = self._client.direct
        if direct is None:
            raise NotSupported(self._client.why_not_direct)
        try:
            yield from direct.read(uri, start, entry and entry.places, entry.size if entry else None)
        except NotSupported as reason:
            if reason.slow:
                text = errors.describe_overdue(uri, self._client.datanode_limit_s, True, self._conf_dir)
                raise NodeStuck(text) from reason
            raise

    def why_not_flushed(self) -> str:
        return "" if self._client.direct is not None else self._client.why_not_direct

    def stat_flushed(self, entries: Sequence[Entry]) -> list[Entry]:
        asked = [entry for entry in entries if entry.may_be_open]
        direct = self._client.direct if asked else None
        if direct is None:
            return list(entries)
        sizes = direct.sizes([entry.uri for entry in asked], [entry.size for entry in asked])
        known = {entry.uri: size for entry, size in zip(asked, sizes, strict=True) if size is not None}
        return [replace(entry, size=max(entry.size, known.get(entry.uri, 0))) for entry in entries]

    def _copy_with_library(self, uri: str, start: int, take: Callable[[Sequence[Buffer]], object]) -> None:
        reader = self._call_namenode_with_failover(uri, lambda client, path: client.read(path))
        if start < len(reader):
            stream = iter(reader.read_range_stream(start, len(reader) - start))
            read = lambda: list(itertools.islice(stream, _PACKETS)) or None  # noqa: E731
            self._call_datanode(uri, read, lambda read, limit_s: call_timeout.stream_with_timeout(read, take, limit_s))

    def prefetch_stats(self, uris_: Sequence[str]) -> dict[str, Entry]:
        """Learn about files from listings, where many are in one directory."""
        directories: dict[str, list[str]] = {}
        for uri in uris_:
            directories.setdefault(uris.parent(uri), []).append(uris.name(uri))
        direct, found = self._client.direct, dict[str, Entry]()
        for directory, names in directories.items():
            if direct and len(names) >= _MIN_LISTED_FILES:
                with contextlib.suppress(NotSupported):
                    found.update(self._entries_from_listing(direct, directory, set(names)))
        return found

    def _entries_from_listing(
        self, direct: DirectReader, directory: str, names: set[str]
    ) -> Iterator[tuple[str, Entry]]:
        from howdah.storage.hdfs.direct_reader import is_readable_directly

        hits = 0
        for passed, status in enumerate(direct.list_files(directory, min(names), max(names))):
            name = status.path.decode("utf-8", "replace")
            if name in names and status.file_type == _FILE_TYPE and is_readable_directly(status.locations):
                hits += 1
                uri = uris.join(directory, name)
                yield uri, _located_entry(uri, status)
            elif passed >= _PAGE_ENTRIES and hits < passed * _MIN_LISTED_SHARE:
                return

    def create(self, uri: str, mode: int = 0o644) -> Sink:
        options = hdfs_native.WriteOptions(permission=mode, overwrite=True, create_parent=False)
        inner = self._call_namenode(uri, lambda client, path: client.create(path, options))
        return PacketWriter(inner, lambda call: self._call_datanode(uri, call))

    def put(self, path: str | os.PathLike[str], uri: str, mode: int = 0o644, check: Check = go_on) -> int:
        return self._retry_write(lambda: super(HdfsFileSystem, self).put(path, uri, mode, check))

    def write_bytes(self, uri: str, data: bytes, mode: int = 0o644) -> None:
        self._retry_write(lambda: super(HdfsFileSystem, self).write_bytes(uri, data, mode))

    def _retry_write(self, write: Callable[[], T]) -> T:
        """Write again after a DataNode failed, because the library then gives up the file. For a while the NameNode may
        assign the same DataNode again."""
        limits: dict[type[Exception], float] = dict.fromkeys((NodeLost, NodeStuck), DEFAULT_LIMIT_S)
        return retry_until(write, limits, _FIRST_PAUSE_S, _MAX_PAUSE_S, quiet=True)

    def append(self, uri: str, data: bytes) -> None:
        """Append to a file; to a small one even while a DataNode of its last block is down."""
        before, path, client = self.stat(uri), uris.path(uri), self._client
        if before is None:
            self.write_bytes(uri, data)
            client.remember(path, b"", data)
            return
        appended: bytes | bytearray | None = client.appended.get(path)
        known = appended if appended is not None and len(appended) >= before.size else self._read_small(uri, before)
        try:
            if known is None or len(known) == before.size:
                self._append(uri, data)
                client.remember(path, known, data)
                return
        except (ConnectionBroken, BeingWritten) as error:
            # The library needs that DataNode, and leaves the file open, so that its last block is invisible.
            if known is None or (isinstance(error, BeingWritten) and appended is None):
                raise
        content = bytes(known)
        self.write_bytes(uri, content + data, before.mode)
        client.remember(path, content, data)

    def _read_small(self, uri: str, entry: Entry) -> bytes | None:
        """Return the content of a small file if all of it can be read, else None."""
        content = self.read_bytes(uri) if entry.size <= _MAX_KEPT else b""
        return content if len(content) == entry.size else None

    def _append(self, uri: str, data: bytes) -> None:
        path, inner = uris.path(uri), self._client.inner
        stream = self._call_datanode(uri, lambda: inner.append(path))
        sink = PacketWriter(stream, lambda call: self._call_datanode(uri, call))
        sink.write(data)
        sink.close()

    def recover_lease(self, uri: str) -> None:
        """Return when the file is closed. A NameNode counts nothing of the last block, and lets no client append,
        before the DataNodes have agreed on its content (lease recovery).

        Raises:
            EngineUnavailable: they have not after a minute.
        """

        def close() -> None:
            if not self._call_namenode_with_failover(uri, lambda client, path: client.recover_lease(path)):
                raise _NotClosed(f"{uri}: its writer is gone, and HDFS has not closed it within {DEFAULT_LIMIT_S:g} s")

        retry_until(close, {_NotClosed: DEFAULT_LIMIT_S}, _FIRST_PAUSE_S, _MAX_PAUSE_S / 2, quiet=True)

    def mkdirs(self, directory: str, mode: int = 0o755) -> None:
        self._call_namenode(directory, lambda client, path: client.mkdirs(path, mode, True))

    def rename(self, old: str, new: str, overwrite: bool = False) -> None:
        self._call_namenode(new, lambda client, path: client.rename(uris.path(old), path, overwrite))

    def delete(self, uri: str) -> bool:
        return self._call_namenode(uri, lambda client, path: client.delete(path, True))

    def chmod(self, uri: str, mode: int) -> None:
        self._call_namenode(uri, lambda client, path: client.set_permission(path, mode))

    def touch(self, uri: str) -> None:
        self._call_namenode(uri, lambda client, path: client.set_times(path, _UNCHANGED, int(time.time() * 1000)))

    def _entry(self, status: hdfs_native.FileStatus) -> Entry:
        return Entry(
            self.root + status.path,
            status.length,
            status.modification_time,
            status.isdir,
            status.owner,
            status.group,
            status.permission,
            status.access_time,
            status.blocksize or 0,
        )


def _located_entry(uri: str, status: namenode_pb2.FileStatus) -> Entry:
    return Entry(
        uri,
        status.length,
        status.modified_ms,
        owner=status.owner,
        group=status.group,
        mode=status.permission.bits,
        accessed_ms=status.accessed_ms,
        block_size=status.block_size,
        places=status.locations,
    )


class _FileAbsent(HowdahError):
    """The file does not exist. The error never leaves this module."""


def _info(client: hdfs_native.Client, path: str) -> hdfs_native.FileStatus:
    try:
        return client.get_file_info(path)
    except FileNotFoundError:
        raise _FileAbsent from None
    except RuntimeError as error:
        # The answer for `file/below` is this exception.
        if "ParentNotDirectoryException" in str(error):
            raise _FileAbsent from None
        raise


# The library keeps connections to DataNodes for 3 s after a read; those that a forked process inherits do not work.
_INHERITED_S = 3.5
_usable_from = [0.0]


def _after_fork() -> None:
    _usable_from[0] = time.monotonic() + _INHERITED_S


os.register_at_fork(after_in_child=_after_fork)


class _NotClosed(EngineUnavailable):
    """HDFS still waits for a writer that is gone."""


class _NameNodeSilent(EngineUnavailable):
    """A NameNode has accepted a call and does not answer."""


class _Client:
    """Holds one client of the library, and makes a new one when another NameNode is to be asked first."""

    def __init__(self, root: str, conf: Mapping[str, str]) -> None:
        self._root, self._conf, self._service = root, conf, f"dfs.ha.namenodes.{uris.split(root)[1]}"
        self._namenodes = [id_.strip() for id_ in conf.get(self._service, "").split(",") if id_.strip()]
        self.namenode_limit_s, self.datanode_limit_s = (
            _seconds(conf, name) for name in (NAMENODE_LIMIT, DATANODE_LIMIT)
        )
        self._inner: hdfs_native.Client | None = None
        self._direct: list[DirectReader | None] = []
        self.why_not_direct = ""
        self._making = threading.Lock()
        self.appended: dict[str, bytearray] = {}

    def remember(self, path: str, before: bytes | bytearray | None, data: bytes) -> None:
        """Remember that this process has appended `data` to a file whose content was `before`, if that is known."""
        held = self.appended.pop(path, None)
        if before is None or len(before) + len(data) > _MAX_KEPT:
            return
        self.appended[path] = held if held is before else bytearray(before)
        self.appended[path] += data
        while len(self.appended) > _FILES_KEPT:
            self.appended.pop(next(iter(self.appended)))

    @property
    def inner(self) -> hdfs_native.Client:
        """Return the library's client, made at its first use, because then it reads the configuration."""
        if self._inner is None:
            tries = _ATTEMPTS_HA if self._namenodes else _ATTEMPTS
            order = {self._service: ",".join(self._namenodes)} if self._namenodes else {}
            self._inner = hdfs_native.Client(
                self._root, {**self._conf, **order, **_FAILOVER_OPTIONS, _ATTEMPTS_SETTING: tries}
            )
        return self._inner

    @property
    def direct(self) -> DirectReader | None:
        """Return the direct reader; None, with the reason in `why_not_direct`, if it cannot be used."""
        with self._making:
            if not self._direct:
                from howdah.storage.hdfs.direct_reader import DirectReader

                try:
                    self._direct.append(DirectReader.for_root(self._root, self._conf, self.datanode_limit_s))
                except NotSupported as error:
                    self._direct.append(None)
                    self.why_not_direct = str(error)
        return self._direct[0]

    def select_next_namenode(self) -> bool:
        """Ask the next NameNode first from now on; return whether there is one."""
        if len(self._namenodes) < 2:
            return False
        self._namenodes.append(self._namenodes.pop(0))
        self._inner = None
        return True


def _seconds(conf: Mapping[str, str], name: str) -> float:
    """Read a limit in milliseconds; Hadoop's 0 (no limit) gives the default."""
    value = conf.get(name, "").strip()
    return int(value) / 1000 if value.isdigit() and int(value) else DEFAULT_LIMIT_S


# One per user and process, and never removed: a forked process that frees its parent's client waits for its threads for
# ever.
_clients: dict[tuple[str, str, str, int], _Client] = {}


def _client(root: str, conf_dir: str) -> _Client:
    key = (root, conf_dir, os.environ.get("HADOOP_USER_NAME", ""), os.getpid())
    if key not in _clients:
        conf = hadoop_conf.load(conf_dir)
        _clients[key] = _Client(hadoop_conf.complete(root, conf), conf)
    return _clients[key]
