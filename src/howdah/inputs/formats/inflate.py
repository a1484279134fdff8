"""gzip and zlib streams, with the interface of BZ2Decompressor: by Intel's ISA-L where its package is, else by zlib.

ISA-L is two to three times as fast, and both check the sum at the stream's end.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

GZIP, ZLIB = 31, 15


class Inflater:
    """zlib's, for one stream."""

    def __init__(self, window: int) -> None:
        self._stream = zlib.decompressobj(window)
        self._left, self._full = b"", False

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        """What follows it."""
        return self._stream.unused_data

    @property
    def needs_input(self) -> bool:
        """Whether nothing more comes of what was given."""
        return not (self.eof or self._left or self._full)

    def decompress(self, data: bytes, most: int) -> bytes:
        """At most so many bytes."""
        found = self._stream.decompress(self._left + data, most)
        self._left = self._stream.unconsumed_tail
        self._full = len(found) == most  # zlib may hold more, though all input is taken
        return found


def _best() -> tuple[Callable[[int], Any], tuple[type[Exception], ...]]:
    try:
        from isal import igzip_lib
    except ImportError:
        return Inflater, (zlib.error,)
    flags = {GZIP: igzip_lib.DECOMP_GZIP, ZLIB: igzip_lib.DECOMP_ZLIB}
    errors: Any = (igzip_lib.IsalError, zlib.error)
    return (lambda window: igzip_lib.IgzipDecompressor(flags[window])), errors


inflater, ERRORS = _best()
