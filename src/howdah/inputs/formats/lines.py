"""Reads the lines of a range of bytes by Hadoop's rule: a split [a, b) has the bytes from T(a) up to T(b).

T(x) is the first line end after byte x, and T(0) is 0: a split leaves out the bytes before its first line end, and
continues to the first line end after its last byte. (LineRecordReader; a line ends with LF, CR LF or CR, or a
delimiter.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from howdah.inputs.formats.base import Corrupt

Chunk = tuple[bytes, bool]
"""Bytes, and whether they lie beyond the split's end; all bytes of a chunk lie on the same side."""

BOM = b"\xef\xbb\xbf"
_ANY_END = re.compile(rb"\r\n|\n|\r")


class TextLines:
    """Finds lines in the file `uri`; a line may have `limit` bytes.

    Without a delimiter, lines end with LF on standard input, as in Hadoop, whatever they end with in the file. With a
    delimiter, they end with it in both. If the last line of a file has no end, the end is added.
    """

    def __init__(self, uri: str, delimiter: bytes, limit: int) -> None:
        self.uri, self.limit = uri, limit
        self.end = delimiter or b"\n"
        self._any = not delimiter
        self.overlap = len(self.end) - 1
        """The number of bytes before a split at which its chunks begin, because a delimiter may lie across the split's
        border."""

    def owned(self, chunks: Iterable[Chunk], start: int) -> Iterator[bytes]:
        """Yield the lines of the split that begins at byte `start`, in pieces that may end within a line."""
        pieces = self._own_lines(_Chunks(chunks), start)
        return self._ended(_with_newlines(pieces) if self._any else pieces)

    def one_by_one(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield each line in the pieces of `owned`."""
        held: list[bytes] = []
        size = 0
        for piece in pieces:
            held.append(piece)
            size += len(piece)
            if self.overlap or self.end in piece:
                *lines, rest = b"".join(held).split(self.end)
                for line in lines:
                    yield line + self.end
                held, size = ([rest], len(rest)) if rest else ([], 0)
            if size > self.limit:
                rest = b"".join(held)
                raise Corrupt(f"{self.uri}: a record of more than {self.limit} bytes (max_record): {rest[:40]!r}...")
        if held:
            yield b"".join(held)

    def ends(self, pieces: Iterable[bytes]) -> Iterator[int]:
        """Yield, for each line of a whole file, the number of bytes up to its end."""
        pattern = _ANY_END if self._any else re.compile(re.escape(self.end))
        base, held = 0, b""
        for piece in pieces:
            data, last = held + piece, 0
            for found in pattern.finditer(data):
                if found[0] == b"\r" and found.end() == len(data) and self._any:
                    break  # LF may follow
                last = found.end()
                yield base + last
            kept = max(last, len(data) - max(self.overlap, 1))
            base, held = base + kept, data[kept:]
        if held == b"\r" and self._any:
            yield base + 1

    def _own_lines(self, chunks: _Chunks, start: int) -> Iterator[bytes]:
        if start:
            for _ in self._through_first_end(chunks, start):
                pass
            if chunks.beyond:
                return
        elif self._any:
            chunks.skip_prefix(BOM)
        held = b""
        while (data := chunks.next_inside()) is not None:
            data = held + data
            cut = len(data) - self.overlap
            held = data[max(cut, 0) :]
            yield data[: max(cut, 0)]
        chunks.push(held)
        yield from self._through_first_end(chunks, start)

    def _through_first_end(self, chunks: _Chunks, start: int) -> Iterator[bytes]:
        """Yield the bytes up to and including the next line end; the rest stays in `chunks`."""
        held, passed = b"", 0
        while (data := chunks.next()) is not None:
            data = held + data
            cut = self._first_end(data)
            if cut >= 0:
                yield data[:cut]
                chunks.push(data[cut:])
                if self._any and data[cut - 1 : cut] == b"\r" and cut == len(data):
                    yield chunks.skip_prefix(b"\n")
                return
            kept = max(len(data) - self.overlap, 0)
            yield data[:kept]
            held, passed = data[kept:], passed + kept
            if passed > self.limit:
                raise Corrupt.at(self.uri, start, f"no line ends within {self.limit} bytes (max_record): is this text?")
        yield held

    def _first_end(self, data: bytes) -> int:
        if self._any:
            found = _ANY_END.search(data)
            return found.end() if found else -1
        at = data.find(self.end)
        return at + len(self.end) if at >= 0 else -1

    def _ended(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        last = b""
        for piece in pieces:
            if piece:
                yield piece
                last = piece if len(piece) > self.overlap else (last + piece)[-len(self.end) :]
        if last and not last.endswith(self.end):
            yield self.end


def overlaps(delimiter: bytes) -> bool:
    """Return whether the delimiter can overlap itself, as `||` does in `|||`: then lines are only found from the file's
    beginning."""
    return any(delimiter.startswith(delimiter[at:]) for at in range(1, len(delimiter)))


class _Chunks:
    """Reads chunks, and can put bytes back."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._chunks = iter(chunks)
        self._pushed: list[Chunk] = []
        self.beyond = False
        """Whether the last bytes read are beyond the split's end."""

    def push(self, data: bytes) -> None:
        """Put back the end of the last bytes read."""
        if data:
            self._pushed.append((data, self.beyond))

    def next(self) -> bytes | None:
        """Return the next chunk; None at the end of the file."""
        chunk = self._pushed.pop() if self._pushed else next(self._chunks, None)
        if chunk is None:
            return None
        data, self.beyond = chunk
        return data

    def next_inside(self) -> bytes | None:
        """Return the next chunk of the split itself; None at its end."""
        before = self.beyond
        data = self.next()
        if data is None or not self.beyond:
            return data
        self._pushed.append((data, True))
        self.beyond = before
        return None

    def skip_prefix(self, prefix: bytes) -> bytes:
        """Skip `prefix` if the next chunk begins with it; return the bytes skipped."""
        before = self.beyond
        data = self.next()
        if data is None:
            return b""
        skipped = prefix if data.startswith(prefix) else b""
        self._pushed.append((data[len(skipped) :], self.beyond))
        self.beyond = self.beyond if skipped else before
        return skipped


def _with_newlines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Replace CR LF and CR by LF. Most files have no CR, and checking that is cheap."""
    held = b""
    for piece in pieces:
        if held or b"\r" in piece:
            piece = held + piece
            held = b"\r" if piece.endswith(b"\r") else b""
            piece = piece[: len(piece) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        yield piece
    if held:
        yield b"\n"
