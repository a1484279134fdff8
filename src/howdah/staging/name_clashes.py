"""Finds inputs that would get the name of something in the job's `files` or `archives`: no task can have both.

The content of an archive of the cluster is not known before a node has it: in this case the executor refuses.
"""

from __future__ import annotations

import lzma
import os
import posixpath
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from howdah.errors import Mistake, StagingError
from howdah.inputs.assignment import deduplicate_names, sharing_tasks
from howdah.spec import uris
from howdah.spec.job import JobSpec
from howdah.spec.staged import StagedInput
from howdah.spec.working_files import SPREAD, entries, file_name

_MAX_READ_BYTES = 64 << 20
"""The largest archive whose names are read: a larger one would take seconds."""
_MAX_UNPACKED_BYTES = 128 << 20
"""The number of unpacked bytes of an archive after which no more names are read."""
_Names = dict[str, bool]
"""Paths in the working directory, and whether something may lie below each."""


def find_name_clashes(
    job: JobSpec,
    base_directory: Path,
    inputs: Sequence[StagedInput],
    directories: Sequence[StagedInput],
    shipped: set[str] | None = None,
) -> Iterator[Mistake]:
    """Yield a Mistake for each input that has a file at the place of a file of an entry of `files` or `archives`.
    `directories` are those of the cluster that `files` names. `shipped` gets the URIs of input files that are the very
    same files."""
    same = set[str]() if shipped is None else shipped
    for number, (entry, found) in enumerate(zip(job.inputs, deduplicate_names(tuple(inputs)), strict=True)):
        if entry.strategy != "download" or not found.files:
            continue
        paths = {posixpath.normpath(posixpath.join(found.to, file.name)): file.uri for file in found.files}
        tops = {path.partition("/")[0] for path in paths}
        for place, kind, text, roles in entries(job):
            if not any(sharing_tasks(job, entry.roles, role) for role in roles or job.roles):
                continue
            name, source = file_name(text), base_directory / text.partition("#")[0]
            names = _names_of(source, kind, name, tops, directories)
            clash = None
            for path in (path for path in paths if names and _is_taken(path, names)):
                own = source if path == name else source / (path if name == SPREAD else posixpath.relpath(path, name))
                uri = paths[path]
                if kind != "file" or not _is_same_file(own, found.uploads.get(uri, uri)):
                    clash = path
                    break
                same.add(uri)
            if clash is not None:
                yield Mistake(
                    f"inputs.{number}.to",
                    f"puts {clash!r} into the working directory, where {place} has something of this name:"
                    " choose another directory, or leave that out there",
                )
                break


def mark_shipped(inputs: tuple[StagedInput, ...], shipped: Collection[str]) -> tuple[StagedInput, ...]:
    """Return the inputs with their files marked that are `shipped`."""
    if not shipped:
        return inputs
    return tuple(
        replace(each, files=tuple(replace(file, is_shipped=file.uri in shipped) for file in each.files))
        for each in inputs
    )


def _is_same_file(path: Path, source: str) -> bool:
    """Return whether `source`, a path or URI, is the file of this machine at `path`."""
    if uris.has_scheme(source) and uris.split(source)[0] != "file":
        return False
    try:
        return path.is_file() and path.samefile(uris.path(source))
    except OSError:
        return False


def _is_taken(path: str, names: _Names) -> bool:
    if path in names:
        return True
    while path := posixpath.dirname(path):
        if not names.get(path, True):
            return True
    return False


def _names_of(path: Path, kind: str, name: str, tops: set[str], directories: Sequence[StagedInput]) -> _Names:
    """Return the paths that an entry provides, if one of them may begin with one of `tops`."""
    if name not in (SPREAD, *tops):
        return {}
    if not path.exists():
        return {f"{name}/{file.name}": False for each in directories if each.to == name for file in each.files}
    if path.is_file() and kind == "file" and name != SPREAD:
        return {name: False}
    if path.is_dir() and name == SPREAD and not any(os.path.lexists(path / top) for top in tops):
        return {}
    try:
        members = list(_members_of_directory(path) if path.is_dir() else _members_of_archive(path))
    except (StagingError, OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error):
        return {}  # the code that sends it reports what is wrong with it
    names: _Names = {}
    for member, may_hold_others in members:
        full = posixpath.normpath(posixpath.join("" if name == SPREAD else name, member))
        names[full] = may_hold_others
        while (full := posixpath.dirname(full)) and full not in names:
            names[full] = True
    return names


def _members_of_directory(path: Path) -> Iterable[tuple[str, bool]]:
    from howdah.staging import archive  # is slow to import, and most jobs have no directory

    return ((member.name, member.is_empty_directory or bool(member.link)) for member in archive.members(path))


def _members_of_archive(path: Path) -> Iterable[tuple[str, bool]]:
    if path.stat().st_size > _MAX_READ_BYTES:
        return []
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            return [(info.filename, info.is_dir()) for info in packed.infolist()]
    with tarfile.open(path) as tar:
        found = list[tuple[str, bool]]()
        for member in tar:
            found.append((member.name, member.isdir() or member.issym()))
            if tar.offset > _MAX_UNPACKED_BYTES:  # where the next name would be
                break
        return found
