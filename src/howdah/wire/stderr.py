"""Keeps a process alive whose standard error is a file on a full disk: text for which there is no room is not
written."""

from __future__ import annotations

import contextlib
import io
import os
import sys


class FullDiskIgnored(io.TextIOBase):
    """Writes text to a descriptor at once: a buffer that cannot be flushed would fail the interpreter's end."""

    encoding = "utf-8"

    def __init__(self, file: int) -> None:
        self._file = file

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._file

    def writable(self) -> bool:
        """Return True, even when there is no room."""
        return True

    def write(self, text: str) -> int:
        """Write as much of `text` as there is room for, and report all of it as written."""
        with contextlib.suppress(OSError):
            os.write(self._file, text.encode("utf-8", "backslashreplace"))
        return len(text)


def ignore_full_disk() -> None:
    """Make this process survive a full disk under its standard error."""
    sys.stderr = FullDiskIgnored(2)
