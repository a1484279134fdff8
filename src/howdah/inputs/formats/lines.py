"""Lines of a range of bytes by Hadoop's rule: a split [a, b) owns the bytes from T(a) up to T(b).

T(x) is the first end of a line after byte x, and T(0) is 0: a split leaves out what comes before its first line end and
reads on to the first one after its last byte. (LineRecordReader; a line ends with LF, CR LF or CR, or a delimiter.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from howdah.inputs.formats.base import Corrupt

Chunk = tuple[bytes, bool]
"""Bytes, and whether they lie beyond the split's end; a chunk lies wholly on one side."""

BOM = b"\xef\xbb\xbf"
_ANY_END = re.compile(rb"\r\n|\n|\r")


class TextLines:
    """How lines end, in the file `uri`, and how long (`limit` bytes) one may be.

    Without a delimiter they end with LF on standard input, as Hadoop has it, whatever they end with in the file; with
    one, they end with it in both. What ends without, at the end of a file, gets it.
    """

    def __init__(self, uri: str, delimiter: bytes, limit: int) -> None:
        self.uri, self.limit = uri, limit
        self.end = delimiter or b"\n"
        self._any = not delimiter
        self.overlap = len(self.end) - 1
        """Bytes before a split's begin with which its chunks begin: a delimiter may lie on both sides."""

    def owned(self, chunks: Iterable[Chunk], start: int) -> Iterator[bytes]:
        """The lines of the split that begins at byte `start`, in pieces cut anywhere."""
        pieces = self._owned(_Chunks(chunks), start)
        return self._ended(_with_newlines(pieces) if self._any else pieces)

    def one_by_one(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Each line of what `owned` gave."""
        held: list[bytes] = []
        size = 0
        for piece in pieces:
            held.append(piece)
            size += len(piece)
            if self.overlap or self.end in piece:
                *whole, rest = b"".join(held).split(self.end)
                for line in whole:
                    yield line + self.end
                held, size = ([rest], len(rest)) if rest else ([], 0)
            if size > self.limit:
                rest = b"".join(held)
                raise Corrupt(f"{self.uri}: a record of more than {self.limit} bytes (max_record): {rest[:40]!r}...")
        if held:
            yield b"".join(held)

    def ends(self, pieces: Iterable[bytes]) -> Iterator[int]:
        """After how many bytes of a whole file each line ends."""
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

    def _owned(self, chunks: _Chunks, start: int) -> Iterator[bytes]:
        if start:
            for _ in self._through_first_end(chunks, start):
                pass
            if chunks.beyond:
                return
        elif self._any:
            chunks.leave_out(BOM)
        held = b""
        while (data := chunks.before()) is not None:
            data = held + data
            cut = len(data) - self.overlap
            held = data[max(cut, 0) :]
            yield data[: max(cut, 0)]
        chunks.push(held)
        yield from self._through_first_end(chunks, start)

    def _through_first_end(self, chunks: _Chunks, start: int) -> Iterator[bytes]:
        """Up to and with the next end of a line; what follows it stays in `chunks`."""
        held, passed = b"", 0
        while (data := chunks.any()) is not None:
            data = held + data
            cut = self._first_end(data)
            if cut >= 0:
                yield data[:cut]
                chunks.push(data[cut:])
                if self._any and data[cut - 1 : cut] == b"\r" and cut == len(data):
                    yield chunks.leave_out(b"\n")
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
    """Whether two can overlap, as in `|||` for `||`: then only who reads from the file's begin finds them right."""
    return any(delimiter.startswith(delimiter[at:]) for at in range(1, len(delimiter)))


class _Chunks:
    """Chunks of which the rest can be put back. `beyond`: the last one taken lies beyond the split's end."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._chunks = iter(chunks)
        self._back: list[Chunk] = []
        self.beyond = False

    def push(self, data: bytes) -> None:
        """Put back what was just taken, or the end of it."""
        if data:
            self._back.append((data, self.beyond))

    def any(self) -> bytes | None:
        """The next chunk; None at the end of the file."""
        chunk = self._next()
        if chunk is None:
            return None
        data, self.beyond = chunk
        return data

    def before(self) -> bytes | None:
        """The next chunk of the split itself; None where that ends."""
        chunk = self._next()
        if chunk is None or chunk[1]:
            self._back.extend(one for one in (chunk,) if one)
            return None
        self.beyond = False
        return chunk[0]

    def leave_out(self, start: bytes) -> bytes:
        """Take `start` away if the next chunk begins with it; what was taken."""
        chunk = self._next()
        if chunk is None:
            return b""
        data, beyond = chunk
        taken = start if data.startswith(start) else b""
        self._back.append((data[len(taken) :], beyond))
        if taken:
            self.beyond = beyond
        return taken

    def _next(self) -> Chunk | None:
        return self._back.pop() if self._back else next(self._chunks, None)


def _with_newlines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """CR LF and CR made LF. The rule for most files: nothing to do, and finding that out costs little."""
    held = b""
    for piece in pieces:
        if held or b"\r" in piece:
            piece = held + piece
            held = b"\r" if piece.endswith(b"\r") else b""
            piece = piece[: len(piece) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        yield piece
    if held:
        yield b"\n"
