"""`LogTail` keeps a stream's last lines in memory, and finds the progress, the snapshot requests and the runs of
experiment trackers in it."""

from __future__ import annotations

import re
from typing import List, Optional, Pattern, Tuple

from howdah.logs.last_lines import END_BYTES, LAST_BYTES, cut_lines, last_lines
from howdah.spec.tracker_runs import public_address

_CARRY, _MAX_PIECES = 96, 4096
_PROGRESS = re.compile(rb"(?:reporter progress:|howdah progress )[ \t]*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(%?)[ \t]*[\r\n]")
_SAVE = re.compile(rb"(?:\A|[\r\n])(?:reporter|howdah) save[ \t]*[\r\n]")


_RUN_WORDS, _MAX_RUN_LINE, _MAX_RUNS = b"View run", 1024, 8
_RUN = re.compile(
    rb"View run (?:[^\r\n]{0,500}? )?at:? (?:\x1b\[[0-9;]*m)*"
    rb"(https?://(?:(?![\"'`<>()\[\]{}@])[\x21-\x7e]){1,500})(?=[\s\x1b])"
)
"""The line by which W&B ("View run at URL", "View run NAME at: URL") and MLflow (the latter form) print the address of
a run."""


class LogTail:
    """Takes every piece of a stream, in order; any bytes may come."""

    def __init__(self) -> None:
        self.progress: Optional[float] = None
        """The progress reported last, 0 to 1."""
        self.snapshot_requests = 0
        """How many lines said `reporter save`."""
        self.tracker_runs: Tuple[str, ...] = ()
        """The addresses of runs of experiment trackers, in lines such as `View run NAME at: URL`; the first few."""
        self._last = b""
        self._pieces: List[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Take one piece; this costs a search for a short word, and one or two copies."""
        if b"progress" in data or b"progress" in self._last[-_CARRY:]:
            self._find_progress(self._last[-_CARRY:] + data)
        elif self._last:
            self._find_progress(self._last[-_CARRY:] + data[:_CARRY])
        if b" save" in data or (self._last and b" save" in self._last[-_CARRY:] + data[:_CARRY]):
            self._count_snapshot_requests(data)
        if _RUN_WORDS in data or (self._last and _RUN_WORDS in self._last[-_MAX_RUN_LINE:] + data[:_CARRY]):
            self._find_runs(self._last[-_MAX_RUN_LINE:] + data)
        self._last = data[-LAST_BYTES:] if len(data) >= LAST_BYTES else (self._last + data)[-LAST_BYTES:]
        self._pieces.append(data)
        self._size += len(data)
        if self._size > 2 * END_BYTES or len(self._pieces) > _MAX_PIECES:
            self._pieces = [self.end]
            self._size = len(self._pieces[0])

    @property
    def end(self) -> bytes:
        """The last 64 KiB, without the ends of long lines."""
        return cut_lines(b"".join(self._pieces))

    def lines(self) -> Tuple[str, ...]:
        """Return the last lines, as people can read them."""
        return last_lines(self._last)

    def contains(self, words: Pattern[bytes]) -> bool:
        """Return whether `words` are in the last 4 KiB."""
        return words.search(self._last) is not None

    def _find_progress(self, data: bytes) -> None:
        for match in _PROGRESS.finditer(data):
            value = float(match.group(1)) / (100.0 if match.group(2) else 1.0)
            self.progress = min(1.0, value)

    def _find_runs(self, data: bytes) -> None:
        for match in _RUN.finditer(data):
            if len(self.tracker_runs) == _MAX_RUNS:
                return
            url = public_address(match.group(1).decode("ascii"))
            if url and url not in self.tracker_runs:
                self.tracker_runs = (*self.tracker_runs, url)

    def _count_snapshot_requests(self, data: bytes) -> None:
        """Count each line when the piece with its end arrives. The line end of one request may also begin the next."""
        carried = self._last[-_CARRY:]
        text, position = carried + data, 0
        while (match := _SAVE.search(text, position)) is not None:
            self.snapshot_requests += match.end() > len(carried)
            position = match.end() - 1
