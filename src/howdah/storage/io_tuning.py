"""For processes that move bytes: room for them, in memory and on the disk, that is not looked for piece by piece.

By default glibc returns what lies free at the end of its heap, and maps large blocks anew: at a gigabyte a second that
is a page fault for every page, and half of the speed (measured with HDFS, 430 against 1,050 MB/s). A file that grows
asks its file system for each page; with its room reserved writing takes 0.6 of the time (ext4).
"""

from __future__ import annotations

import ctypes

# malloc.h
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
KEPT, GROWTH, MAPPED = 64 << 20, 4 << 20, 32 << 20
_KEEP_SIZE = 1  # fallocate(2)


def keep_freed_memory() -> None:
    """From now on, where the C library is glibc; others do nothing of the kind."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    for name, value in ((_M_TRIM_THRESHOLD, KEPT), (_M_TOP_PAD, GROWTH), (_M_MMAP_THRESHOLD, MAPPED)):
        mallopt(name, value)


def reserve_room(file: int, size: int) -> None:
    """For the first `size` bytes of a file, whose own size stays; where that is not to be had (NFS, say), nothing."""
    try:
        fallocate = ctypes.CDLL(None).fallocate
    except (OSError, AttributeError):
        return
    fallocate(file, _KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(size))
