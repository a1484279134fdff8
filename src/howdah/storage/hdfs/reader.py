"""Reads a file of HDFS as a Python file."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from howdah.storage.filesystem import CHUNK, ConnectionBroken

if TYPE_CHECKING:
    import hdfs_native


class HdfsFileReader(io.RawIOBase):
    """Reads a file; a read that fails is made again with the blocks' locations at that time.

    `open_file` opens it, and `read` makes a call that reads from DataNodes, and may take long.
    """

    def __init__(
        self,
        uri: str,
        open_file: Callable[[], hdfs_native.FileReader],
        read: Callable[[Callable[[], bytes]], bytes],
    ) -> None:
        self._uri, self._open, self._call = uri, open_file, read
        self._inner = self._open()
        self._size, self._position = len(self._inner), 0

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

    def first(self, max_bytes: int) -> bytes:
        length = min(max_bytes, self._size)
        return self._read(length) if length else b""

    def readinto(self, buffer: Any) -> int:
        # Asked for bytes beyond the end, the library panics with a BaseException that kills the thread.
        length = max(0, min(len(buffer), CHUNK, self._size - self._position))
        if length == 0:
            return 0
        data = self._read(length)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _read(self, length: int) -> bytes:
        position = self._position
        try:
            return self._call(lambda: self._inner.read_range(position, length))
        except ConnectionBroken:
            inner = self._inner = self._open()
            return self._call(lambda: inner.read_range(position, length))
