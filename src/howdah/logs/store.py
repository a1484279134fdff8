"""Readers of the output of one attempt: through the master while the attempt runs, from its NodeManager, or from a
directory, which may be a copy of the engine's archive.

A NodeManager shows the logs of containers that have ended as long as their application runs, if it is asked for the end
of a file (`/ws/v1/node/containerlogs/CONTAINER/FILE?size=-N`): a few lines about the file, then its bytes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import urllib.parse
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from howdah.errors import HowdahError
from howdah.logs.stream_index import BOTH, STREAMS, TIMES, StreamIndex, read_both
from howdah.spec import uris

if TYPE_CHECKING:
    from howdah.wire.messages import LogChunk

PIECE_BYTES = 1 << 20
NODE_S = 10.0
"""Seconds after which a NodeManager that does not answer is given up."""
_INDEX_BYTES = 1 << 20
_LENGTH = re.compile(rb"LogLength:(\d+)\s*")
_CONTENTS = b"LogContents:"
_NO_LOG = "is not a file that a task has printed to"


class AttemptLogs(ABC):
    """Reads the output of one attempt."""

    @abstractmethod
    def read(self, stream: str, offset: int, limit: int) -> tuple[int, bytes]:
        """Return up to `limit` bytes of one stream, and the offset at which they begin; a negative `offset` counts from
        the end."""

    @abstractmethod
    def size(self, stream: str) -> int:
        """Return the size of a stream in bytes."""

    def index(self) -> StreamIndex:
        """Return the index of the streams; an empty one where there is none."""
        try:
            return StreamIndex.parse(self.read(TIMES, 0, _INDEX_BYTES)[1])
        except OSError:
            return StreamIndex()

    def pieces(self, stream: str) -> Iterator[bytes]:
        """Yield all bytes of a stream in pieces of bounded size."""
        end = 0
        while True:
            start, data = self.read(stream, end, PIECE_BYTES)
            if not data:
                return
            yield data
            end = start + len(data)


class LiveLogs(AttemptLogs):
    """Reads the output of a running attempt through its master: `ask(stream, offset, limit)` returns the answer."""

    def __init__(self, ask: Callable[[str, int, int], LogChunk]) -> None:
        self._ask = ask
        self._sizes: dict[str, int] = {}

    def read(self, stream: str, offset: int, limit: int) -> tuple[int, bytes]:
        answer = self._ask(stream, offset, limit)
        self._sizes[stream] = answer.size
        return answer.offset, answer.text.encode("latin-1")

    def size(self, stream: str) -> int:
        """Return the size of a stream in bytes at its last reading."""
        return self._sizes[stream] if stream in self._sizes else self._ask(stream, -1, 1).size


class StoredLogs(AttemptLogs):
    """Reads files that are not written any more. Every method raises OSError when a file does not exist, or its node
    does not answer."""

    def chunk(self, stream: str, offset: int, limit: int) -> tuple[int, int, bytes]:
        """Return (offset, size, bytes) of one stream, or of both as they were printed (`both`); a negative `offset`
        counts from the end."""
        if stream != BOTH:
            size = self.size(stream)
            offset = max(0, size + offset) if offset < 0 else min(offset, size)
            start, data = self.read(stream, offset, min(limit, size - offset))
            return start, size, data
        sizes = dict.fromkeys(STREAMS, 0)
        for name in STREAMS:
            with contextlib.suppress(FileNotFoundError):
                sizes[name] = self.size(name)
        start, data = read_both(self.index(), sizes, self.read, offset, limit)
        return start, sum(sizes.values()), data


def open_log(path: Path) -> BinaryIO:
    """Open a file with the output of a task, unbuffered. A program may have put something else there: a link to a file
    that only this process may read (say a history server), or a pipe that no process writes to.

    Raises:
        OSError: the path is no regular file.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.EINVAL, _NO_LOG, str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, _NO_LOG, str(path))
    return os.fdopen(file, "rb", buffering=0)


class DirectoryLogs(StoredLogs):
    """Reads logs in a directory of this machine; `paths` holds the files whose names differ from their stream's."""

    def __init__(self, path: Path, paths: Mapping[str, Path] | None = None) -> None:
        self.path, self._paths = path, paths or {}

    def _file(self, stream: str) -> Path:
        return self._paths.get(stream) or self.path / stream

    def size(self, stream: str) -> int:
        with open_log(self._file(stream)) as file:
            return os.fstat(file.fileno()).st_size

    def read(self, stream: str, offset: int, limit: int) -> tuple[int, bytes]:
        with open_log(self._file(stream)) as file:
            offset = offset if offset >= 0 else max(0, os.fstat(file.fileno()).st_size + offset)
            file.seek(offset)
            return offset, file.read(limit)


class RemoteLogs(StoredLogs):
    """Reads logs in the directory `uri` of another file system, to which an executor has copied them."""

    def __init__(self, uri: str) -> None:
        from howdah.storage.factory import filesystem  # where logs are in directories, nobody needs it

        self._uri, self._files = uri, filesystem(uri)

    def size(self, stream: str) -> int:
        with _errors_as_os_errors():
            entry = self._files.stat(uris.join(self._uri, stream))
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), uris.join(self._uri, stream))
        return entry.size

    def read(self, stream: str, offset: int, limit: int) -> tuple[int, bytes]:
        offset = offset if offset >= 0 else max(0, self.size(stream) + offset)
        with _errors_as_os_errors(), self._files.open_read(uris.join(self._uri, stream)) as file:
            file.seek(offset)
            return offset, file.read(limit)


@contextlib.contextmanager
def _errors_as_os_errors() -> Iterator[None]:
    try:
        yield
    except HowdahError as error:
        raise OSError(str(error)) from error


class NodeManagerLogs(StoredLogs):
    """Reads logs of a container that its NodeManager shows on its page `log_url`.

    Raises:
        ValueError: `log_url` is no such page.
    """

    def __init__(self, log_url: str) -> None:
        parts = urllib.parse.urlsplit(log_url)
        words = parts.path.strip("/").split("/")
        if parts.scheme not in ("http", "https") or words[:2] != ["node", "containerlogs"] or len(words) < 3:
            raise ValueError(f"{log_url} is not a NodeManager's log page")
        self._base = f"{parts.scheme}://{parts.netloc}/ws/v1/node/containerlogs/{words[2]}"

    def size(self, stream: str) -> int:
        body, length = self.open(stream, 1)
        body.close()
        return length

    def read(self, stream: str, offset: int, limit: int) -> tuple[int, bytes]:
        size = self.size(stream)
        offset = offset if offset >= 0 else max(0, size + offset)
        if offset >= size:
            return size, b""
        body, length = self.open(stream, size - offset)
        with contextlib.closing(body), http_errors_as_os_errors(self._base):
            return length - (size - offset), body.read(min(limit, size - offset))

    def open(self, stream: str, last: int) -> tuple[BinaryIO, int]:
        """Return a file that yields the last bytes of a stream, followed by some text of the node's; and the stream's
        size."""
        import http.client
        import urllib.request  # takes 30 ms, which only this call pays

        url, length = f"{self._base}/{stream}?size=-{last}", None
        with http_errors_as_os_errors(url), contextlib.ExitStack() as stack:
            answer: http.client.HTTPResponse = urllib.request.urlopen(url, timeout=NODE_S)  # noqa: S310
            stack.callback(answer.close)
            for line in iter(lambda: answer.readline(4096), b""):
                found = _LENGTH.fullmatch(line)
                length = int(found[1]) if found else length
                if line.startswith(_CONTENTS) and length is not None:
                    stack.pop_all()
                    return answer, length
        raise OSError(f"{url}: not the beginning of a log")


@contextlib.contextmanager
def http_errors_as_os_errors(url: str) -> Iterator[None]:
    """Raise OSError for an answer that is malformed or ends too early, as for every other error of reading."""
    import http.client

    try:
        yield
    except http.client.HTTPException as error:
        raise OSError(f"{url}: {error or type(error).__name__}") from None


def logs_of_attempt(directory: str, slug: str, attempt: int, log_url: str) -> StoredLogs:
    """Return the logs of an ended attempt of a running job: on its node if it has a `log_url`, else in the job's
    directory, of which `directory` is the URI.

    Raises:
        OSError: the logs are in neither.
    """
    if log_url:
        try:
            return NodeManagerLogs(log_url)
        except ValueError as error:
            raise OSError(str(error)) from None
    if not directory.startswith("file:"):
        return RemoteLogs(uris.join(directory, "tasks", slug, str(attempt)))
    path = Path(uris.path(directory), "tasks", slug, str(attempt))
    if not path.is_dir():
        raise FileNotFoundError(2, os.strerror(2), str(path))
    return DirectoryLogs(path)
