"""Files in and out. What is on this machine is linked here; every other scheme is left to `howdah.data.transfer`,
a process of its own, for it needs libraries that an executor does without."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Set

from howdah.data import uris
from howdah.executor import processes
from howdah.executor.loop import READ, Loop, Timer
from howdah.spec.staged import DataFile, Fetch
from howdah.wire.messages import Upload

Done = Callable[[str], None]
"""Called with "" when all is in place, else with one line that says what is not."""


class Misplaced(Exception):
    """A file cannot be put where it should be."""


class Totals:
    """What has been fetched so far."""

    def __init__(self) -> None:
        self.files = 0
        self.bytes = 0


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
            _make_directory(directory, os.path.dirname(target), made)
            if uris.split(file.uri)[0] == "file":
                _link(file, target, totals)
            else:
                remote.append({"uri": file.uri, "path": target, "size": file.size})
    return remote


def upload_items(uploads: Sequence[Upload], directory: str) -> List[Dict[str, Any]]:
    """The helper's items; a directory that need not be there, and is not, has none.

    Raises:
        Misplaced: the program made no directory that it should have made.
    """
    made = [upload for upload in uploads if os.path.isdir(os.path.join(directory, upload.source))]
    for upload in uploads:
        if upload.required and upload not in made:
            raise Misplaced(f"the program made no directory {upload.source!r} to upload to {upload.uri}")
    return [{"path": os.path.join(directory, upload.source), "uri": upload.uri} for upload in made]


class Transfer:
    """One run of the helper, `verb` being "download" or "upload"; stopped after `limit` seconds."""

    def __init__(
        self, loop: Loop, reaper: processes.Reaper, verb: str, items: Sequence[Dict[str, Any]], limit: float, done: Done
    ) -> None:
        self.loop, self.verb, self.done, self.limit = loop, verb, done, limit
        self.files, self.bytes, self._count = 0, 0, len(items)
        self._answer: Optional[Dict[str, Any]] = None
        self._buffer = b""
        self._reason = ""
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        message = _memory_file(json.dumps({"items": list(items)}).encode())
        argv = (sys.executable, "-m", "howdah.data.transfer", verb)
        try:
            # Away from the program's directory, whose files must not pass for modules.
            self.pid = reaper.spawn(argv, _helper_environment(), (message, writer, 2), self._ended, "/")
        finally:
            os.close(writer)
            os.close(message)
        loop.watch(self._reader, READ, lambda _: self._read())
        self._timer: Timer = loop.later(limit, self._too_late)

    def stop(self, grace: float) -> None:
        """TERM, then KILL."""
        self._reason = self._reason or f"the {self.verb} was stopped"
        processes.kill_group(self.pid, signal.SIGTERM)
        self._timer.cancel()
        self._timer = self.loop.later(min(grace, 2.0), lambda: processes.kill_group(self.pid, signal.SIGKILL))

    def _too_late(self) -> None:
        self._reason = f"the {self.verb} took longer than {self.limit:.0f} s ({self.files} of {self._count} files done)"
        self.stop(0.5)

    def _read(self) -> None:
        try:
            data = os.read(self._reader, 65536)
        except BlockingIOError:
            return
        if not data:
            self.loop.forget(self._reader)
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if isinstance(message, dict):
            for prefix in ("done_", ""):
                self.files = message.get(f"{prefix}files", self.files)
                self.bytes = message.get(f"{prefix}bytes", self.bytes)
            if "ok" in message or "error" in message:
                self._answer = message

    def _ended(self, status: int, _: Any) -> None:
        self._timer.cancel()
        self._read()
        self.loop.forget(self._reader)
        os.close(self._reader)
        answer = self._answer or {}
        if not self._reason and not answer.get("ok"):
            self._reason = str(answer.get("error") or f"the {self.verb} helper ended with wait status {status}")
        self.done(self._reason)


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


def _memory_file(content: bytes) -> int:
    file = os.memfd_create("items")
    os.write(file, content)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _helper_environment() -> Dict[str, str]:
    """Ours, importing from where we import, whatever the directory."""
    paths = [os.path.abspath(path) for path in sys.path if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
