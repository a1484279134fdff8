"""Makes whatever fsspec reaches (S3, GCS, memory, …) a FileSystem. Object stores have no real directories."""

from __future__ import annotations

import contextlib
import datetime
import errno
import http
import io
import posixpath
import threading
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from howdah.errors import HowdahError, StagingError
from howdah.localfiles.file_errors import explain
from howdah.spec import uris
from howdah.spec.job import SUCCESS
from howdah.storage import progress
from howdah.storage.filesystem import ConnectionBroken, Entry, FileSystem, Sink
from howdah.storage.linked_tree import LeftOut
from howdah.storage.local import expand_braces

_TRANSIENT = {errno.EBUSY, errno.ETIMEDOUT, errno.ECONNREFUSED, errno.ECONNRESET}
"""The answers of an overloaded store, and the errors of connections to it."""
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "oss"}
_SAME_SCHEMES = {"s3a": "s3", "gcs": "gs", "az": "abfs"}
_one_creates = threading.Lock()


class FsspecFileSystem(FileSystem):
    """The file system of one URI's scheme and authority. Object stores rename by copying: slow, and not atomic."""

    def __init__(self, uri: str, fs: Any = None) -> None:
        self._fs: Any = fs or _open_filesystem(uri)
        self._scheme = uris.split(uri)[0]

    def stat(self, uri: str) -> Entry | None:
        with _translate_errors(uri):
            try:
                return self._entry(self._fs.info(uri))
            except FileNotFoundError:
                return None

    def children(self, directory: str) -> list[Entry]:
        with _translate_errors(directory):
            return sorted(map(self._entry, self._fs.ls(directory, detail=True)), key=lambda entry: entry.uri)

    def walk(self, directory: str) -> Iterator[Entry]:
        with _translate_errors(directory):
            found = self._fs.find(directory, detail=True)
            if not found and not self._fs.exists(directory):
                raise FileNotFoundError(directory)
            yield from map(self._entry, found.values())

    def list_tree(self, directory: str, left_out: LeftOut, skip_unreadable: bool = False) -> Iterator[Entry]:
        if self._scheme in _OBJECT_STORES:
            return self.walk(directory)
        with _translate_errors(directory):
            found = [self._entry(info) for info in self._fs.find(directory, withdirs=True, detail=True).values()]
        holding = {uris.normalize(uris.parent(entry.uri)) for entry in found}
        return (entry for entry in found if not entry.is_dir or uris.normalize(entry.uri) not in holding)

    def glob(self, pattern: str) -> list[Entry]:
        with _translate_errors(pattern):
            # fsspec takes braces for letters of a name.
            found = {
                key: info for each in expand_braces(pattern) for key, info in self._fs.glob(each, detail=True).items()
            }
            return [self._entry(info) for _, info in sorted(found.items())]

    def open_read(self, uri: str) -> BinaryIO:
        with _translate_errors(uri):
            return self._fs.open(uri, "rb")  # type: ignore[no-any-return]

    def iter_chunks(self, uri: str, start: int = 0) -> Iterator[bytes]:
        with _translate_errors(uri):
            yield from super().iter_chunks(uri, start)

    def create(self, uri: str, mode: int = 0o644) -> Sink:
        with _translate_errors(uri):
            return _Sink(self._fs.open(uri, "wb"), uri)

    def resolve(self, uri: str) -> str:
        scheme, authority, path = uris.split(uris.normalize(uri))
        return uris.build(_SAME_SCHEMES.get(scheme, scheme), authority, path)

    def appends_cheaply(self, uri: str) -> bool:
        return self._scheme not in _OBJECT_STORES

    def moves_at_once(self, uri: str) -> bool:
        return self._scheme not in _OBJECT_STORES

    def create_new(self, uri: str, data: bytes, mode: int = 0o600) -> bool:
        """Write the object in one request, which S3, GCS and Azure refuse if there is one of this name. For other
        stores fsspec asks first and then writes; there, only one of the callers in this process gets True. On a store
        that does not know the condition the object is written without it."""
        with _translate_errors(uri), _one_creates:
            try:
                self._fs.pipe_file(uri, data, mode="create")
            except FileExistsError:
                return False
            except Exception as error:
                if isinstance(error, OSError) and _is_precondition_failure(error):
                    return False
                if not _is_not_known(error):
                    raise
                self._fs.pipe_file(uri, data)
        return True

    def read_bytes(self, uri: str) -> bytes:
        """Read an object by one request: opening it takes another one."""
        with _translate_errors(uri):
            return bytes(self._fs.cat_file(uri))

    def write_bytes(self, uri: str, data: bytes, mode: int = 0o644) -> None:
        """Write an object by one request: an object appears whole, and replaces the one before it at once."""
        if self._scheme not in _OBJECT_STORES:
            return super().write_bytes(uri, data, mode)
        with _translate_errors(uri):
            self._fs.pipe_file(uri, data)

    def append(self, uri: str, data: bytes) -> None:
        with _translate_errors(uri), self._fs.open(uri, "ab") as file:
            file.write(data)

    def mkdirs(self, directory: str, mode: int = 0o755) -> None:
        """Make a directory. An object store has none; fsspec would make a bucket there if its name was misspelt."""
        if self._scheme not in _OBJECT_STORES:
            with _translate_errors(directory):
                self._fs.makedirs(directory, exist_ok=True)

    def signed_url(self, uri: str, valid_s: int) -> str:
        with _translate_errors(uri):
            fs = self._fs
            if self._scheme in ("s3", "s3a"):  # botocore's own choice is version 2, which newer buckets refuse
                fs = type(fs)(
                    **{**fs.storage_options, "config_kwargs": {"signature_version": "s3v4", **fs.config_kwargs}}
                )
            try:
                return str(fs.sign(uri, expiration=valid_s))
            except NotImplementedError:
                return super().signed_url(uri, valid_s)

    def rename(self, old: str, new: str, overwrite: bool = False) -> None:
        if not overwrite and self.exists(new):
            raise StagingError(f"{new}: exists already")
        with _translate_errors(new):
            if self._scheme in _OBJECT_STORES:  # a copy replaces an object at once
                self._move_all(old, new)
                return
            if overwrite and self._fs.exists(new):
                if self._fs.isdir(new):
                    raise StagingError(f"{new}: exists already")
                self._remove(new)
            if _is_pattern(old) or _is_pattern(new):
                self._move_all(old, new)
            else:
                self._fs.mv(old, new, recursive=True)

    def _move_all(self, old: str, new: str) -> None:
        """Move files one by one: an object store has no directories, though a server may list some as if they were
        files. fsspec's own `mv` takes a name with `?` or `*` for a pattern. Files such as _SUCCESS, by which readers
        recognise a complete directory, are moved last, the directory's own _SUCCESS as the very last."""
        source = self._fs._strip_protocol(old)
        names = self._fs.find(old) or [source]

        def order(name: str) -> tuple[bool, bool, str]:
            return posixpath.basename(name).startswith("_"), name[len(source) :] == f"/{SUCCESS}", name

        for name in sorted(names, key=order):
            self._fs.cp_file(name, self._fs._strip_protocol(new) + name[len(source) :])
            progress.on_moved(name)
        with contextlib.suppress(FileNotFoundError):
            self._remove(old)

    def _remove(self, uri: str) -> None:
        """Remove a file or directory of exactly this name: fsspec's own `rm` removes everything that a name with `?`,
        `*` or `[` matches."""
        if not _is_pattern(uri):
            self._fs.rm(uri, recursive=True)
            return
        found = self._fs.find(uri, withdirs=True, detail=True)
        if not found and not self._fs.exists(uri):
            raise FileNotFoundError(uri)
        for name in sorted(found, reverse=True):
            if found[name].get("type") != "directory":
                self._fs.rm_file(name)
            elif self._scheme not in _OBJECT_STORES:
                self._fs.rmdir(name)

    def delete(self, uri: str) -> bool:
        with _translate_errors(uri):
            try:
                self._remove(uri)
            except FileNotFoundError:
                return False
        return True

    def delete_files(self, uris: Sequence[str]) -> None:
        """S3 removes a thousand objects by one request."""
        if self._scheme not in _OBJECT_STORES:
            super().delete_files(uris)
        elif uris:
            with _translate_errors(uris[0]), contextlib.suppress(FileNotFoundError):
                self._fs.rm([uri for uri in uris if not _is_pattern(uri)])
            super().delete_files([uri for uri in uris if _is_pattern(uri)])

    def chmod(self, uri: str, mode: int) -> None:
        """Do nothing: object stores have no permission bits."""

    def touch(self, uri: str) -> None:
        with _translate_errors(uri), contextlib.suppress(NotImplementedError):
            self._fs.touch(uri, truncate=False)

    def _entry(self, info: dict[str, Any]) -> Entry:
        changed = next((info[key] for key in ("mtime", "LastModified", "updated", "created") if info.get(key)), 0)
        if isinstance(changed, datetime.datetime):
            changed = changed.timestamp()
        modified_ms = int(float(changed) * 1000) if isinstance(changed, (int, float)) else 0
        uri = str(self._fs.unstrip_protocol(info["name"]))
        etag = str(info.get("ETag") or info.get("etag") or "").strip('"')
        return Entry(uri, int(info.get("size") or 0), modified_ms, info["type"] == "directory", etag=etag)


class _Sink(io.RawIOBase):
    """A file that fsspec writes: an object store reports a refusal only when the file is closed."""

    def __init__(self, file: Any, uri: str) -> None:
        self._file, self._uri = file, uri

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with _translate_errors(self._uri):
            return int(self._file.write(data))

    def close(self) -> None:
        if not self.closed:
            super().close()
            with _translate_errors(self._uri):
                self._file.close()


def _open_filesystem(uri: str) -> Any:
    try:
        import fsspec
    except ImportError:
        raise StagingError(f"{uri}: only hdfs:// and file:// work here; install fsspec for other schemes") from None
    try:
        return fsspec.core.url_to_fs(uri, use_listings_cache=False)[0]
    except (ValueError, ImportError) as error:
        why = f" ({error.__cause__})" if isinstance(error.__cause__, ImportError) else ""
        raise StagingError(f"{uri}: {error}{why}") from error


def _is_pattern(uri: str) -> bool:
    """Return whether fsspec takes a name for a pattern."""
    return any(letter in uri for letter in "*?[")


def _is_precondition_failure(error: OSError) -> bool:
    """Return whether a store has refused to create an object that exists: s3fs recognises only the answer of AWS."""
    response = getattr(error.__cause__, "response", None) or {}
    return response.get("Error", {}).get("Code") in ("PreconditionFailed", "412")


def _is_not_known(error: Exception) -> bool:
    """Return whether a store, or its library, does not know the condition: ossfs passes it on as an argument that no
    function accepts."""
    return (
        isinstance(error, (TypeError, NotImplementedError))
        or (isinstance(error, OSError) and error.errno == errno.ENOSYS)
        or getattr(error, "code", 0) == http.HTTPStatus.NOT_IMPLEMENTED
    )


@contextlib.contextmanager
def _translate_errors(uri: str) -> Iterator[None]:
    try:
        yield
    except HowdahError:
        raise
    except OSError as error:
        if error.errno in _TRANSIENT:
            raise ConnectionBroken(f"{uri}: {error}") from error
        raise explain(error, uri) from error
    except Exception as error:
        raise ConnectionBroken(f"{uri}: {error or type(error).__name__}") from error
