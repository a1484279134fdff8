"""The one filesystem seam: a few calls on URIs, the same for HDFS, this machine and whatever fsspec reaches.

A reader never sees half a file: what is written appears under its name by a rename, when it is complete.
Errors are howdah's own: StagingError for the file, EngineUnavailable for a filesystem that does not answer.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from howdah.errors import StagingError
from howdah.localfiles.file_errors import explain
from howdah.spec import uris

Buffer = bytes | memoryview
CHUNK = 1 << 20
"""Bytes per read. HDFS reads open a block stream each: 1 to 8 MiB are four times as fast as 64 KiB or 64 MiB."""


class ConnectionBroken(StagingError):
    """The connection broke in the middle of a file: the same call may succeed when it is made again."""


class NoSpace(StagingError):
    """The file system is full, or the directory's quota: somebody may make room."""


@dataclass(frozen=True)
class Entry:
    """A file or directory. `size` in bytes, times in epoch milliseconds (0: not known), `mode` the permission bits,
    `block_size` bytes (0: it has no blocks).

    `etag` is the mark that an object store gives a file's content. `places` is for the file system that it is from.
    """

    uri: str
    size: int
    modified_ms: int
    is_dir: bool = False
    owner: str = ""
    group: str = ""
    mode: int = 0
    accessed_ms: int = 0
    block_size: int = 0
    etag: str = ""
    places: object = field(default=None, repr=False, compare=False)

    @property
    def may_be_open(self) -> bool:
        """Whether somebody may be writing it who has flushed more than `size`.

        Of an open file HDFS counts the full blocks, and its times are both that of its making; closing sets one.
        """
        if self.is_dir or not self.block_size:
            return False
        return self.size % self.block_size == 0 or self.modified_ms == self.accessed_ms


class Sink(Protocol):
    """A file being written. `close` makes it complete; a sink that is dropped instead leaves rubbish to delete."""

    def write(self, data: bytes | memoryview, /) -> object: ...

    def close(self) -> object: ...


class FileSystem(ABC):
    """Calls take URIs of this filesystem. Safe to use from several threads, and after a fork."""

    @abstractmethod
    def stat(self, uri: str) -> Entry | None:
        """What is there; None when nothing is."""

    @abstractmethod
    def children(self, directory: str) -> list[Entry]:
        """What lies directly in it, by name; a file gives itself."""

    @abstractmethod
    def walk(self, directory: str) -> Iterator[Entry]:
        """Every file below it, in no order."""

    @abstractmethod
    def glob(self, pattern: str) -> list[Entry]:
        """Files and directories that match, sorted; `*`, `?`, `[ab]`, `{a,b}`. No match is an empty list."""

    @abstractmethod
    def open_read(self, uri: str) -> BinaryIO:
        """Read it, seekable, buffered so that small reads are cheap."""

    @abstractmethod
    def create(self, uri: str, mode: int = 0o644) -> Sink:
        """Write it in place, replacing what is there. For files that people read, use `writing`."""

    @abstractmethod
    def append(self, uri: str, data: bytes) -> None:
        """Add to its end, creating it; on return the bytes are visible to readers."""

    def recover_lease(self, uri: str) -> None:  # noqa: B027 - most file systems know no such thing
        """Make a file whole whose writer died while it was open: only then can all of it be read, or appended to."""

    @abstractmethod
    def mkdirs(self, directory: str, mode: int = 0o755) -> None:
        """Make it and its parents; nothing happens when it exists."""

    @abstractmethod
    def rename(self, old: str, new: str, overwrite: bool = False) -> None:
        """Move a file or directory, atomically; an existing `new` is refused, or if a file replaced on request."""

    @abstractmethod
    def delete(self, uri: str) -> bool:
        """Remove a file or a whole directory; whether there was one."""

    @abstractmethod
    def chmod(self, uri: str, mode: int) -> None:
        """Set its permission bits."""

    @abstractmethod
    def touch(self, uri: str) -> None:
        """Set its access time to now; its modification time stays."""

    def iter_chunks(self, uri: str, start: int = 0) -> Iterator[bytes]:
        """Its bytes from `start` on, in order, in pieces of at most CHUNK: the quickest way to move them elsewhere."""
        with self.open_read(uri) as file:
            file.seek(start)
            while data := file.read(CHUNK):
                yield data

    def copy_to(self, entry: Entry, start: int, take: Callable[[Sequence[Buffer]], object]) -> None:
        """Hand a file's bytes from `start` on to `take`, in order, in pieces of about CHUNK together: quicker still
        than `pieces`, for `take` is called by the thread that reads. A view is good until it returns."""
        for piece in self.iter_chunks(entry.uri, start):
            take([piece])

    def stat_flushed(self, entries: Sequence[Entry]) -> list[Entry]:
        """The same files with what their writers have flushed by now, which not every listing tells. `pieces` and
        `pour` give that, too."""
        return list(entries)

    def why_not_flushed(self) -> str:
        """Why `flushed` can tell no more than a listing, for people; "" where nothing is in its way."""
        return ""

    def prefetch_stats(self, uris: Sequence[str]) -> dict[str, Entry]:
        """What is known at little cost of files that will be read next: of all, of some or of none of them."""
        return {}

    def exists(self, uri: str) -> bool:
        """Whether something is there."""
        return self.stat(uri) is not None

    def head(self, uri: str, most: int) -> bytes:
        """The first bytes of a file: all of a short one, in as few questions as that takes."""
        with self.open_read(uri) as file:
            return file.read(most)

    def read_bytes(self, uri: str) -> bytes:
        """A small file's content."""
        with self.open_read(uri) as file:
            return file.read()

    @contextlib.contextmanager
    def writing(self, uri: str, mode: int = 0o644, replace: bool = True) -> Iterator[Sink]:
        """Write a file that appears when the block ends, or not at all when it ends by an exception.

        Without `replace` a file that somebody else has put there in the meantime stays as it is.
        """
        temporary = uris.join(uris.parent(uri), f".{uris.name(uri)}.{secrets.token_hex(4)}.part")
        sink: Sink | None = None
        try:
            sink = self.create(temporary, mode)
            yield sink
            sink.close()
            self._reveal(temporary, uri, replace)
        except BaseException as error:
            with contextlib.suppress(Exception):
                if isinstance(sink, io.IOBase):
                    sink.close()
                self.delete(temporary)
            if isinstance(error, StagingError):  # people know the file by its own name
                raise type(error)(str(error).replace(uris.path(temporary), uris.path(uri))) from error
            raise

    def _reveal(self, temporary: str, uri: str, replace: bool) -> None:
        try:
            self.rename(temporary, uri, overwrite=replace)
        except StagingError:
            if replace or not self.exists(uri):
                raise
            self.delete(temporary)

    def write_bytes(self, uri: str, data: bytes, mode: int = 0o644) -> None:
        """Write a small file, whole or not at all."""
        with self.writing(uri, mode) as sink:
            sink.write(data)

    def put(self, path: str | os.PathLike[str], uri: str, mode: int = 0o644) -> int:
        """Copy a file of this machine to `uri`; its size in bytes."""
        with readable(path) as source, self.writing(uri, mode) as sink:
            return copy(source, sink)

    def get(self, uri: str, path: str | os.PathLike[str]) -> int:
        """Copy it to a file of this machine, which appears when it is complete; its size in bytes."""
        temporary = f"{os.fspath(path)}.{secrets.token_hex(4)}.part"
        try:
            with self.open_read(uri) as source, writable(temporary) as target:
                size = copy(source, target)
            Path(temporary).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
        return size


def copy(source: BinaryIO, sink: Sink) -> int:
    """Move bytes to the end of `source`, CHUNK at a time; how many."""
    size = 0
    while data := source.read(CHUNK):
        _write(sink, data)
        size += len(data)
    return size


def _write(sink: Sink, data: bytes) -> None:
    try:
        sink.write(data)
    except OSError as error:
        raise explain(error, getattr(sink, "name", "")) from error


def readable(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file of this machine; StagingError when that can't be done."""
    try:
        return Path(path).open("rb", buffering=0)
    except OSError as error:
        raise explain(error, os.fspath(path)) from error


def writable(path: str) -> BinaryIO:
    """Open a file of this machine for writing; StagingError when that can't be done."""
    try:
        return Path(path).open("wb", buffering=0)
    except OSError as error:
        raise explain(error, path) from error


def filesystem(uri: str, conf_dir: str = "") -> FileSystem:
    """The filesystem that `uri` is on. `conf_dir` is Hadoop's configuration directory, else $HADOOP_CONF_DIR.

    Libraries are imported here, when a scheme first needs them: HDFS takes hdfs-native, others but `file` fsspec.

    Raises:
        StagingError: no library here knows the scheme.
        EngineUnavailable: the configuration can't be read, or names no such cluster.
    """
    scheme = uris.split(uri)[0]
    if scheme == "file":
        from howdah.storage.local import LocalFileSystem

        return LocalFileSystem()
    if scheme == "hdfs":
        from howdah.storage.hdfs import arrow_binding

        if arrow_binding.chosen():
            return arrow_binding.ArrowHdfsFileSystem(uris.root(uri))
        from howdah.storage.hdfs.client import HdfsFileSystem

        return HdfsFileSystem(uris.root(uri), conf_dir)
    if scheme == "viewfs":
        from howdah.storage.viewfs import ViewFileSystem

        return ViewFileSystem(uris.root(uri), conf_dir)
    from howdah.storage.fsspec_adapter import FsspecFileSystem

    return FsspecFileSystem(uri)
