"""A container's working directory as an engine prepares it: links to the job's files under their names.

An archive is unpacked into the cache, once per content. The executor copies the targets of the links
(`howdah.executor.io.working_directory`).
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from howdah.errors import StagingError
from howdah.spec import StagedFile, uris


def prepare(directory: Path, files: tuple[StagedFile, ...], cache: Path) -> None:
    """Make `directory` with all files of the job.

    Raises:
        StagingError: a file is gone, an archive cannot be unpacked, or the disk is full.
    """
    try:
        directory.mkdir(parents=True, mode=0o700)
        for file in files:
            _place(file, directory / file.name, cache)
    except OSError as error:
        raise StagingError(f"{error.filename or directory}: {error.strerror or error}") from error


def _place(file: StagedFile, target: Path, cache: Path) -> None:
    source = Path(uris.path(file.uri))
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.stat()  # a link to nothing would be found late
    except FileNotFoundError:
        where = "each node must see the home of jobs, and `shared_paths`, under the same path"
        raise StagingError(f"{source}: No such file or directory; {where}") from None
    target.symlink_to(source if file.kind == "file" else unpack_archive(source, cache))


def unpack_archive(archive: Path, cache: Path) -> Path:
    """Return the directory with the archive's content. Unpack the archive into `cache` unless its content is there
    already, or in the cache from which the archive comes."""
    target = cache / "unpacked" / archive.name
    for unpacked in (archive.parent.parent / "unpacked" / archive.name, target):
        if os.access(unpacked, os.R_OK | os.X_OK):
            return unpacked
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            _unpack_to(archive, target)
    return target


def _unpack_to(archive: Path, target: Path) -> None:
    from howdah.staging.archive_extraction import unpack  # seldom needed: it has been unpacked before

    partial = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        unpack(archive, partial)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
