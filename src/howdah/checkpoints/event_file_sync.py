"""`python -m howdah.checkpoints.event_file_sync`: appends the new bytes of a program's event files to the copies on the
shared file system.

A helper process beside an executor (`howdah.wire.helper_main`). An event file only grows, so only its new bytes are
appended. Any other file that has changed is written anew, and a file that another job has left under its name is set
aside. `howdah.checkpoints.directory_sync` is another module because a checkpoint is stored only once it no longer
changes, and is fetched and removed as well.
"""

# ruff: noqa: PTH118, PTH119

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from howdah.checkpoints.set_aside import describe_set_aside, set_aside
from howdah.errors import HowdahError
from howdah.localfiles.file_errors import explain
from howdah.localfiles.regular_file import is_readable
from howdah.spec import uris
from howdah.storage import cpu_throttle
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Entry, FileSystem, open_local
from howdah.wire.helper_main import one_line, run_helper_main
from howdah.wire.helper_messages import EventFileSyncReply, EventFileSyncRequest

EVENTS = "tfevents"
APPEND_CHUNK_BYTES = 8 << 20
"""The most bytes of one append. Fewer appends are better, because each costs HDFS several calls."""
Sent = dict[str, list[int]]


def copy(path: str, uri: str, sent: Sent, job: str, aside: dict[str, str], since_ms: int = 0) -> None:
    """Send the new bytes below directory `path` to `uri`; `sent` is updated file by file.

    A file that exists there before the first file of its name is sent, and that is older than `since_ms`, is kept as a
    file from before `job`; `aside` gets its name and its new place. If `job` is "" nothing is kept; if `since_ms` is 0,
    all such files are.

    Raises:
        StagingError, EngineUnavailable: a file can't be written, or not be read: then all others have been sent.
    """
    fs, there, unreadable = filesystem(uri), dict[str, dict[str, Entry]](), list[str]()
    for name, size, modified in list_files(path):
        if not is_readable(os.path.join(path, name)):
            unreadable.append(name)
            continue
        known = sent.pop(name, None)
        if job and known is None:
            before = _find_listed(fs, uris.join(uri, name), there)
            is_others = before is not None and (not since_ms or before.modified_ms < since_ms)
            if is_others and (kept := set_aside(fs, uri, name, job)):
                aside[name] = kept
        if known != [size, modified]:
            _send(fs, os.path.join(path, name), uris.join(uri, name), known[0] if known else 0, size)
        sent[name] = [size, modified]
    for name in unreadable:
        if os.path.lexists(os.path.join(path, name)):  # else it was removed meanwhile
            open_local(os.path.join(path, name)).close()  # raises the error that names it


def _find_listed(fs: FileSystem, uri: str, there: dict[str, dict[str, Entry]]) -> Entry | None:
    """Return the entry of a file from the listing of its directory, which is read once."""
    directory = uris.parent(uri)
    if directory not in there:
        found = fs.stat(directory)
        entries = fs.children(directory) if found is not None and found.is_dir else []
        there[directory] = {uris.name(entry.uri): entry for entry in entries}
    return there[directory].get(uris.name(uri))


def list_files(path: str) -> Iterator[tuple[str, int, int]]:
    """Yield name below `path`, size and time of each file; hidden files and links are left out."""
    for directory, directories, names in os.walk(path):
        directories[:] = [name for name in directories if not name.startswith(".")]
        for name in names:
            try:
                found = os.lstat(os.path.join(directory, name))
            except OSError:  # the file was removed since it was listed
                continue
            if stat.S_ISREG(found.st_mode) and not name.startswith("."):
                yield os.path.relpath(os.path.join(directory, name), path), found.st_size, found.st_mtime_ns


def _send(fs: FileSystem, path: str, target: str, sent: int, size: int) -> None:
    with open_local(path) as file:
        entry = fs.stat(target) if sent and EVENTS in os.path.basename(path) else None
        have = entry.size if entry is not None else 0
        if 0 < sent <= have <= size:  # `have` is larger when a helper was killed before it could report
            file.seek(have)
            while have < size and (data := file.read(min(APPEND_CHUNK_BYTES, size - have))):
                fs.append(target, data)
                have += len(data)
            return
        fs.mkdirs(uris.parent(target))
        with fs.writing(target) as sink:
            cpu_throttle.copy_throttled(file, sink, size)


def send_event_files(request: EventFileSyncRequest) -> EventFileSyncReply:
    """Answer an executor's request."""
    if not request.last:
        cpu_throttle.enable(request.uri)
    sent, aside, problem = dict(request.sent), dict[str, str](), ""
    try:
        copy(request.path, request.uri, sent, request.job, aside, request.since_ms)
    except HowdahError as error:
        problem = one_line(error)
    except OSError as error:
        problem = str(explain(error, error.filename or request.path))
    told = describe_set_aside(request.uri, list(aside), next(iter(aside.values()))) if aside else ""
    return EventFileSyncReply(sent, problem, told)


if __name__ == "__main__":
    run_helper_main({"send": send_event_files})
