"""Walks a directory as its user sees it: links are followed to files and directories, as by `ls -L` and `cp -L`."""

# ruff: noqa: PTH115, PTH116, PTH118 - a data set may have a million files

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from howdah.errors import StagingError
from howdah.localfiles.file_errors import explain
from howdah.localfiles.own_directories import is_own, own_directories
from howdah.spec.message import Message, message

MAX_DEPTH = 250
"""The most directories within each other in a tree that is copied."""
LeftOut = Callable[[str, str], object]
"""Called with the path of something that can't be followed or copied, and why."""
NOTHING_TO_COPY = message("it is neither a file nor a directory")
HOWDAHS_OWN = message("howdah keeps its jobs, their keys or its cache there")
"""The reason for leaving out a directory that `howdah.localfiles.own_directories` knows."""


def ignore(path: str, reason: str) -> None:
    """Ignore a path that is left out."""


def leads_back(directory: str) -> Message:
    """Return the reason for leaving out a link to a directory that contains the link."""
    return message("it leads back to {directory}, which holds it", directory=directory)


def leads_nowhere(link: str) -> Message:
    """Return the reason for leaving out a link to nothing."""
    try:
        return message("it leads to {target}, which is not there", target=os.readlink(link))
    except OSError:  # as those of /dev/fd
        return message("it no longer exists")


def describe_left_out(path: str, reason: str) -> Message:
    """Return the sentence for people about something that is left out."""
    return message("{path} is left out: {reason}", path=path, reason=reason)


def walk_linked(
    directory: str, left_out: LeftOut, skip_unreadable: bool = False
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path and the status of every file below a directory, and of every empty directory, sorted.

    `left_out` is called for a link to a directory that contains the link, a link to nothing, anything that is neither
    file nor directory, and howdah's own directories; with `skip_unreadable` also for a directory that can't be listed.

    Raises:
        StagingError: a directory can't be listed.
    """
    real = os.path.realpath(directory)
    above, own = frozenset(map(str, Path(real).parents)), own_directories(real)
    yield from _walk(directory, real, above, own, left_out, skip_unreadable)


def _walk(
    directory: str, real: str, above: frozenset[str], own: tuple[str, ...], left_out: LeftOut, skip_unreadable: bool
) -> Iterator[tuple[str, os.stat_result]]:
    if is_own(real, own):
        left_out(directory, HOWDAHS_OWN)
        return
    try:
        with os.scandir(directory) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        if not entries:
            yield directory, os.stat(directory)
    except OSError as error:
        if skip_unreadable:
            left_out(directory, _reason_of(error))
            return
        raise explain(error, directory) from error
    for entry in entries:
        path = os.path.join(directory, entry.name)
        try:
            status = os.stat(path)
        except FileNotFoundError:
            if entry.is_symlink():  # else it was removed meanwhile
                left_out(path, leads_nowhere(path))
            continue
        except OSError as error:
            left_out(path, _reason_of(error))
            continue
        if stat.S_ISREG(status.st_mode):
            yield path, status
        elif not stat.S_ISDIR(status.st_mode):
            left_out(path, NOTHING_TO_COPY)
        else:
            below = os.path.realpath(path) if entry.is_symlink() else os.path.join(real, entry.name)
            if below == real or below in above:
                left_out(path, leads_back(below))
            elif len(above) > MAX_DEPTH:
                raise StagingError(f"{path} lies more than {MAX_DEPTH} directories deep")
            else:
                yield from _walk(path, below, above | {real}, own, left_out, skip_unreadable)


def _reason_of(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
