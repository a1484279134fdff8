"""Makes whatever fsspec reaches (S3, GCS, memory, …) a FileSystem. Object stores have no real directories."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from typing import Any, BinaryIO

from howdah.errors import HowdahError, StagingError
from howdah.localfiles.file_errors import explain
from howdah.spec import uris
from howdah.storage.filesystem import ConnectionBroken, Entry, FileSystem, Sink

_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "oss"}


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

    def glob(self, pattern: str) -> list[Entry]:
        with _translate_errors(pattern):
            return [self._entry(info) for _, info in sorted(self._fs.glob(pattern, detail=True).items())]

    def open_read(self, uri: str) -> BinaryIO:
        with _translate_errors(uri):
            return self._fs.open(uri, "rb")  # type: ignore[no-any-return]

    def iter_chunks(self, uri: str, start: int = 0) -> Iterator[bytes]:
        with _translate_errors(uri):
            yield from super().iter_chunks(uri, start)

    def create(self, uri: str, mode: int = 0o644) -> Sink:
        with _translate_errors(uri):
            return self._fs.open(uri, "wb")  # type: ignore[no-any-return]

    def append(self, uri: str, data: bytes) -> None:
        with _translate_errors(uri), self._fs.open(uri, "ab") as file:
            file.write(data)

    def mkdirs(self, directory: str, mode: int = 0o755) -> None:
        with _translate_errors(directory):
            self._fs.makedirs(directory, exist_ok=True)

    def rename(self, old: str, new: str, overwrite: bool = False) -> None:
        if not overwrite and self.exists(new):
            raise StagingError(f"{new}: exists already")
        with _translate_errors(new):
            if overwrite and self._fs.exists(new):
                self._fs.rm(new)
            if self._scheme in _OBJECT_STORES:
                self._move_all(old, new)
            else:
                self._fs.mv(old, new, recursive=True)

    def _move_all(self, old: str, new: str) -> None:
        """Move files one by one: an object store has no directories, though a server may list some as if they were
        files. fsspec's own `mv` takes a name with `?` or `*` for a pattern.
        """
        source = self._fs._strip_protocol(old)
        for name in self._fs.find(old) or [source]:
            self._fs.cp_file(name, self._fs._strip_protocol(new) + name[len(source) :])
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm(old, recursive=True)

    def delete(self, uri: str) -> bool:
        with _translate_errors(uri):
            try:
                self._fs.rm(uri, recursive=True)
            except FileNotFoundError:
                return False
        return True

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


@contextlib.contextmanager
def _translate_errors(uri: str) -> Iterator[None]:
    try:
        yield
    except HowdahError:
        raise
    except OSError as error:
        raise explain(error, uri) from error
    except Exception as error:
        raise ConnectionBroken(f"{uri}: {error or type(error).__name__}") from error
