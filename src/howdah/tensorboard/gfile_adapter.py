"""Shows TensorBoard directories on any file system as one tree, `howdah://board/...`.

The methods are those of the file systems of `tensorboard.compat.tensorflow_stub.io.gfile`. A file that cannot be read
now is treated as if it did not exist yet: TensorBoard's loader tries again in its next round.
"""

from __future__ import annotations

import fnmatch
import posixpath
import time
from collections.abc import Callable, Mapping
from typing import Any

from howdah.errors import HowdahError
from howdah.spec import uris
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Entry, FileSystem

SCHEME = "howdah"
ROOT = f"{SCHEME}://board"
CACHE_S = 2.0
MAX_CACHED = 100_000
Directories = Callable[[], Mapping[str, str]]
"""A function that returns directories (URIs) by their path in the tree; "" is the whole tree."""


@dataclass(frozen=True)
class Size:
    """The value that `stat` returns."""

    length: int
    """The bytes of a file."""


class GFileTree:
    """Reads the tree for TensorBoard; `directories` is called again for each access."""

    def __init__(self, directories: Directories, conf_dir: str = "") -> None:
        self._directories, self._conf_dir = directories, conf_dir
        self._filesystems: dict[str, FileSystem] = {}
        self._seen: dict[str, tuple[float, Entry]] = {}

    # Methods that TensorBoard calls

    def join(self, path: Any, *parts: Any) -> str:
        return posixpath.join(_text(path), *map(_text, parts))

    def exists(self, path: Any) -> bool:
        inside = _path_in_tree(path)
        return self._is_above_directory(inside) or self._entry(inside) is not None

    def isdir(self, path: Any) -> bool:
        inside = _path_in_tree(path)
        return self._is_above_directory(inside) or ((entry := self._entry(inside)) is not None and entry.is_dir)

    def listdir(self, path: Any) -> list[str]:
        inside = _path_in_tree(path)
        above = f"{inside}/" if inside else ""
        names = {name[len(above) :].split("/")[0] for name in self._directories() if name.startswith(above) and name}
        if uri := self._uri(inside):
            try:
                for entry in self._fs(uri).children(uri):
                    name = uris.name(entry.uri)
                    self._seen[above + name] = (time.monotonic(), entry)
                    names.add(name)
            except HowdahError:
                pass
        return sorted(names)

    def glob(self, pattern: Any) -> list[str]:
        """Return the names in one directory that match: TensorBoard's loader uses no other patterns."""
        directory, name = posixpath.split(_text(pattern))
        return [posixpath.join(directory, each) for each in fnmatch.filter(self.listdir(directory), name)]

    def stat(self, path: Any) -> Size:
        entry = self._entry(_path_in_tree(path))
        if entry is None:
            raise _not_found_error(path)
        return Size(entry.size)

    def read(
        self, filename: Any, binary_mode: bool = False, size: int | None = None, continue_from: Any = None
    ) -> tuple[Any, Any]:
        """Return at most `size` bytes from where the last call ended; none at the end of the file, or if reading
        fails."""
        offset = continue_from["opaque_offset"] if continue_from else 0
        uri = self._uri(_path_in_tree(filename))
        if not uri:
            raise _not_found_error(filename)
        try:
            with self._fs(uri).open_read(uri) as file:
                file.seek(offset)
                data = file.read(-1 if size is None else size)
        except HowdahError:
            data = b""
        return data if binary_mode else data.decode("utf-8", "replace"), {"opaque_offset": offset + len(data)}

    def write(self, filename: Any, *_: Any) -> None:
        raise PermissionError(f"{_text(filename)}: TensorBoard only reads here")

    append = makedirs = write

    # Helpers

    def _uri(self, inside: str) -> str:
        """Return the URI of a path in the innermost directory that has it; "" when none has it."""
        directories = self._directories()
        name = inside
        while name and name not in directories:
            name = posixpath.dirname(name)
        return uris.join(directories[name], inside[len(name) :]) if name in directories else ""

    def _is_above_directory(self, inside: str) -> bool:
        """Return whether the path is a parent of one of the directories."""
        return not inside or any(name.startswith(f"{inside}/") for name in self._directories())

    def _entry(self, inside: str) -> Entry | None:
        at, entry = self._seen.get(inside, (0.0, None))
        if entry is not None and time.monotonic() - at < CACHE_S:
            return entry
        if len(self._seen) > MAX_CACHED:
            self._seen.clear()
        uri = self._uri(inside)
        try:
            return self._fs(uri).stat(uri) if uri else None
        except HowdahError:
            return None

    def _fs(self, uri: str) -> FileSystem:
        root = uris.root(uri)
        if root not in self._filesystems:
            self._filesystems[root] = filesystem(uri, self._conf_dir)
        return self._filesystems[root]


def _text(path: Any) -> str:
    return path.decode("utf-8", "surrogateescape") if isinstance(path, bytes) else str(path)


def _path_in_tree(path: Any) -> str:
    return _text(path)[len(ROOT) :].strip("/")


def _not_found_error(path: Any) -> Exception:
    from tensorboard.compat.tensorflow_stub import errors

    error: Exception = errors.NotFoundError(None, None, f"Not Found: {_text(path)}")
    return error
