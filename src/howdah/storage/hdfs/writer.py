"""Writes files to HDFS in few large packets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hdfs_native

PACKET_BYTES = 1 << 20


class PacketWriter:
    """Collects small writes, because each write of the library is a packet of its own. `move(call)` runs `call` with
    the time limits and errors of the file system."""

    def __init__(self, inner: hdfs_native.FileWriter, move: Callable[[Callable[[], Any]], Any]) -> None:
        self._inner, self._move = inner, move
        self._buffer = bytearray()

    def write(self, data: bytes | memoryview) -> int:
        """Accept all of `data`; return its length.

        Raises:
            HowdahError: what was collected could not be sent.
        """
        if len(data) >= PACKET_BYTES:
            self._flush()
            self._send(data)
        else:
            self._buffer += data
            if len(self._buffer) >= PACKET_BYTES:
                self._flush()
        return len(data)

    def close(self) -> None:
        """Send the remaining bytes and close the file.

        Raises:
            HowdahError: the file could not be completed.
        """
        self._flush()
        self._move(self._inner.close)

    def _flush(self) -> None:
        if self._buffer:
            self._send(bytes(self._buffer))
            self._buffer.clear()

    def _send(self, data: bytes | memoryview) -> None:
        whole = bytes(data)  # the library copies any other kind of buffer byte by byte, at 30 MB/s
        self._move(lambda: self._inner.write(whole))
