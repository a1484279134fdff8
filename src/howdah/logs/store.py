"""What an attempt printed, read from where it lies when nobody holds it open any more: a directory, or its node.

A NodeManager shows the logs of containers that have ended for as long as their application runs, to whoever asks for
the end of a file (`/ws/v1/node/containerlogs/CONTAINER/FILE?size=-N`): a few lines about the file, then its bytes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Protocol

from howdah.logs.stream_index import BOTH, STREAMS, TIMES, StreamIndex, read_both

NODE_S = 10.0
_INDEX_BYTES = 1 << 20
_LENGTH = re.compile(rb"LogLength:(\d+)\s*")
_CONTENTS = b"LogContents:"
_NO_LOG = "is no file that a task has printed to"


class StoredLog(Protocol):
    """Files of one attempt. Both methods raise OSError when there is no such file, or nobody answers."""

    def size(self, stream: str) -> int:
        """Bytes."""
        ...

    def read(self, stream: str, start: int, most: int) -> tuple[int, bytes]:
        """Some bytes, at most `most`, and where they begin."""
        ...


def open_log(path: Path) -> BinaryIO:
    """Open what a task has printed, unbuffered. A program may have put something else there: a link to a file that only
    the reader may read, say of a history server, or a pipe that nobody writes to.

    Raises:
        OSError: it is no regular file.
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


class DirectoryLogs:
    """Files of a directory of this machine; `paths` are those that have other names."""

    def __init__(self, path: Path, paths: Mapping[str, Path] | None = None) -> None:
        self.path, self._paths = path, paths or {}

    def _file(self, stream: str) -> Path:
        return self._paths.get(stream) or self.path / stream

    def size(self, stream: str) -> int:
        with open_log(self._file(stream)) as file:
            return os.fstat(file.fileno()).st_size

    def read(self, stream: str, start: int, most: int) -> tuple[int, bytes]:
        with open_log(self._file(stream)) as file:
            file.seek(start)
            return start, file.read(most)


class NodeManagerLogs:
    """Files of a container whose logs its NodeManager shows at `log_url`, a page of its own.

    Raises:
        ValueError: it is no such page.
    """

    def __init__(self, log_url: str) -> None:
        parts = urllib.parse.urlsplit(log_url)
        words = parts.path.strip("/").split("/")
        if parts.scheme not in ("http", "https") or words[:2] != ["node", "containerlogs"] or len(words) < 3:
            raise ValueError(f"no page of a node: {log_url}")
        self._base = f"{parts.scheme}://{parts.netloc}/ws/v1/node/containerlogs/{words[2]}"

    def size(self, stream: str) -> int:
        body, length = self.open(stream, 1)
        body.close()
        return length

    def read(self, stream: str, start: int, most: int) -> tuple[int, bytes]:
        whole = self.size(stream)
        if start >= whole:
            return whole, b""
        body, length = self.open(stream, whole - start)
        with contextlib.closing(body), broken_off(self._base):
            return length - (whole - start), body.read(min(most, whole - start))

    def open(self, stream: str, last: int) -> tuple[BinaryIO, int]:
        """Its last bytes, followed by a few words of the node's, and how long it is."""
        import http.client
        import urllib.request  # 30 ms that most have no use for

        url, length = f"{self._base}/{stream}?size=-{last}", None
        with broken_off(url), contextlib.ExitStack() as stack:
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
def broken_off(url: str) -> Iterator[None]:
    """What is no answer, or the half of one, is an error of reading as any other.

    Raises:
        OSError: it came.
    """
    import http.client

    try:
        yield
    except http.client.HTTPException as error:
        raise OSError(f"{url}: {error or type(error).__name__}") from None


def chunk(reader: StoredLog, stream: str, offset: int, limit: int) -> tuple[int, int, bytes]:
    """(offset, size, bytes) of one stream, or of both as they came; a negative offset counts from the end.

    Raises:
        OSError: it can't be read.
    """
    if stream != BOTH:
        size = reader.size(stream)
        offset = max(0, size + offset) if offset < 0 else min(offset, size)
        start, data = reader.read(stream, offset, min(limit, size - offset))
        return start, size, data
    sizes = {name: _size(reader, name) for name in STREAMS}
    start, data = read_both(order_of(reader), sizes, reader.read, offset, limit)
    return start, sum(sizes.values()), data


def order_of(reader: StoredLog) -> StreamIndex:
    """Its index; an empty one where there is none."""
    try:
        return StreamIndex.parse(reader.read(TIMES, 0, _INDEX_BYTES)[1])
    except OSError:
        return StreamIndex()


def _size(reader: StoredLog, stream: str) -> int:
    try:
        return reader.size(stream)
    except FileNotFoundError:
        return 0


def reader_of(directory: str, slug: str, attempt: int, log_url: str) -> StoredLog:
    """Of an attempt that has ended while its job goes on: on its node, or in the job's directory `directory` (a path).

    Raises:
        OSError: nobody knows where.
    """
    if log_url:
        try:
            return NodeManagerLogs(log_url)
        except ValueError as error:
            raise OSError(str(error)) from None
    path = Path(directory, "tasks", slug, str(attempt))
    if not directory or not path.is_dir():
        raise FileNotFoundError(2, os.strerror(2), str(path))
    return DirectoryLogs(path)
