"""Files in and out. What is on this machine is linked here; every other scheme is left to `howdah.inputs.transfer`,
a process of its own, for it needs libraries that an executor does without."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Callable, Dict, List, Mapping, Sequence, Set, Tuple

from howdah.executor.event_loop import EventLoop, Timer
from howdah.executor.helper_process import HelperProcess
from howdah.executor.process import process_tree
from howdah.spec import uris
from howdah.spec.staged import DataFile, Fetch
from howdah.wire.messages import Upload

Done = Callable[[str], None]
"""Called with "" when all is in place, else with one line that says what is not."""


class Misplaced(Exception):
    """A file cannot be put where it should be."""


@dataclasses.dataclass
class Totals:
    """What has been fetched so far, of how many bytes `wanted`, and how many of them the node had already."""

    files: int = 0
    bytes: int = 0
    wanted: int = 0
    cached: int = 0

    def with_those_of(self, transfer: Transfer) -> Totals:
        """With what a download has brought."""
        return dataclasses.replace(
            self,
            files=self.files + transfer.files,
            bytes=self.bytes + transfer.bytes,
            cached=self.cached + transfer.cached,
        )


def make_directories(names: Sequence[str], directory: str) -> None:
    """Make those that are not in `directory` yet, be they links.

    Raises:
        Misplaced: a name leads out of `directory`, or a file has it.
    """
    for name in names:
        path = os.path.join(directory, name)
        if not os.path.isdir(path):
            try:
                _make_directory(directory, path, set())
            except FileExistsError:
                raise Misplaced(f"{name!r} is to be a directory (directories), but a file has this name") from None


def make_executable(fetches: Sequence[Fetch], directory: str) -> None:
    """Let the files that are code be executed, where they are the task's own (a link leads to somebody else's)."""
    for fetch in fetches:
        for file in fetch.files if fetch.executable else ():
            path = os.path.join(directory, fetch.to, file.name)
            if not os.path.islink(path):
                os.chmod(path, os.stat(path).st_mode | 0o100)


def link_local(fetches: Sequence[Fetch], directory: str, totals: Totals) -> List[Dict[str, Any]]:
    """Link the files that this machine has; what must be downloaded is given back, as items for the helper.

    Raises:
        Misplaced: a name leads out of `directory`, something is in the way, or a file does not exist.
    """
    remote: List[Dict[str, Any]] = []
    made: Set[str] = set()
    for fetch in fetches:
        _make_directory(directory, os.path.join(directory, fetch.to), made)
        for file in fetch.files:
            target = os.path.normpath(os.path.join(directory, fetch.to, file.name))
            totals.wanted += file.size
            _make_directory(directory, os.path.dirname(target), made)
            if uris.split(file.uri)[0] == "file":
                _link(file, target, totals)
            else:
                known = {"size": file.size, "modified_ms": file.modified_ms, "etag": file.etag}
                remote.append({"uri": file.uri, "path": target, "cache": fetch.cache, **known})
    return remote


def upload_items(uploads: Sequence[Upload], directory: str, fetches: Sequence[Fetch]) -> List[Dict[str, Any]]:
    """The helper's items; a directory that need not be there, and is not, has none. Links to the files of `fetches`
    that this machine has are followed, as the task's inputs.

    Raises:
        Misplaced: the program made no directory that it should have made.
    """
    made = [upload for upload in uploads if os.path.isdir(os.path.join(directory, upload.source))]
    for upload in uploads:
        if upload.required and upload not in made:
            raise Misplaced(f"the program made no directory {upload.source!r} to upload to {upload.uri}")
    local = [uris.path(file.uri) for fetch in fetches for file in fetch.files if uris.split(file.uri)[0] == "file"]
    common = {"root": directory, "inputs": local}
    return [{"path": os.path.join(directory, upload.source), "uri": upload.uri, **common} for upload in made]


class Transfer:
    """One run of the helper, `verb` being "download" or "upload"; stopped after `limit` seconds. `left_out` says which
    files are not uploaded."""

    def __init__(
        self,
        loop: EventLoop,
        reaper: process_tree.Reaper,
        verb: str,
        items: Sequence[Dict[str, Any]],
        limit: float,
        done: Done,
    ) -> None:
        self.loop, self.verb, self.done, self.limit = loop, verb, done, limit
        self.files, self.bytes, self.cached, self._count = 0, 0, 0, len(items)
        self.left_out: Tuple[str, ...] = ()
        self._reason = ""
        argv = ("howdah.inputs.transfer", verb)
        self._process = HelperProcess(loop, reaper, argv, {"items": list(items)}, self._take, self._ended)
        self._timer: Timer = loop.call_later(limit, self._too_late)

    def stop(self, grace: float) -> None:
        """TERM, then KILL."""
        self._reason = self._reason or f"the {self.verb} was stopped"
        self._timer.cancel()
        self._process.stop(min(grace, 2.0))

    def _too_late(self) -> None:
        self._reason = f"the {self.verb} took longer than {self.limit:.0f} s ({self.files} of {self._count} files done)"
        self.stop(0.5)

    def _take(self, message: Mapping[str, Any]) -> None:
        for prefix in ("done_", ""):
            self.files = message.get(f"{prefix}files", self.files)
            self.bytes = message.get(f"{prefix}bytes", self.bytes)
        self.cached = message.get("cached", self.cached)
        self.left_out = tuple(map(str, message.get("left_out", self.left_out)))

    def _ended(self, problem: str) -> None:
        self._timer.cancel()
        self.done(self._reason or problem)


def _link(file: DataFile, target: str, totals: Totals) -> None:
    source = uris.path(file.uri)
    if not os.path.exists(source):
        raise Misplaced(f"{file.uri}: no such file on {os.uname().nodename}")
    try:
        os.symlink(source, target)
    except FileExistsError:
        if not (os.path.islink(target) and os.readlink(target) == source):
            raise Misplaced(f"{file.name!r} is in the way of {file.uri}: two inputs give the same name") from None
    totals.files += 1
    totals.bytes += file.size or os.stat(source).st_size


def _make_directory(root: str, path: str, made: Set[str]) -> None:
    """`path` below `root`, really: neither `..` nor a link may lead out of it, into a cache that others share."""
    if path in made:
        return
    made.add(path)
    real_root = os.path.realpath(root)
    real = os.path.realpath(path)
    if real != real_root and not real.startswith(real_root + os.sep):
        raise Misplaced(f"{os.path.relpath(path, root)!r} leads out of the working directory")
    os.makedirs(real, exist_ok=True)
