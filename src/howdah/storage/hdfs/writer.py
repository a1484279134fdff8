"""A file that is written to HDFS in few large packets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hdfs_native

PACKET_BYTES = 1 << 20


class PacketWriter:
    """Gathers small writes: each one of the library's is a packet of its own. `move(call)` does `call` under the limits
    and with the errors of its file system."""

    def __init__(self, inner: hdfs_native.FileWriter, move: Callable[[Callable[[], Any]], Any]) -> None:
        self._inner, self._move = inner, move
        self._buffer = bytearray()

    def write(self, data: bytes | memoryview) -> int:
        """Take all of `data`; its length.

        Raises:
            HowdahError: what was gathered could not be sent.
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
        """Send the rest and close the file.

        Raises:
            HowdahError: it could not be written whole.
        """
        self._flush()
        self._move(self._inner.close)

    def _flush(self) -> None:
        if self._buffer:
            self._send(bytes(self._buffer))
            self._buffer.clear()

    def _send(self, data: bytes | memoryview) -> None:
        whole = bytes(data)  # the library takes any other kind of buffer byte by byte: 30 MB/s
        self._move(lambda: self._inner.write(whole))
