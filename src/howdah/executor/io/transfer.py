"""Brings input files into the working directory, and outputs out of it.

Files of this machine are copied or linked here. Every other scheme is left to the helper `howdah.inputs.transfer`,
because it needs libraries that an executor does without.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Callable, Dict, Generator, Iterator, List, Mapping, Sequence, Set, Tuple, Union

from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess, OnEnd
from howdah.executor.io.working_directory import WorkingDirectory
from howdah.localfiles.own_copy import clone_file, copy_file
from howdah.localfiles.symlinks import is_inside
from howdah.spec import uris
from howdah.spec.message import message
from howdah.spec.staged import DataFile, Fetch
from howdah.spec.values import dataclass
from howdah.wire.helper_messages import DownloadRequest, FileCopy, UploadItem, UploadRequest
from howdah.wire.messages import Upload

MAX_COPIED_FILES, MAX_COPIED_BYTES = 10_000, 256 << 20
"""The most input files of this machine, and the most bytes of them, that are copied: copying more would delay the
task's start."""
_LATE_GRACE_S = 0.5
_UPLOAD_STALLED = (
    "the upload was given up: nothing was moved for {seconds} s (`timeouts.localise`), after {count} files and {bytes}"
    " bytes"
)


class PathUnusable(Exception):
    """A path leads out of the working directory, is taken by another file, or is missing."""


@dataclass
class TransferProgress:
    """Counts what has been moved so far."""

    files: int = 0
    """Files that are complete."""
    bytes: int = 0
    """Bytes of these files, and of those that are under way."""
    wanted: int = 0
    """Bytes of all input files of the task."""
    cached: int = 0
    """Bytes that the node had already."""
    linked: str = ""
    """An input file that is a link in the working directory, so that the program could change the original."""
    changed: str = ""
    """An input file of this machine whose size or time differs from that at the submission."""
    left_out: Tuple[str, ...] = ()
    """Sentences about files that are not uploaded."""

    def update(self, message: Mapping[str, Any]) -> None:
        """Take the numbers from one message of the helper."""
        for prefix in ("done_", ""):
            self.files = message.get(f"{prefix}files", self.files)
            self.bytes = message.get(f"{prefix}bytes", self.bytes)
        self.cached = message.get("cached", self.cached)
        self.left_out = tuple(map(str, message.get("left_out", self.left_out)))


def make_directories(names: Sequence[str], directory: str) -> None:
    """Make the directories `names` below `directory`. A name that exists, even as a link, is left as it is.

    Raises:
        PathUnusable: a name leads out of `directory`, or a file has it.
    """
    for name in names:
        path = os.path.join(directory, name)
        if not os.path.isdir(path):
            try:
                _make_directory(directory, path, set())
            except FileExistsError:
                raise PathUnusable(f"{name!r} is to be a directory (directories), but a file has this name") from None


def make_executable(fetches: Sequence[Fetch], directory: str) -> None:
    """Make the task's code executable. A link stays as it is: its target may belong to another user."""
    for fetch in fetches:
        for file in fetch.files if fetch.executable else ():
            path = os.path.join(directory, fetch.to, file.name)
            if not os.path.islink(path):
                os.chmod(path, os.stat(path).st_mode | 0o100)


def bring_local(
    fetches: Sequence[Fetch],
    directory: str,
    placed: Dict[str, str],
    progress: TransferProgress,
    remote: List[FileCopy],
) -> Iterator[None]:
    """Bring the files that this machine has, and add those that must be downloaded to `remote`, as items for the
    helper.

    `placed` maps the paths of files that are here to their URIs, and gets new ones. Few or small files are copied, so
    that the program may write them. More files are copied only if the file system shares the blocks of copies;
    otherwise they are linked, and `progress.linked` names one that the program could change. `progress.changed` names
    one that has changed since the submission.

    Raises:
        PathUnusable: a name leads out of `directory`, something is in the way, or a file does not exist.
        OSError: there is no room.
    """
    local = [file for fetch in fetches for file in fetch.files if _is_local(file)]
    copies = len(local) <= MAX_COPIED_FILES and sum(file.size for file in local) <= MAX_COPIED_BYTES
    made: Set[str] = set()
    wanted: Dict[str, str] = {}
    for fetch in fetches:
        for name in ("", *fetch.empty):
            _make_directory(directory, os.path.normpath(os.path.join(directory, fetch.to, name)), made)
        for file in fetch.files:
            target = os.path.normpath(os.path.join(directory, fetch.to, file.name))
            progress.wanted += file.size
            _make_directory(directory, os.path.dirname(target), made)
            is_here = os.path.lexists(target) and (file.is_shipped or placed.get(target) == file.uri)
            if wanted.setdefault(target, file.uri) != file.uri or (os.path.lexists(target) and not is_here):
                raise PathUnusable(_name_taken(os.path.relpath(target, directory), file.uri, wanted[target]))
            if _is_local(file):
                if not is_here:
                    copies = yield from _bring_file(file, target, copies, progress)
                if not progress.changed and (not is_here or os.path.islink(target)):
                    progress.changed = _path_if_changed(file)
                progress.files += 1
                progress.bytes += file.size or os.stat(target).st_size
            elif is_here and os.path.getsize(target) == file.size:
                progress.files += 1
                progress.bytes += file.size
            else:
                remote.append(FileCopy(target, file.uri, file.size, file.modified_ms, file.etag, fetch.cache))
            placed[target] = file.uri


def upload_items(
    uploads: Sequence[Upload], work: WorkingDirectory, fetches: Sequence[Fetch], warn: Callable[[str], None]
) -> List[UploadItem]:
    """Return the helper's items for the directories and files that exist. The helper follows links to local files of
    `fetches`. Of the working directory itself it takes what the program has made or changed. `warn` is called with what
    is wrong with an output that the program need not make.

    Raises:
        PathUnusable: the program did not make what it should have made, or a link that leads elsewhere.
    """
    made, directory = [], work.path
    for upload in uploads:
        path = os.path.normpath(os.path.join(directory, upload.source))
        if not (os.path.isdir(path) or os.path.isfile(path)):
            template = "the program made no {path} to upload to {uri}"
            problem: str = message(template, path=repr(upload.source), uri=upload.uri)
        elif not (problem := why_not_upload(path, directory)):
            made.append(upload)
        elif not upload.required:
            warn(problem)
        if upload.required and problem:
            raise PathUnusable(problem)
    files = [file for fetch in fetches for file in fetch.files]
    local = tuple(uris.path(file.uri) for file in files if uris.split(file.uri)[0] == "file")
    items = [UploadItem(os.path.join(directory, upload.source), upload.uri, directory, local) for upload in made]
    return [
        replace(item, since_ns=work.program_started_ns, others=tuple(work.list_others()), prepared=work.prepared())
        if os.path.normpath(item.path) == directory
        else item
        for item in items
        if os.path.normpath(item.path) != directory or work.is_used
    ]


def why_not_upload(path: str, directory: str) -> str:
    """Return why the thing at `path` is no output of the program that has this working directory; "" if it is one. A
    link that leads elsewhere is refused, because its target may be anything; the same holds for links in an output."""
    if is_inside(path, directory):
        return ""
    return message(
        "{path} is a link out of the working directory, to {target}, of which nothing is uploaded:"
        " let the program write into a directory",
        path=os.path.relpath(path, directory),
        target=os.path.realpath(path),
    )


def start_transfer(
    loop: EventLoop,
    request: Union[DownloadRequest, UploadRequest],
    limit_s: float,
    on_end: OnEnd,
    progress: TransferProgress,
) -> HelperProcess:
    """Start a helper that downloads or uploads files. It keeps `progress` up to date. A download may take `limit_s`
    seconds. An upload ends only when nothing has moved for that time, because its files were costly to make."""
    is_upload = isinstance(request, UploadRequest)

    def late() -> str:
        if is_upload:
            return message(_UPLOAD_STALLED, seconds=f"{limit_s:.0f}", count=progress.files, bytes=progress.bytes)
        return f"the download took longer than {limit_s:.0f} s ({progress.files} of {len(request.items)} files done)"

    def on_message(told: Mapping[str, Any]) -> None:
        before = (progress.files, progress.bytes)
        progress.update(told)
        if is_upload and (progress.files, progress.bytes) != before:
            helper.renew_limit()

    argv = ("howdah.inputs.transfer", "upload" if is_upload else "download")
    helper = HelperProcess(loop, argv, request, on_end, on_message, limit_s=limit_s, late=late, grace_s=_LATE_GRACE_S)
    return helper


def _is_local(file: DataFile) -> bool:
    return uris.split(file.uri)[0] == "file"


def _bring_file(file: DataFile, target: str, copies: bool, progress: TransferProgress) -> Generator[None, None, bool]:
    """Copy or link a file; return whether the next one is to be copied, too."""
    source = uris.path(file.uri)
    if not os.path.exists(source):
        raise PathUnusable(f"{file.uri}: no such file on {os.uname().nodename}")
    if copies:
        yield from copy_file(source, target)
    elif not clone_file(source, target):
        os.symlink(source, target)
        if not progress.linked and os.access(source, os.W_OK):
            progress.linked = source
    yield
    return copies


def _name_taken(name: str, uri: str, wanted: str) -> str:
    """Return why a file can't be brought: another file has its name, may have its size, and would be mistaken for
    it."""
    owner = wanted if wanted != uri else "one of the job's `files` or `archives`"
    return f"{name!r} is in the way of {uri}: {owner} gives the same name"


def _path_if_changed(file: DataFile) -> str:
    path = uris.path(file.uri)
    try:
        found = os.stat(path)
    except OSError:  # it is here already, or its absence has been reported
        return ""
    modified_ms = found.st_mtime_ns // 10**6
    return "" if (found.st_size, modified_ms) == (file.size, file.modified_ms or modified_ms) else path


def _make_directory(root: str, path: str, made: Set[str]) -> None:
    """Make `path`, which must lie below `root`: neither `..` nor a link may lead out of `root` into a shared cache."""
    if path in made:
        return
    made.add(path)
    real_root = os.path.realpath(root)
    real = os.path.realpath(path)
    if real != real_root and not real.startswith(real_root + os.sep):
        raise PathUnusable(f"{os.path.relpath(path, root)!r} leads out of the working directory")
    os.makedirs(real, exist_ok=True)
