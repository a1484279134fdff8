"""`StreamLog` keeps a program's output on disk: all of it up to a limit, then its first and its last part.

Offsets count what the program wrote, so dropped bytes never confuse a reader that follows by offset. While
the program runs the last part lies in two segments, the older of which is dropped as the newer fills; `close` joins
everything into one file, with a line where the gap is.
"""

from __future__ import annotations

import os
from typing import Callable, List, Mapping, NamedTuple, Tuple

DEFAULT_LIMIT_MIB = 1024


class _Piece(NamedTuple):
    """A file with a part of the stream."""

    path: str
    file: int
    start: int
    """The offset in the stream of the file's first byte."""
    end: int
    """The offset in the stream after the file's last byte."""
    lines: int
    """The number of lines of the stream that end before `start`."""


class StreamLog:
    """Writes one stream to `path`.

    The first half of `limit` keeps the beginning, a quarter to a half of it the end. Writing does not wait for a full
    disk: bytes that find no room are lost, and once there is room again a line says how many.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, path: str, limit: int) -> None:
        self.path, self.limit = path, limit
        self.size = 0
        """Bytes that the program wrote so far."""
        self.dropped = 0
        """Bytes left out of the middle."""
        self.last_line = (0, 0)
        """The offset at which the last line begins, and the number of lines before it."""
        self.before_write: Callable[[], None] = lambda: None
        """Called before something is added."""
        self.lost, self.problem = 0, ""
        """The number of bytes for which the disk had no room, and the reason."""
        self._pieces: List[_Piece] = [_create(path, 0, 0)]
        self._dropped_lines = 0

    def write(self, data: bytes) -> None:
        """Append `data`; when the limit is reached the middle of the stream is dropped."""
        self.before_write()
        size = self.size
        try:
            if self.lost:
                self._append(f"\n[howdah: {self.lost} bytes are missing here: {self.problem}]\n".encode())
                self.lost, size = 0, self.size
            self._append(data)
        except OSError as error:
            self.lost += len(data) - (0 if self.lost else self.size - size)
            self.problem = error.strerror or str(error)

    def _append(self, data: bytes) -> None:
        begun, done, view = self.size, 0, memoryview(data)
        while done < len(data):
            piece = self._pieces[-1]
            room = self._free_bytes(piece)
            if room == 0:
                self._next_segment()
                continue
            written = os.write(piece.file, view[done : done + room])
            self.size += written
            self._pieces[-1] = piece._replace(end=piece.end + written)
            last = data.rfind(b"\n", done, done + written) + 1
            if last:
                self.last_line = begun + last, self.last_line[1] + data.count(b"\n", done, last)
            done += written

    def read(self, offset: int, limit: int) -> Tuple[int, bytes]:
        """Return (offset, bytes): up to `limit` bytes from `offset` on; an offset in the gap moves behind the gap.

        A negative `offset` counts from the end.
        """
        offset = max(0, self.size + offset) if offset < 0 else offset
        for piece in self._pieces:
            if offset < piece.end:
                start = max(offset, piece.start)
                return start, os.pread(piece.file, min(limit, piece.end - start), start - piece.start)
        return self.size, b""

    @property
    def kept(self) -> List[Tuple[int, int, int, int]]:
        """Return the files as (descriptor, from, to, lines): from which to which byte of the stream each holds, and the
        number of lines before."""
        return [piece[1:] for piece in self._pieces]

    def in_file(self, offset: int, lines: int) -> Tuple[int, int]:
        """Map an offset of the stream to the joined file; an offset in the gap moves behind the gap."""
        if not self.dropped or offset <= self._pieces[0].end:
            return offset, lines
        head, following, gap = self._pieces[0].end, self._pieces[1], self._gap_line()
        lines = max(lines, following.lines) - self._dropped_lines + gap.count(b"\n")
        return head + len(gap) + max(0, offset - following.start), lines

    def _gap_line(self) -> bytes:
        return f"\n[howdah: {self.dropped} bytes are left out here; HOWDAH_LOG_LIMIT_MIB sets the limit]\n".encode()

    def close(self) -> None:
        """Join the parts into one file, if there is room. The log is not written to afterwards."""
        try:
            self._join()
        except OSError as error:
            self.problem = error.strerror or str(error)

    def _join(self) -> None:
        head, *rest = self._pieces
        if rest and self.dropped:
            os.write(head.file, self._gap_line())
        for piece in rest:
            _append(head.file, piece.file, piece.end - piece.start)
            os.close(piece.file)
            os.unlink(piece.path)
        os.close(head.file)
        self._pieces = []

    def _free_bytes(self, piece: _Piece) -> int:
        whole = self.limit // 2 if piece.start == 0 else self.limit // 4
        return max(0, whole - (piece.end - piece.start))

    def _next_segment(self) -> None:
        if len(self._pieces) == 3:
            oldest = self._pieces.pop(1)
            self.dropped += oldest.end - oldest.start
            self._dropped_lines += self._pieces[1].lines - oldest.lines
            os.close(oldest.file)
            os.unlink(oldest.path)
        used = {piece.path for piece in self._pieces}
        path = next(f"{self.path}.end{n}" for n in (1, 2) if f"{self.path}.end{n}" not in used)
        self._pieces.append(_create(path, self.size, self.last_line[1]))


def limit_from(environment: Mapping[str, str]) -> int:
    """Return the bytes to keep of each stream: HOWDAH_LOG_LIMIT_MIB, else a GiB."""
    given = environment.get("HOWDAH_LOG_LIMIT_MIB", "")
    return (int(given) if given.isdigit() and int(given) else DEFAULT_LIMIT_MIB) << 20


def _create(path: str, start: int, lines: int) -> _Piece:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o640)
    return _Piece(path, file, start, start, lines)


def _append(target: int, source: int, length: int) -> None:
    offset = 0
    while offset < length:
        sent = os.sendfile(target, source, offset, length - offset)
        if sent == 0:
            return
        offset += sent
