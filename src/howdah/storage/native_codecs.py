"""Finds compression and checksums that Python lacks, in a package or in a C library of the machine.

Compiled packages (`howdah[records]`) need one Python version and may be missing inside a container. The C libraries
that they wrap are on most machines, and on every node whose Hadoop has its native codecs.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import functools
import importlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from howdah.errors import StagingError

Transform = Callable[[bytes], bytes]
Sized = Callable[[bytes, int], bytes]
Checksum = Callable[[Any], int]


class Raw(NamedTuple):
    """Compresses bare blocks."""

    compress: Transform
    decompress: Sized
    """`decompress(data, size)` returns at most `size` bytes; it raises ValueError for data that is no block."""


class LibraryMissing(StagingError):
    """The Python or the machine that runs this has no library for it."""

    @classmethod
    def library(cls, what: str, package: str, other: str = "") -> LibraryMissing:
        """Return the error that `what` needs `package`; the library `other` would do as well."""
        version = ".".join(map(str, sys.version_info[:2]))
        also = f" (or {other} on the node)" if other else ""
        return cls(
            f"{what} needs the package {package}, which {sys.executable} (Python {version}) does not have:"
            f" add it to the environment of the job{also}"
        )


def package(name: str, what: str) -> Any:
    """Return an installed package, which `what` needs.

    Raises:
        LibraryMissing: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise LibraryMissing.library(what, name) from None


@functools.cache
def snappy() -> Raw:
    """Return the codec of Snappy's raw blocks."""
    try:
        import cramjam
    except ImportError:
        return _snappy_of(_required("snappy", "snappy", "cramjam"))
    return Raw(
        lambda data: bytes(cramjam.snappy.compress_raw(data)),
        _translate_errors(lambda data, _: bytes(cramjam.snappy.decompress_raw(data)), cramjam.DecompressionError),
    )


@functools.cache
def lz4() -> Raw:
    """Return the codec of LZ4's bare blocks, which have no length."""
    try:
        import cramjam
    except ImportError:
        return _lz4_of(_required("lz4", "lz4", "cramjam"))

    def decompress(data: bytes, size: int) -> bytes:
        into = bytearray(size)
        return bytes(into[: cramjam.lz4.decompress_block_into(data, into)])

    return Raw(
        lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)),
        _translate_errors(decompress, cramjam.DecompressionError),
    )


@functools.cache
def zstd() -> Any:
    """Return a module like `compression.zstd` of Python 3.14; without a package the machine's libzstd in that form."""
    try:
        from compression import zstd as module  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            from backports import zstd as module  # type: ignore[no-redef,unused-ignore]
        except ImportError:
            from howdah.storage.libzstd import Libzstd

            return Libzstd(_required("zstd", "zstd", "backports.zstd"))
    return module


@functools.cache
def quick_crc32c() -> Checksum | None:
    """Return CRC-32C that takes a tenth of a microsecond a call; None without a package for this Python."""
    with contextlib.suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about its slow replacement, which is not used
        import google_crc32c

        if google_crc32c.implementation == "c":
            value_of: Checksum = google_crc32c.value
            return value_of
    return None


@functools.cache
def more_crc32c() -> Callable[[int, bytes | memoryview], int] | None:
    """Return CRC-32C that continues the CRC of the bytes before (0 at the start); None without a library. Other threads
    run meanwhile, and a writable view is not copied."""
    library = _bundled_crc32c() or _library("crc32c")
    if library is None:
        return None
    extend = library.crc32c_extend
    extend.argtypes, extend.restype = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t], ctypes.c_uint32

    def more(value: int, data: bytes | memoryview) -> int:
        at = data if isinstance(data, bytes) else ctypes.addressof(ctypes.c_char.from_buffer(data))
        return int(extend(value, at, len(data)))

    return more


@functools.cache
def crc32c() -> Checksum:
    """Return the CRC-32C (Castagnoli) that TFRecord uses, before masking."""
    if (quick := quick_crc32c()) is not None:
        return quick
    library = _bundled_crc32c() or _required("crc32c", "CRC-32C of TFRecord", "google-crc32c")
    value = library.crc32c_value
    value.argtypes, value.restype = [ctypes.c_char_p, ctypes.c_size_t], ctypes.c_uint32
    return lambda data: int(value(bytes(data), len(data)))


def _bundled_crc32c() -> ctypes.CDLL | None:
    """Return the C library in google-crc32c's wheel. Unlike the wheel's extension module it works with every Python
    version."""
    for directory in sys.path:
        for path in Path(directory or ".").glob("google_crc32c.libs/libcrc32c*"):
            try:
                return ctypes.CDLL(str(path))
            except OSError:  # for another kind of machine
                continue
    return None


def _library(name: str) -> ctypes.CDLL | None:
    """Load a library by the name of its first stable version; else by `find_library`, which starts programs."""
    for candidate in (f"lib{name}.so.1", f"lib{name}.so", ctypes.util.find_library(name)):
        try:
            if candidate:
                return ctypes.CDLL(candidate)
        except OSError:
            continue
    return None


def _required(name: str, what: str, package: str) -> ctypes.CDLL:
    """Load a library.

    Raises:
        LibraryMissing: `what` needs `package` or this library.
    """
    library = _library(name)
    if library is None:
        raise LibraryMissing.library(what, package, f"lib{name}")
    return library


def _snappy_of(library: Any) -> Raw:
    """Return the codec of a libsnappy, by snappy-c.h."""
    library.snappy_max_compressed_length.argtypes = [ctypes.c_size_t]
    library.snappy_max_compressed_length.restype = ctypes.c_size_t

    def run(call: Any, data: bytes, room: int) -> bytes:
        into, length = ctypes.create_string_buffer(max(room, 1)), ctypes.c_size_t(room)
        if call(data, ctypes.c_size_t(len(data)), into, ctypes.byref(length)):
            raise ValueError("is not a snappy block")
        return ctypes.string_at(into, length.value)

    return Raw(
        lambda data: run(library.snappy_compress, data, library.snappy_max_compressed_length(len(data))),
        lambda data, size: run(library.snappy_uncompress, data, size),
    )


def _lz4_of(library: Any) -> Raw:
    """Return the codec of a liblz4, by lz4.h."""

    def run(call: Any, data: bytes, room: int) -> bytes:
        into = ctypes.create_string_buffer(max(room, 1))
        length = call(data, into, len(data), room)
        if length < 0:
            raise ValueError("is not an lz4 block")
        return ctypes.string_at(into, length)

    return Raw(
        lambda data: run(library.LZ4_compress_default, data, library.LZ4_compressBound(len(data))),
        lambda data, size: run(library.LZ4_decompress_safe, data, size),
    )


def _translate_errors(call: Sized, error: type[Exception]) -> Sized:
    def run(data: bytes, size: int) -> bytes:
        try:
            return call(data, size)
        except error as found:
            raise ValueError(str(found)) from found

    return run
