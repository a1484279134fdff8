"""Standard error of a program in a container: a file on a disk that may be full. What finds no room is not written,
and nothing fails because of it."""

from __future__ import annotations

import contextlib
import io
import os
import sys


class FullDiskIgnored(io.TextIOBase):
    """Text to a descriptor, at once; nothing is kept back that the interpreter's end would stumble over."""

    encoding = "utf-8"

    def __init__(self, file: int) -> None:
        self._file = file

    def fileno(self) -> int:
        """The descriptor."""
        return self._file

    def writable(self) -> bool:
        """Yes, even when there is no room."""
        return True

    def write(self, text: str) -> int:
        """As much of it as there is room for; told as if it were all."""
        with contextlib.suppress(OSError):
            os.write(self._file, text.encode("utf-8", "backslashreplace"))
        return len(text)


def ignore_full_disk() -> None:
    """Let what this process says never be the end of it."""
    sys.stderr = FullDiskIgnored(2)
