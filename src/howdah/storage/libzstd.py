"""Wraps the machine's libzstd like the used part of `compression.zstd`: a streaming decompressor, and `compress`.

The functions of zstd.h are stable since 1.4; each returns a size, which ZSTD_isError tells from an error.
"""

from __future__ import annotations

import ctypes
from typing import Any

_ROOM = 1 << 20


class ZstdError(Exception):
    """libzstd reports an error."""


class _Buffer(ctypes.Structure):
    """Is both ZSTD_inBuffer and ZSTD_outBuffer."""

    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]


class Libzstd:
    """Replaces the module `compression.zstd`."""

    ZstdError = ZstdError

    def __init__(self, library: Any) -> None:
        self.library = library
        size = ctypes.c_size_t
        for name, arguments, result in (
            ("ZSTD_isError", [size], ctypes.c_uint),
            ("ZSTD_getErrorName", [size], ctypes.c_char_p),
            ("ZSTD_createDStream", [], ctypes.c_void_p),
            ("ZSTD_freeDStream", [ctypes.c_void_p], size),
            ("ZSTD_decompressStream", [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p], size),
            ("ZSTD_compressBound", [size], size),
            ("ZSTD_compress", [ctypes.c_void_p, size, ctypes.c_char_p, size, ctypes.c_int], size),
        ):
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, result

    def compress(self, data: bytes, level: int = 3) -> bytes:
        """Return one frame."""
        room = self.library.ZSTD_compressBound(len(data))
        into = ctypes.create_string_buffer(room)
        size = self.checked(self.library.ZSTD_compress(into, room, data, len(data), level))
        return into.raw[:size]

    def ZstdDecompressor(self) -> Decompressor:  # noqa: N802 - the module's name for it
        """Return a decompressor of one frame."""
        return Decompressor(self)

    def checked(self, result: int) -> int:
        """Return `result`, unless it is an error.

        Raises:
            ZstdError: it is an error.
        """
        if self.library.ZSTD_isError(result):
            raise ZstdError(self.library.ZSTD_getErrorName(result).decode())
        return result


class Decompressor:
    """Does what `compression.zstd.ZstdDecompressor` does."""

    def __init__(self, zstd: Libzstd) -> None:
        self._zstd = zstd
        self._stream = zstd.library.ZSTD_createDStream()
        self._into = ctypes.create_string_buffer(_ROOM)
        self._left = b""
        self.eof, self.needs_input, self.unused_data = False, True, b""

    def __del__(self) -> None:
        self._zstd.library.ZSTD_freeDStream(self._stream)

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Return up to `max_length` bytes (in steps of a MiB) from `data` and the rest of earlier data."""
        source = self._left + bytes(data)
        held = ctypes.create_string_buffer(source, len(source) or 1)
        taken = _Buffer(ctypes.addressof(held), len(source), 0)
        parts, size, full = [], 0, True
        while not self.eof and full and not 0 <= max_length <= size:
            given = _Buffer(ctypes.addressof(self._into), _ROOM, 0)
            call = self._zstd.library.ZSTD_decompressStream
            result = self._zstd.checked(call(self._stream, ctypes.byref(given), ctypes.byref(taken)))
            self.eof = result == 0
            parts.append(ctypes.string_at(self._into, given.pos))
            size += given.pos
            full = given.pos == _ROOM or taken.pos < taken.size
        left = source[taken.pos :]
        self.unused_data, self._left = (left, b"") if self.eof else (b"", left)
        self.needs_input = not self.eof and not full
        return b"".join(parts)
