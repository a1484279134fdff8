"""`FileSystem`: one interface for files on HDFS, on this machine and on whatever fsspec reaches.

A reader never sees half a file: a file is written under another name, and renamed when it is complete. Errors are
howdah's own: StagingError for the file, EngineUnavailable for a file system that does not answer.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol

from howdah.errors import StagingError
from howdah.localfiles.file_errors import explain
from howdah.spec import uris
from howdah.storage.linked_tree import LeftOut

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

Buffer = bytes | memoryview
CHUNK = 1 << 20
"""Bytes per read. HDFS reads open a block stream each: 1 to 8 MiB are four times as fast as 64 KiB or 64 MiB."""
MAX_NAME_BYTES = 255
"""The longest name that Linux and HDFS take."""
_MAX_KEPT_BYTES = 200
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.part", re.DOTALL)


class ConnectionBroken(StagingError):
    """The connection broke in the middle of a file; the same call may succeed if it is repeated."""


class NoSpace(StagingError):
    """The file system or the directory's quota is full; the call may succeed once a user makes room."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file or directory."""

    uri: str
    """Its URI."""
    size: int
    """Its size in bytes."""
    modified_ms: int
    """When it was last written, in epoch milliseconds; 0: not known."""
    is_dir: bool = False
    """It is a directory."""
    owner: str = ""
    """The user that owns it."""
    group: str = ""
    """The group that owns it."""
    mode: int = 0
    """The permission bits."""
    accessed_ms: int = 0
    """When it was last read, in epoch milliseconds; 0: not known."""
    block_size: int = 0
    """Size of its blocks in bytes; 0: it has no blocks."""
    etag: str = ""
    """The entity tag that an object store gives its content."""
    places: object = field(default=None, repr=False, compare=False)
    """Block locations, for the file system that returned this entry."""

    @property
    def may_be_open(self) -> bool:
        """Return whether a writer may have the file open, and may have flushed more than `size` bytes.

        HDFS counts only the full blocks of an open file, and both its times are that of its creation; closing the file
        changes one of them.
        """
        if self.is_dir or not self.block_size:
            return False
        return self.size % self.block_size == 0 or self.modified_ms == self.accessed_ms


Check = Callable[[int], object]
"""A function that is called with the bytes copied so far, and raises an error if the copy is to end."""


def go_on(_: int) -> None:
    """Raise nothing, so that the copy goes on."""


class Sink(Protocol):
    """A file that is being written. `close` completes it; a sink that is never closed leaves a file to delete."""

    def write(self, data: bytes | memoryview, /) -> object: ...

    def close(self) -> object: ...


class FileSystem(ABC):
    """A file system, whose calls take its URIs. Several threads may use it, also after a fork."""

    @abstractmethod
    def stat(self, uri: str) -> Entry | None:
        """Return the file or directory at `uri`; None when there is none."""

    @abstractmethod
    def children(self, directory: str) -> list[Entry]:
        """Return the entries of a directory, sorted by name; of a file, the file's own entry."""

    @abstractmethod
    def walk(self, directory: str) -> Iterator[Entry]:
        """Yield every file below a directory, in no order."""

    def list_tree(self, directory: str, left_out: LeftOut, skip_unreadable: bool = False) -> Iterator[Entry]:
        """Yield every file below a directory, with links followed, and every empty directory below it.

        `left_out` is called with the path of anything that can't be followed or copied, and the reason. With
        `skip_unreadable` it is also called for a directory of this machine that can't be listed, instead of a
        StagingError. Object stores have no empty directories, and no links.
        """
        return self.walk(directory)

    @abstractmethod
    def glob(self, pattern: str) -> list[Entry]:
        """Return the files and directories that match, sorted. A pattern has `*`, `?`, `[ab]` and `{a,b}`."""

    @abstractmethod
    def open_read(self, uri: str) -> BinaryIO:
        """Open a file for reading: seekable, and buffered so that small reads are cheap."""

    @abstractmethod
    def create(self, uri: str, mode: int = 0o644) -> Sink:
        """Create or replace a file in place. Use `writing` for files that other processes read."""

    @abstractmethod
    def append(self, uri: str, data: bytes) -> None:
        """Append to a file, creating it if needed; on return the bytes are visible to readers."""

    def appends_cheaply(self, uri: str) -> bool:
        """Return whether the cost of `append` depends only on the appended bytes. If `append` writes the whole file
        again, as on an object store, logs are kept in segments (`howdah.storage.segmented_log`)."""
        return True

    def moves_at_once(self, uri: str) -> bool:
        """Return whether `rename` moves a directory in one step. An object store copies its files, then removes them:
        an interruption leaves all files at the old place or all at the new one, and the same call with `overwrite`
        finishes the move."""
        return True

    def create_new(self, uri: str, data: bytes, mode: int = 0o600) -> bool:
        """Write a small file as a whole, unless there is a file of this name; return whether it was written.

        Of several callers at the same time only one gets True. An object store ensures that itself (`If-None-Match:
        *`). A store that ignores the condition gives True to several callers, and keeps the last file. After an error
        the file may have been written, or may still be written.
        """
        temporary = uris.join(uris.parent(uri), temporary_name(uris.name(uri)))
        try:
            with self._removing_on_error(temporary, uri):
                self.write_in_place(temporary, data, mode)
                self.rename(temporary, uri)
        except StagingError:
            if not self.exists(uri):
                raise
            return False
        return True

    def recover_lease(self, uri: str) -> None:  # noqa: B027 - most file systems know no such thing
        """Close a file whose writer died: only then can all of it be read, or appended to."""

    @abstractmethod
    def mkdirs(self, directory: str, mode: int = 0o755) -> None:
        """Make a directory and its parents; an existing one stays as it is."""

    def signed_url(self, uri: str, valid_s: int) -> str:
        """Return a URL by which anyone who has it can read a file for a while, without other credentials.

        Raises:
            StagingError: the file system has no such URLs, or the credentials here cannot sign one.
        """
        raise StagingError(f"{uri}: its file system has no signed URLs")

    @abstractmethod
    def rename(self, old: str, new: str, overwrite: bool = False) -> None:
        """Move a file or directory atomically; an existing `new` is refused, or a file replaced with `overwrite`."""

    @abstractmethod
    def delete(self, uri: str) -> bool:
        """Remove a file or a whole directory; return whether there was one."""

    def delete_files(self, uris: Sequence[str]) -> None:
        """Remove several files in as few calls as possible; one that is not there is no error."""
        for uri in uris:
            self.delete(uri)

    @abstractmethod
    def chmod(self, uri: str, mode: int) -> None:
        """Set the permission bits of a file or directory."""

    @abstractmethod
    def touch(self, uri: str) -> None:
        """Set the access time of a file to now; its modification time stays."""

    def iter_chunks(self, uri: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file's bytes from `start` on, in order, in chunks of at most CHUNK: the quickest way to copy them."""
        with self.open_read(uri) as file:
            file.seek(start)
            while data := file.read(CHUNK):
                yield data

    def copy_to(self, entry: Entry, start: int, take: Callable[[Sequence[Buffer]], object]) -> None:
        """Pass a file's bytes from `start` on to `take`, in order, in chunks of about CHUNK.

        This is quicker than `iter_chunks`, because the reading thread calls `take`. A view is valid until `take`
        returns.
        """
        for piece in self.iter_chunks(entry.uri, start):
            take([piece])

    def stat_flushed(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the same files with the sizes that their writers have flushed by now, which a listing may not know.
        `iter_chunks` and `copy_to` read up to these sizes, too."""
        return list(entries)

    def why_not_flushed(self) -> str:
        """Return, for people, why `stat_flushed` knows no more than a listing; "" if it does."""
        return ""

    def prefetch_stats(self, uris: Sequence[str]) -> dict[str, Entry]:
        """Return the entries that can be found cheaply of files that will be read next: of all, some or none of
        them."""
        return {}

    def resolve(self, uri: str) -> str:
        """Return the URI of the same file, whether it exists or not, with all links and mounts followed."""
        return uris.normalize(uri)

    def exists(self, uri: str) -> bool:
        """Return whether there is a file or directory at `uri`."""
        return self.stat(uri) is not None

    def head(self, uri: str, max_bytes: int) -> bytes:
        """Return the first bytes of a file, or all of a short one, in as few calls as possible."""
        with self.open_read(uri) as file:
            return file.read(max_bytes)

    def read_bytes(self, uri: str) -> bytes:
        """Return the content of a small file."""
        with self.open_read(uri) as file:
            return file.read()

    @contextlib.contextmanager
    def writing(self, uri: str, mode: int = 0o644, replace: bool = True) -> Iterator[Sink]:
        """Write a file that appears when the block ends, or not at all when it ends by an exception.

        Without `replace` a file that another process has put there in the meantime stays as it is.
        """
        temporary = uris.join(uris.parent(uri), temporary_name(uris.name(uri)))
        with self.writing_beside(uri, temporary, mode) as sink:
            yield sink
        with self._removing_on_error(temporary, uri):
            self._reveal(temporary, uri, replace)

    @contextlib.contextmanager
    def writing_beside(self, uri: str, temporary: str, mode: int = 0o644) -> Iterator[Sink]:
        """Write to `temporary`, which becomes the file at `uri` by a rename. If the block ends by an exception, nothing
        stays."""
        sink: Sink | None = None
        with self._removing_on_error(temporary, uri):
            try:
                sink = self.create(temporary, mode)
                yield sink
                sink.close()
            except BaseException:
                if isinstance(sink, io.IOBase):
                    with contextlib.suppress(Exception):
                        sink.close()
                raise

    @contextlib.contextmanager
    def _removing_on_error(self, temporary: str, uri: str) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            with contextlib.suppress(Exception):
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

    def write_in_place(self, uri: str, data: bytes, mode: int = 0o644) -> None:
        """Write a small file directly at its place. If the writer dies meanwhile, the beginning of the file is left,
        and no file of another name."""
        sink = self.create(uri, mode)
        try:
            sink.write(data)
        except BaseException:
            if isinstance(sink, io.IOBase):
                sink.close()
            raise
        sink.close()

    def put(self, path: str | os.PathLike[str], uri: str, mode: int = 0o644, check: Check = go_on) -> int:
        """Copy a local file to `uri`; return its size in bytes. `check` is called before each chunk, with the number of
        bytes written so far; if it raises an error, the copy ends and nothing is left of it."""
        with open_local(path) as source, self.writing(uri, mode) as sink:
            return copy(source, sink, check)

    def get(self, uri: str, path: str | os.PathLike[str]) -> int:
        """Copy a file to a local file, which appears when it is complete; return its size in bytes."""
        temporary = str(Path(path).with_name(temporary_name(Path(path).name)))
        try:
            with self.open_read(uri) as source, open_local(temporary, "wb") as target:
                size = copy(source, target)
            Path(temporary).replace(path)
        except BaseException as error:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            if isinstance(error, StagingError):
                raise type(error)(str(error).replace(temporary, os.fspath(path))) from error
            raise
        return size


def mode_of_copy(source: str | int, uri: str) -> int:
    """Return the permission bits for a copy, at `uri`, of a local file, which is given by its path or descriptor. On
    this machine they are the file's own, which may be private. Elsewhere, where the umask of a program means nothing,
    they are those of any other file, with the right to execute if the file has it."""
    try:
        own = os.stat(source).st_mode & 0o777  # noqa: PTH116 - a descriptor has no path
    except OSError:  # the copy will say so
        return 0o644
    return own if uris.split(uri)[0] == "file" else 0o644 | (own & 0o111)


def make_directory_like(fs: FileSystem, path: str, uri: str, is_top: bool = False) -> None:
    """Make the directory at `uri`, for a copy of the local directory at `path`, and its parents.

    On this machine it gets the permission bits of `path`, which may be private; so does each missing parent that has
    the name of a parent of `path`. `is_top` says that the copy may have another name. Existing directories stay as they
    are.
    """
    found = fs.stat(uri) if uris.split(uri)[0] == "file" else None
    if uris.split(uri)[0] != "file" or (found is not None and not found.is_dir):
        fs.mkdirs(uri)
    elif found is None:
        is_copy = is_top or os.path.basename(path) == uris.name(uri)  # noqa: PTH119 - a data set may have many
        if is_copy and not is_top:
            make_directory_like(fs, os.path.dirname(path), uris.parent(uri))  # noqa: PTH120
        mode = 0o755
        with contextlib.suppress(OSError):  # removed since a file in it was opened
            mode = os.stat(path).st_mode & 0o777 | 0o700 if is_copy else mode  # noqa: PTH116
        fs.mkdirs(uris.parent(uri))
        fs.mkdirs(uri, mode)


def mode_of_download(entry: Entry) -> int:
    """Return the permission bits for a copy, on this machine, of a file. For a file of this machine they are its own.
    For any other file, its owner may read and write the copy, and others have the same rights as on the other file
    system. Object stores have no such bits."""
    if uris.split(entry.uri)[0] == "file":
        return entry.mode & 0o777
    return 0o600 | (entry.mode & 0o177) if entry.mode else 0o666


def temporary_name(name: str) -> str:
    """Return the name under which a file is written before it gets `name`, which may have the greatest possible
    length."""
    return f".{shorten(name, _MAX_KEPT_BYTES)}.{secrets.token_hex(4)}.part"


def is_temporary_name(name: str) -> bool:
    """Return whether a name is one that `temporary_name` gives."""
    return bool(_TEMPORARY.fullmatch(name))


def shorten(name: str, max_bytes: int) -> str:
    """Return the first `max_bytes` bytes of a name at most; a short name is returned as it is."""
    encoded = os.fsencode(name)
    return name if len(encoded) <= max_bytes else encoded[:max_bytes].decode("utf-8", "ignore")


def copy(source: BinaryIO, sink: Sink, check: Check = go_on) -> int:
    """Copy the rest of `source`, CHUNK at a time; return the number of bytes."""
    size = 0
    while data := source.read(CHUNK):
        check(size)
        try:
            sink.write(data)
        except OSError as error:
            raise explain(error, getattr(sink, "name", "")) from error
        size += len(data)
    return size


class LocalFile(io.FileIO):
    """A file of this machine, without a buffer. On a full disk the system writes only the beginning and reports no
    error: here `write` writes everything or raises a StagingError, as `close` does if the disk is another machine's."""

    def write(self, data: ReadableBuffer, /) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        with self._explained():
            while left:
                left = left[super().write(left) :]
        return size

    def close(self) -> None:
        with self._explained():
            super().close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise explain(error, os.fspath(self.name)) from error


def open_local(path: str | os.PathLike[str], mode: Literal["rb", "wb"] = "rb") -> LocalFile:
    """Open a local file without a buffer.

    Raises:
        StagingError: it cannot be opened.
    """
    try:
        return LocalFile(path, mode)
    except OSError as error:
        raise explain(error, os.fspath(path)) from error
