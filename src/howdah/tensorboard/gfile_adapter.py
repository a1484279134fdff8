"""What TensorBoard sees: directories on any filesystem hung into one tree, `howdah://board/...`, through its own seam.

The methods are those of `tensorboard.compat.tensorflow_stub.io.gfile`'s filesystems, which hold for its loader: what
can't be read now is as if it were not there yet, and is tried again at its next round.
"""

from __future__ import annotations

import fnmatch
import posixpath
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from howdah.errors import HowdahError
from howdah.spec import uris
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Entry, FileSystem

SCHEME = "howdah"
ROOT = f"{SCHEME}://board"
KEPT_S = 2.0
Places = Callable[[], Mapping[str, str]]


@dataclass(frozen=True)
class Size:
    """What `stat` answers."""

    length: int


class GFileTree:
    """`places` gives directories (URIs) by their path in the tree, "" being all of it; asked again every round."""

    def __init__(self, places: Places, conf_dir: str = "") -> None:
        self._places, self._conf_dir = places, conf_dir
        self._filesystems: dict[str, FileSystem] = {}
        self._seen: dict[str, tuple[float, Entry]] = {}

    # What TensorBoard calls

    def join(self, path: Any, *parts: Any) -> str:
        return posixpath.join(_text(path), *map(_text, parts))

    def exists(self, path: Any) -> bool:
        return self._hangs(_inside(path)) or self._entry(_inside(path)) is not None

    def isdir(self, path: Any) -> bool:
        if self._hangs(_inside(path)):
            return True
        entry = self._entry(_inside(path))
        return entry is not None and entry.is_dir

    def listdir(self, path: Any) -> list[str]:
        inside = _inside(path)
        above = f"{inside}/" if inside else ""
        names = {name[len(above) :].split("/")[0] for name in self._places() if name.startswith(above) and name}
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
        """Within one directory, and in it as a whole for `*`: more its loader does not ask."""
        folder, name = posixpath.split(_text(pattern))
        return [posixpath.join(folder, each) for each in self.listdir(folder) if fnmatch.fnmatchcase(each, name)]

    def stat(self, path: Any) -> Size:
        entry = self._entry(_inside(path))
        if entry is None:
            raise _absent(path)
        return Size(entry.size)

    def read(
        self, filename: Any, binary_mode: bool = False, size: int | None = None, continue_from: Any = None
    ) -> tuple[Any, Any]:
        """At most `size` bytes from where the last call ended; nothing at the end, and while it can't be read."""
        offset = continue_from["opaque_offset"] if continue_from else 0
        uri = self._uri(_inside(filename))
        if not uri:
            raise _absent(filename)
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

    # Where that is

    def _uri(self, inside: str) -> str:
        """The innermost directory that holds it, "" when none does."""
        places = self._places()
        name = inside
        while True:
            if name in places:
                return uris.join(places[name], inside[len(name) :])
            if not name:
                return ""
            name = posixpath.dirname(name)

    def _hangs(self, inside: str) -> bool:
        """Return True if the path is on the way to one of the directories."""
        return not inside or any(name.startswith(f"{inside}/") for name in self._places())

    def _entry(self, inside: str) -> Entry | None:
        at, entry = self._seen.get(inside, (0.0, None))
        if entry is not None and time.monotonic() - at < KEPT_S:
            return entry
        if len(self._seen) > 100_000:
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


def _inside(path: Any) -> str:
    return _text(path)[len(ROOT) :].strip("/")


def _absent(path: Any) -> Exception:
    from tensorboard.compat.tensorflow_stub import errors

    error: Exception = errors.NotFoundError(None, None, f"Not Found: {_text(path)}")
    return error
