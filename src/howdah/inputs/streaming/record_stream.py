"""Reads the records of a task's streams as blocks of bytes: epoch by epoch, in the order that the seed determines.

The same task reads the same bytes in the same order whenever it is started again. If the input is shuffled, another
epoch or task has another order.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from howdah.errors import HowdahError, StagingError
from howdah.inputs import formats
from howdah.inputs.download import verify_unchanged
from howdah.inputs.formats import Piece
from howdah.spec import uris
from howdah.spec.staged import Feed, Split
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import ConnectionBroken, FileSystem
from howdah.wire.helper_messages import FileCopy

TRIES = 3
BLOCK_BYTES = 1 << 18
"""The approximate size of the blocks into which shuffled records are joined: a write for each record would cost more
than reading it."""
WINDOW_BYTES = 256 << 20
"""Records are shuffled among at most `window` records, and among at most this many bytes."""


@dataclass(frozen=True)
class ReadPosition:
    """The position up to which a stream has been read."""

    bytes: int = 0
    """The bytes of the splits that have been read."""
    local: int = 0
    """The part of `bytes` that is on this node."""
    at: str = ""
    """The position as a text."""


class RecordStream:
    """Yields all epochs of `feeds` for `task`; it can be iterated once. `names` are this node's names in lists of
    blocks.

    Within an epoch the inputs follow each other in their order; an input with fewer epochs is missing in the later
    ones. `bytes` is the sum of all splits of all epochs; 0 when an input has no end.
    """

    def __init__(self, feeds: Sequence[Feed], task: str, names: Collection[str] = ()) -> None:
        self._feeds, self._task, self._names = feeds, task, names
        endless = any(feed.epochs == 0 for feed in feeds)
        self.bytes = 0 if endless else sum(feed.epochs * split.length for feed in feeds for split in feed.splits)
        self._read = self._local = 0
        self._at = ""
        self._verified_uri = ""

    def __iter__(self) -> Iterator[tuple[Piece, ReadPosition]]:
        """Yield blocks, each with the stream's position after it.

        Raises:
            StagingError, EngineUnavailable: a split cannot be read completely; the message says which.
        """
        for epoch in itertools.count(1):
            is_empty = True
            for feed in self._feeds:
                for block in self._epoch(feed, epoch) if feed.epochs == 0 or epoch <= feed.epochs else ():
                    is_empty = False
                    yield block, self.position()
            if is_empty and not any(feed.epochs > epoch for feed in self._feeds):
                return  # all epochs are read, or an input without end is empty

    def _epoch(self, feed: Feed, epoch: int) -> Iterator[Piece]:
        self._verified_uri = ""  # the files may have changed since the epoch before
        rng = random.Random(f"{feed.seed}/{feed.number}/{self._task}/{epoch}")  # noqa: S311
        splits = list(feed.splits)
        if feed.shuffle:
            rng.shuffle(splits)
        reader = formats.reader(feed.format, feed.options)
        if epoch == 1 and splits and (prologue := reader.prologue(filesystem(splits[0].uri), splits[0])):
            yield prologue
        if not feed.window:
            for split in splits:
                yield from self._read_split(reader.blocks, len, split, epoch)
            return
        records = (each for split in splits for each in self._read_split(reader.records, lambda _: 1, split, epoch))
        yield from formats.join_blocks(shuffle_in_window(records, feed.window, rng), BLOCK_BYTES)

    def position(self) -> ReadPosition:
        """Return the stream's position, as far as it has been iterated."""
        share = f", {self._read / self.bytes:.0%} of all" if self.bytes else ""
        return ReadPosition(self._read, self._local, f"{self._at}{share}")

    def _read_split(
        self,
        read: Callable[[FileSystem, Split], Iterator[Piece]],
        size: Callable[[Piece], int],
        split: Split,
        epoch: int,
    ) -> Iterator[Piece]:
        """Yield the items of `read`. When a connection breaks, read again and skip the part that was yielded already,
        measured by `size`."""
        start, bytes_done, sizes_done = (self._read, self._local), 0, 0
        self._at = f"{_describe(split)} in epoch {epoch}"
        for attempt in range(1, TRIES + 1):
            try:
                fs = self._filesystem(split)
                for item in skip_first(read(fs, split), sizes_done, size):
                    sizes_done, bytes_done = sizes_done + size(item), bytes_done + len(item)
                    self._count(start, split, bytes_done)
                    yield item
                break
            except ConnectionBroken as error:
                if attempt == TRIES:
                    raise _with_split(error, split) from error
                self._verified_uri = ""
            except HowdahError as error:
                raise _with_split(error, split) from error
            except Exception as error:  # of a library, or of a user's own reader
                raise StagingError(f"{_describe(split)}: {type(error).__name__}: {error}") from error
        self._count(start, split, split.length)

    def _count(self, start: tuple[int, int], split: Split, done: int) -> None:
        """Count the bytes of a split that were read. A compressed split yields more bytes than its length, so it counts
        as read before its end."""
        done = min(done, split.length)
        is_local = uris.split(split.uri)[0] == "file" or any(host in self._names for host in split.hosts)
        self._read, self._local = start[0] + done, start[1] + (done if is_local else 0)

    def _filesystem(self, split: Split) -> FileSystem:
        """Return the file system of the split, after a check that the file is still the one that was cut.

        Raises:
            StagingError: the file is gone, or it has changed.
        """
        if self._verified_uri != split.uri:
            verify_unchanged(FileCopy("", split.uri, split.size, split.modified_ms, split.etag))
            self._verified_uri = split.uri
        return filesystem(split.uri)


def _describe(split: Split) -> str:
    return f"{split.uri}, bytes {split.start} to {split.start + split.length}"


def _with_split(error: HowdahError, split: Split) -> HowdahError:
    """Return an error that names the split."""
    return error if split.uri in str(error) else StagingError(f"{_describe(split)}: {error}")


def skip_first(items: Iterable[Piece], skip: int, size: Callable[[Piece], int]) -> Iterator[Piece]:
    """Yield the items without the first `skip`, measured by `size`; an item may be cut."""
    for item in items:
        if skip and skip >= size(item):
            skip -= size(item)
        elif skip:
            yield item[skip:]
            skip = 0
        else:
            yield item


def shuffle_in_window(records: Iterable[Piece], window: int, rng: random.Random) -> Iterator[Piece]:
    """Yield the records in random order: each is chosen from `window` records that are held."""
    held: list[Piece] = []
    size = 0
    for record in records:
        if len(held) < window and size < WINDOW_BYTES:
            held.append(record)
            size += len(record)
            continue
        chosen = int(rng.random() * len(held))
        yield held[chosen]
        size += len(record) - len(held[chosen])
        held[chosen] = record
    rng.shuffle(held)
    yield from held
