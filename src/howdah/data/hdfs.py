"""HDFS through hdfs-native: no JVM, and none of that library's surprises.

It opens a block stream for every small read, panics beyond the end of a file, hangs after a fork, and waits minutes for
a NameNode that is not there; here reads are buffered and clamped, clients belong to one process, waits are short.
"""

from __future__ import annotations

import functools
import io
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeVar

import hdfs_native

from howdah.data import hadoop_conf, uris
from howdah.data.fs import CHUNK, Entry, FileSystem, Sink
from howdah.data.hdfs_errors import explain
from howdah.errors import HowdahError

T = TypeVar("T")
# hdfs-native waits sleep.base * 2^n between tries: about 4 s in all for one NameNode that refuses connections (its own
# defaults make that 3 minutes), and half a minute for a pair of which one is about to become active.
_PATIENCE = {"dfs.client.failover.sleep.base.millis": "200", "dfs.client.failover.sleep.max.millis": "1000"}
_TRIES, _TRIES_HA = "5", "30"
_GATHER = 1 << 20
# -1 in ClientProtocol.setTimes; the library takes unsigned numbers only.
_UNCHANGED = (1 << 64) - 1


class HdfsFileSystem(FileSystem):
    """One cluster, as the user that HADOOP_USER_NAME, a Kerberos ticket, a token file or the account name."""

    def __init__(self, root: str, conf_dir: str = "") -> None:
        self.root = root
        self._conf_dir = hadoop_conf.directory(conf_dir)

    @property
    def _client(self) -> hdfs_native.Client:
        user = os.environ.get("HADOOP_USER_NAME", "")
        return _client(self.root, self._conf_dir, user, os.getpid())

    def _call(self, uri: str, call: Callable[[hdfs_native.Client, str], T]) -> T:
        begun = time.monotonic()
        try:
            return call(self._client, uris.path(uri))
        except HowdahError:
            raise
        except Exception as error:
            raise explain(error, uri, time.monotonic() - begun, self._conf_dir) from error

    def stat(self, uri: str) -> Entry | None:
        try:
            return self._entry(self._call(uri, _info))
        except _Absent:
            return None

    def children(self, directory: str) -> list[Entry]:
        listed = self._call(directory, lambda client, path: list(client.list_status(path)))
        return sorted(map(self._entry, listed), key=lambda entry: entry.uri)

    def walk(self, directory: str) -> Iterator[Entry]:
        listing = iter(self._call(directory, lambda client, path: client.list_status(path, True)))
        while (status := self._call(directory, lambda *_: next(listing, None))) is not None:
            if not status.isdir:
                yield self._entry(status)

    def glob(self, pattern: str) -> list[Entry]:
        found = self._call(pattern, lambda client, path: client.glob_status(path))
        return sorted(map(self._entry, found), key=lambda entry: entry.uri)

    def open_read(self, uri: str) -> BinaryIO:
        reader = self._call(uri, lambda client, path: client.read(path))
        return io.BufferedReader(_Reader(self, uri, reader), _GATHER)

    def create(self, uri: str, mode: int = 0o644) -> Sink:
        options = hdfs_native.WriteOptions(permission=mode, overwrite=True, create_parent=False)
        return _Sink(self, uri, self._call(uri, lambda client, path: client.create(path, options)))

    def append(self, uri: str, data: bytes) -> None:
        if not self.exists(uri):
            self.create(uri).close()
        sink = _Sink(self, uri, self._call(uri, lambda client, path: client.append(path)))
        sink.write(data)
        sink.close()

    def mkdirs(self, directory: str, mode: int = 0o755) -> None:
        self._call(directory, lambda client, path: client.mkdirs(path, mode, True))

    def rename(self, old: str, new: str, overwrite: bool = False) -> None:
        self._call(new, lambda client, path: client.rename(uris.path(old), path, overwrite))

    def delete(self, uri: str) -> bool:
        return self._call(uri, lambda client, path: client.delete(path, True))

    def chmod(self, uri: str, mode: int) -> None:
        self._call(uri, lambda client, path: client.set_permission(path, mode))

    def touch(self, uri: str) -> None:
        now = int(time.time() * 1000)
        self._call(uri, lambda client, path: client.set_times(path, _UNCHANGED, now))

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
        )


class _Absent(HowdahError):
    """Nothing is there; never leaves this module."""


def _info(client: hdfs_native.Client, path: str) -> hdfs_native.FileStatus:
    try:
        return client.get_file_info(path)
    except FileNotFoundError:
        raise _Absent from None
    except RuntimeError as error:
        # Asking for `file/below` is answered by this exception.
        if "ParentNotDirectoryException" in str(error):
            raise _Absent from None
        raise


@functools.lru_cache(maxsize=8)
def _client(root: str, conf_dir: str, user: str, pid: int) -> hdfs_native.Client:  # noqa: ARG001 - one per user and process
    conf = hadoop_conf.load(conf_dir)
    authority = uris.split(root)[1]
    tries = _TRIES_HA if f"dfs.ha.namenodes.{authority}" in conf else _TRIES
    return hdfs_native.Client(root, {**conf, **_PATIENCE, "dfs.client.failover.max.attempts": tries})


class _Reader(io.RawIOBase):
    def __init__(self, fs: HdfsFileSystem, uri: str, inner: hdfs_native.FileReader) -> None:
        self._fs, self._uri, self._inner = fs, uri, inner
        self._size, self._position = len(inner), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"seek before the start of {self._uri}")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        # The library panics, with a BaseException that kills the thread, when asked for bytes beyond the end.
        length = max(0, min(len(buffer), CHUNK, self._size - self._position))
        if length == 0:
            return 0
        data = self._fs._call(self._uri, lambda *_: self._inner.read_range(self._position, length))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


class _Sink:
    """Gathers small writes: each one of the library's is a packet of its own."""

    def __init__(self, fs: HdfsFileSystem, uri: str, inner: hdfs_native.FileWriter) -> None:
        self._fs, self._uri, self._inner = fs, uri, inner
        self._buffer = bytearray()

    def write(self, data: bytes | memoryview) -> int:
        if len(data) >= _GATHER:
            self._flush()
            self._send(data)
        else:
            self._buffer += data
            if len(self._buffer) >= _GATHER:
                self._flush()
        return len(data)

    def close(self) -> None:
        self._flush()
        self._fs._call(self._uri, lambda *_: self._inner.close())

    def _flush(self) -> None:
        if self._buffer:
            self._send(bytes(self._buffer))
            self._buffer.clear()

    def _send(self, data: bytes | memoryview) -> None:
        self._fs._call(self._uri, lambda *_: self._inner.write(data))
