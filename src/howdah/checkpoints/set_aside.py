"""Keeps the files that were in a directory when a job stores something under the same names there.

They are moved into a hidden subdirectory. Searches for checkpoints, for event files or for the files of a home do not
look there, and no other directory need be writable.
"""

# ruff: noqa: PTH108, PTH114, PTH115, PTH118, PTH120, PTH211

from __future__ import annotations

import os
from collections.abc import Sequence

from howdah.localfiles.file_errors import explain
from howdah.spec import uris
from howdah.spec.message import Message, message
from howdah.storage.filesystem import Entry, FileSystem


def set_aside(fs: FileSystem, directory: str, name: str, job: str) -> str:
    """Move the entry `name` of a directory to the place where it is kept, and return that directory. Return "" if an
    entry of this name is there already: then a try of the job has put it there, and the present one is the job's own.

    Raises:
        StagingError, EngineUnavailable: it can't be moved; it stays.
    """
    aside = uris.join(directory, f".howdah-before-{job}")
    kept = uris.join(aside, name)
    is_local = uris.split(directory)[0] == "file"
    if os.path.lexists(uris.path(kept)) if is_local else fs.exists(kept):
        return ""
    fs.mkdirs(uris.parent(kept))
    there = uris.join(directory, name)
    if is_local and os.path.islink(uris.path(there)):
        _move_link(uris.path(there), uris.path(kept))
    else:
        fs.rename(there, kept)
    return aside


def _move_link(path: str, kept: str) -> None:
    """Make a link lead from its new place to its old target, even if it was relative."""
    try:
        os.symlink(os.path.join(os.path.dirname(path), os.readlink(path)), kept)
        os.unlink(path)
    except OSError as error:
        raise explain(error, path) from error


def find_file_in_the_way(fs: FileSystem, directory: str, name: str) -> tuple[str, Entry] | None:
    """Return the file at the place of the directory `name`, or of one of its parents, and its name; None if there is
    none."""
    parts = name.split("/")
    for each in ("/".join(parts[:number]) for number in range(1, len(parts) + 1)):
        found = fs.stat(uris.join(directory, uris.stored_name(each, directory)))
        if found is not None and not found.is_dir:
            return each, found
    return None


def describe_set_aside(directory: str, names: Sequence[str], aside: str) -> Message:
    """Return the sentence for people about files that were set aside: one line, however many there are."""
    if len(names) == 1:
        text = "{name} in {uri} is replaced; what was there before the job is kept in {kept}"
        return message(text, name=names[0], uri=directory, kept=aside)
    text = "{count} files in {uri} are replaced, among them {name}; what was there before the job is kept in {kept}"
    return message(text, count=len(names), name=names[0], uri=directory, kept=aside)
