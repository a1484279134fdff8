"""A file in the job's directory that one master alone writes, as a file to append to or in segments.

A master that was replaced, and may still live, finds out when it next writes or looks, before its lines count.
"""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod

from howdah.errors import EngineUnavailable, HowdahError, StagingError
from howdah.storage import begun_files
from howdah.storage.filesystem import FileSystem
from howdah.storage.segmented_log import Segment, SegmentedLog, find_log, segment_uri

APPENDED_MODE = 0o644
"""The mode of a file that FileSystem.append makes; no other user can enter its directory."""
MERGED_BYTES = 8 << 20
"""The largest merged file: what is written once more at a time is bounded, and a log of any size is read by few
requests."""
RESUME_TRIES = 5


class LogOwnerChanged(HowdahError):
    """Another master writes this file: it took over, because the cluster took this master for dead."""


class LogChanged(HowdahError):
    """The earlier master has written to a file after this master had read it."""


class OwnedFile(ABC):
    """A file that one master alone writes. Every call may take as long as the file system takes."""

    def __init__(self, uri: str, what: str, files: FileSystem) -> None:
        self.uri, self.what, self.files = uri, what, files
        self.known = 0
        """The number of bytes in the file that this master has read or written."""

    @abstractmethod
    def read(self) -> bytes:
        """Return what an earlier master wrote; nothing when there is no file.

        Raises:
            StagingError, EngineUnavailable: the file is there and cannot be read, or not to its end.
        """

    @abstractmethod
    def resume(self) -> None:
        """Continue the file that an earlier master wrote, and end its last line, in which that master may have been
        killed. The line is ended at once, so that an earlier master that still lives finds the file changed.

        Raises:
            StagingError, EngineUnavailable: the file cannot be continued.
        """

    @abstractmethod
    def check(self) -> None:
        """Check that the file is still this master's.

        Raises:
            LogOwnerChanged: another master has written to it.
        """

    @abstractmethod
    def append(self, data: bytes) -> None:
        """Append `data`, or the rest of it: an append that failed may have written some of it.

        Raises:
            LogOwnerChanged: another master has written to it.
        """

    @abstractmethod
    def claim(self, content: bytes, line: bytes) -> None:
        """Add `line` to the file, whose content was read as `content`, in one step: from now on the file is this
        master's alone. An earlier master that still lives, cut off from the engine and not from the file, finds out
        when it next writes.

        Raises:
            LogChanged: the earlier master has written to it meanwhile, and it must be read again.
        """

    @abstractmethod
    def replace(self, content: bytes) -> None:
        """Replace the whole file by `content`, which says as much as the file does."""

    def merge(self, at_the_end: bool = False) -> None:  # noqa: B027 - most files have one part
        """Merge the parts of a file into fewer parts; `at_the_end` of the job this includes the latest parts.

        Raises:
            StagingError, EngineUnavailable: the parts stay as they are.
        """

    @abstractmethod
    def clear(self) -> None:
        """Empty a file that an earlier master wrote, and make it this master's."""

    @abstractmethod
    def remove(self) -> None:
        """Remove the file, whose job is over."""

    def owner_changed(self) -> LogOwnerChanged:
        """Return the error of a master that finds the lines of another one."""
        return LogOwnerChanged(f"{self.what} {self.uri}: another master writes it")


class AppendedFile(OwnedFile):
    """One file, on a file system that appends to it. A master that finds more in it than it wrote was replaced. `begun`
    is the URI of a file with an empty line that becomes this one when its first bytes are written, if it is there."""

    def __init__(self, uri: str, what: str, files: FileSystem, begun: str = "") -> None:
        super().__init__(uri, what, files)
        self._begun = begun

    def read(self) -> bytes:
        """Return the content. While an earlier master that still lives has opened the file again, HDFS hides its last
        block from readers."""
        found = self.files.stat(self.uri)
        if found is None:
            return b""
        self.files.recover_lease(self.uri)
        content = self.files.read_bytes(self.uri)
        if len(content) < found.size:
            raise EngineUnavailable(
                f"{self.what} {self.uri}: {len(content)} of its {found.size} bytes can be read: it is being written"
            )
        self.known = len(content)
        return content

    def resume(self) -> None:
        if self.files.exists(self.uri):
            self.files.recover_lease(self.uri)
        self.known = self._size()
        if self.known:
            self.append(b"\n")

    def check(self) -> None:
        if self._size() > self.known:
            raise self.owner_changed()

    def append(self, data: bytes) -> None:
        if self._begun and not self.known:
            self.known = begun_files.take_begun_file(self.files, self._begun, self.uri)
        more = self._size() - self.known
        if more:
            content = self.files.read_bytes(self.uri)
            if more < 0 or content[self.known :] != data[:more]:
                raise self.owner_changed()
        if data[more:]:
            self.files.append(self.uri, data[more:])
        self.known += len(data)

    def claim(self, content: bytes, line: bytes) -> None:
        """Replace the file. If masters appended instead, the first to append would keep the file, and that may be the
        earlier one."""
        if self._size() != self.known:
            raise LogChanged(f"{self.what} {self.uri} has grown since it was read")
        self._write(content + line, APPENDED_MODE)

    def replace(self, content: bytes) -> None:
        self._write(content, 0o600)

    def clear(self) -> None:
        self.remove()

    def remove(self) -> None:
        self.files.delete(self.uri)

    def _write(self, content: bytes, mode: int) -> None:
        self.files.write_bytes(self.uri, content, mode)
        self.known = len(content)

    def _size(self) -> int:
        found = self.files.stat(self.uri)
        return found.size if found is not None else 0


class SegmentedFile(OwnedFile):
    """A file in segments (`howdah.storage.segmented_log`), on an object store, which cannot append.

    The segments are numbered without a gap, and each is written by `FileSystem.create_new`: of two masters that want
    the same number, the store gives it to one. A master that finds a number taken by another one's lines was replaced.
    A master makes the file its own by a segment with its first line, and no master ever removes that segment, or one
    that an earlier master wrote: the number at which the earlier master will look stays taken (docs/adr/0016).

    A store that ignores the condition is found out by writing the first segment twice. Then each segment is looked for
    before it is written, and two masters can write the same number only within the time of one request: one of them
    loses that segment. Both find the other's lines with the next number, and the slower one ends.
    """

    block = 32
    """The number of segments that are merged into one file, and of such files that are merged again. A file that holds
    several segments begins at a multiple of it, so that two of them never overlap in part, whichever master wrote them.
    The value must never change."""

    def __init__(self, uri: str, what: str, files: FileSystem) -> None:
        super().__init__(uri, what, files)
        self.last = -1
        """The number of the last segment."""
        self._parts: list[Segment] = []
        self._kept = 0
        """The number of the segment by which the file is this master's. It is never removed, nor is one before it."""
        self._is_cut_short = False
        self._store_decides: bool | None = None
        """Whether the store refuses a second object of a name; None: not known yet."""
        self._lock, self._merging = threading.Lock(), threading.Lock()

    def read(self) -> bytes:
        log = find_log(self.files, self.uri)
        content = log.read() if log is not None else b""
        self._begin_after(log)
        self.known, self._is_cut_short = len(content), bool(content) and not content.endswith(b"\n")
        return content

    def resume(self) -> None:
        for left in reversed(range(RESUME_TRIES)):
            log = find_log(self.files, self.uri)
            if log is None:
                return
            self._begin_after(log)
            self.known = log.size
            try:
                self.claim(b"", b"\n")
                return
            except LogChanged:
                if not left:
                    raise

    def check(self) -> None:
        if self.files.stat(segment_uri(self.uri, self.last + 1)) is not None:
            raise self.owner_changed()

    def append(self, data: bytes) -> None:
        """Write a segment. If its number is taken and the segment there equals the beginning of `data`, it is this
        master's own: the store has written it, and the answer was lost."""
        number, rest, sizes = self.last + 1, data, []
        while rest:
            if self._create(number, rest):
                sizes.append(len(rest))
                break
            found = self.files.read_bytes(segment_uri(self.uri, number))
            if not found.strip() or not rest.startswith(found):
                raise self.owner_changed()
            sizes.append(len(found))
            number, rest = number + 1, rest[len(found) :]
        for size in sizes:
            self._add(size)

    def claim(self, content: bytes, line: bytes) -> None:
        """Write `line` as the next segment. If the store's answer is lost, the segment counts as another master's.

        The number may be free because the earlier master has taken it, merged it with others and removed it since this
        master read the file. Then there is a merged file that holds the number.
        """
        line = b"\n" + line if self._is_cut_short else line
        if self._create(self.last + 1, line):
            log = find_log(self.files, self.uri)
            if log is not None and log.segments[-1].first == log.last == self.last + 1:
                self._add(len(line))
                return
        raise LogChanged(f"{self.what} {self.uri} has grown since it was read")

    def replace(self, content: bytes) -> None:
        """Write `content` as a file that stands for all segments until now."""
        if self.last < 0:
            self.append(content)
            return
        with self._merging:
            self._write_merged(list(self._parts), 0, content)
        self.known = len(content)

    def merge(self, at_the_end: bool = False) -> None:
        """Merge the latest segments that fill a block, and the latest blocks that fill a larger one. The merged file is
        written before its parts are removed, so that a reader finds all lines at any time."""
        with self._merging:
            chosen = self._parts_to_merge(at_the_end)
            if not chosen:
                return
            try:
                content = b"".join(self.files.read_bytes(part.uri) for part in chosen)
            except StagingError:  # the master before this one has merged them since they were listed
                self._list_again()
                raise
            self._write_merged(chosen, chosen[0].first, content)

    def _parts_to_merge(self, at_the_end: bool) -> list[Segment]:
        """Return the parts of the largest block that has more than one, and is not too large."""
        with self._lock:
            parts, count = list(self._parts), self.last + 1
        size = self.block
        while size * self.block <= count or (at_the_end and size < count):
            size *= self.block
        while size >= self.block:
            end = count if at_the_end else count // size * size
            first = (end - 1) // size * size
            chosen = [part for part in parts if first <= part.first and part.last < end]
            if len(chosen) > 1 and chosen[0].first == first and sum(part.size for part in chosen) <= MERGED_BYTES:
                return chosen
            size //= self.block
        return []

    def _list_again(self) -> None:
        log = find_log(self.files, self.uri)
        with self._lock:
            if log is not None and log.last == self.last:
                self._parts = list(log.segments)

    def clear(self) -> None:
        """Replace the content by nothing: an earlier master that lives must not find its next number free."""
        self.resume()
        if self.last >= 0:
            self.replace(b"")

    def remove(self) -> None:
        log = find_log(self.files, self.uri)
        if log is not None:
            self.files.delete_files([part.uri for part in (*log.segments, *log.covered)])

    def _begin_after(self, log: SegmentedLog | None) -> None:
        """Go on after what earlier masters wrote. Their segments stay, but for merged files."""
        with self._lock:
            self._parts = list(log.segments) if log is not None else []
            self.last = log.last if log is not None else -1
            self._kept = self.last + 1

    def _create(self, number: int, data: bytes) -> bool:
        """Write a segment; return False if there is one of that number."""
        uri = segment_uri(self.uri, number)
        if not self._store_decides and self.files.stat(uri) is not None:
            return False
        if not self.files.create_new(uri, data):
            return False
        if self._store_decides is None:
            self._store_decides = not self.files.create_new(uri, data)
            if not self._store_decides:
                problem = "the object store ignores If-None-Match: two masters might write the same segment"
                print(f"{self.what} {self.uri}: {problem}", file=sys.stderr, flush=True)
        return True

    def _add(self, size: int) -> None:
        with self._lock:
            self.last += 1
            self._parts.append(Segment(self.last, self.last, segment_uri(self.uri, self.last), size))
        self.known += size

    def _write_merged(self, parts: list[Segment], first: int, content: bytes) -> None:
        """Write the file that stands for `parts`, and remove those that this master may remove."""
        last = parts[-1].last
        merged = Segment(first, last, segment_uri(self.uri, first, last), len(content))
        self.files.write_bytes(merged.uri, content, 0o600)
        with self._lock:
            after = [part for part in self._parts if part.first > last]
            before = [part for part in self._parts if part.last < first]
            self._parts = [*before, merged, *after]
        gone = [part.uri for part in parts if part.uri != merged.uri and self._may_remove(part)]
        if gone:
            self.files.delete_files(gone)

    def _may_remove(self, part: Segment) -> bool:
        return part.first < part.last or part.first > self._kept


def owned_file(uri: str, what: str, files: FileSystem, begun: str = "") -> OwnedFile:
    """Return the kind of file that suits the file system `files`. `begun` is as for AppendedFile."""
    if files.appends_cheaply(uri):
        return AppendedFile(uri, what, files, begun)
    return SegmentedFile(uri, what, files)
