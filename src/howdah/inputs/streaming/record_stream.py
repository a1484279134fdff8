"""The records of a task's streams, as blocks of bytes: pass by pass, in the order that the seed determines.

The same task reads the same bytes in the same order whenever it is started again; another epoch or task has another
order, if the input is shuffled at all.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from howdah.errors import HowdahError, StagingError
from howdah.inputs import formats
from howdah.inputs.download import verify_unchanged
from howdah.inputs.formats import Piece
from howdah.spec import uris
from howdah.spec.staged import Feed, Split
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import ConnectionBroken, FileSystem
from howdah.wire.helper_messages import FileCopy

TRIES = 3
GATHER = 1 << 18
"""Records are handed on in blocks of about this many bytes."""
WINDOW_BYTES = 256 << 20
"""Records are shuffled among as many as `window` says, but never hold more memory than this."""


@dataclass(frozen=True)
class ReadPosition:
    """Where the stream stands: bytes of the splits that have been read, those of them on this node, and in words."""

    bytes: int = 0
    local: int = 0
    at: str = ""


class RecordStream:
    """All passes over `feeds` by `task`; iterate once. `names` are those of this node, where blocks are listed.

    The inputs follow each other within an epoch, in their order; one with fewer epochs drops out. `bytes` is the sum of
    all splits of all epochs, 0 when one has no end.
    """

    def __init__(self, feeds: Sequence[Feed], task: str, names: Collection[str] = ()) -> None:
        self._feeds, self._task, self._names = feeds, task, names
        endless = any(feed.epochs == 0 for feed in feeds)
        self.bytes = 0 if endless else sum(feed.epochs * split.length for feed in feeds for split in feed.splits)
        self._read = self._local = 0
        self._at = ""
        self._looked_at = ""

    def __iter__(self) -> Iterator[tuple[Piece, ReadPosition]]:
        """Blocks, each with where the stream stands after it.

        Raises:
            StagingError, EngineUnavailable: a split can't be read whole; the message says which.
        """
        for epoch in itertools.count(1):
            current = [feed for feed in self._feeds if feed.epochs == 0 or epoch <= feed.epochs]
            something = False
            for feed in current:
                for block in self._pass(feed, epoch):
                    something = True
                    yield block
            if not something and not any(feed.epochs > epoch for feed in self._feeds):
                return  # the epochs are over, or without end over nothing

    def _pass(self, feed: Feed, epoch: int) -> Iterator[tuple[Piece, ReadPosition]]:
        self._looked_at = ""  # the files may have changed since the pass before
        chance = random.Random(f"{feed.seed}/{feed.number}/{self._task}/{epoch}")  # noqa: S311
        splits = list(feed.splits)
        if feed.shuffle:
            chance.shuffle(splits)
        reader = formats.reader(feed.format, feed.options)
        if epoch == 1 and splits and (prologue := reader.prologue(filesystem(splits[0].uri), splits[0])):
            yield prologue, self.place()
        if not feed.window:
            for split in splits:
                for block in self._read_split(reader.blocks, len, split, epoch):
                    yield block, self.place()
            return
        each = (record for split in splits for record in self._read_split(reader.records, _one, split, epoch))
        for block in gathered(mixed(each, feed.window, chance)):
            yield block, self.place()

    def place(self) -> ReadPosition:
        """Where the stream stands, as far as it has been iterated."""
        share = f", {self._read / self.bytes:.0%} of all" if self.bytes else ""
        return ReadPosition(self._read, self._local, f"{self._at}{share}")

    def _read_split(
        self,
        read: Callable[[FileSystem, Split], Iterator[Piece]],
        size: Callable[[Piece], int],
        split: Split,
        epoch: int,
    ) -> Iterator[Piece]:
        """What `read` gives, gone on with where the connection broke, by `size`s."""
        begun, done, given = (self._read, self._local), 0, 0
        self._at = f"{where(split)} in epoch {epoch}"
        for attempt in range(1, TRIES + 1):
            try:
                fs = self._filesystem(split)
                for item in after(read(fs, split), given, size):
                    given, done = given + size(item), done + len(item)
                    self._count(begun, split, done)
                    yield item
                break
            except ConnectionBroken as error:
                if attempt == TRIES:
                    raise named(error, split) from error
                self._looked_at = ""
            except HowdahError as error:
                raise named(error, split) from error
            except Exception as error:  # of a library, or of somebody's own reader
                raise StagingError(f"{where(split)}: {type(error).__name__}: {error}") from error
        self._count(begun, split, split.length)

    def _count(self, begun: tuple[int, int], split: Split, done: int) -> None:
        """More comes out of a compressed split than its length: then it counts as read before it is."""
        done = min(done, split.length)
        is_local = uris.split(split.uri)[0] == "file" or any(host in self._names for host in split.hosts)
        self._read, self._local = begun[0] + done, begun[1] + (done if is_local else 0)

    def _filesystem(self, split: Split) -> FileSystem:
        """Return the file system of the split, after a check that the file is still the one that was cut.

        Raises:
            StagingError: it is not there any more, or it has changed.
        """
        if self._looked_at != split.uri:
            verify_unchanged(FileCopy("", split.uri, split.size, split.modified_ms, split.etag))
            self._looked_at = split.uri
        return filesystem(split.uri)


def where(split: Split) -> str:
    """A split in words."""
    return f"{split.uri}, bytes {split.start} to {split.start + split.length}"


def named(error: HowdahError, split: Split) -> HowdahError:
    """The error, saying which split it is about."""
    return error if split.uri in str(error) else StagingError(f"{where(split)}: {error}")


def after(items: Iterable[Piece], skip: int, size: Callable[[Piece], int]) -> Iterator[Piece]:
    """The items without those, or that part of one, that the first `skip` are, measured by `size`."""
    for item in items:
        if skip and skip >= size(item):
            skip -= size(item)
        elif skip:
            yield item[skip:]
            skip = 0
        else:
            yield item


def mixed(each: Iterable[Piece], window: int, chance: random.Random) -> Iterator[Piece]:
    """The records in another order: each is one out of `window` that are held, chosen by chance."""
    held: list[Piece] = []
    size = 0
    for record in each:
        if len(held) < window and size < WINDOW_BYTES:
            held.append(record)
            size += len(record)
            continue
        place = int(chance.random() * len(held))
        yield held[place]
        size += len(record) - len(held[place])
        held[place] = record
    chance.shuffle(held)
    yield from held


def gathered(each: Iterable[Piece]) -> Iterator[Piece]:
    """Records joined into blocks: a write for each would cost more than reading it."""
    block = bytearray()
    for record in each:
        block += record
        if len(block) >= GATHER:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)


def _one(_: Piece) -> int:
    return 1
