"""Archives that are the same bytes for the same content: no times, owners or listing order of this machine in them."""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from howdah.data.cache import sha256_of
from howdah.data.fs import explain

NEVER = {".git", ".hg", ".svn", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints"}
"""Directories that are not the user's code: never entered."""


@dataclass(frozen=True)
class Member:
    """A file or a symbolic link (`link` is where it points) to be packed under `name`."""

    name: str
    path: Path
    link: str = ""


def members(directory: Path, as_they_are: bool = False) -> Iterator[Member]:
    """All files in `directory`, sorted; links that stay inside it are kept as links, others are followed.

    `as_they_are`: every link is kept, as environments need that lead to a Python outside.
    """
    root = directory.resolve()
    for folder, folders, names in os.walk(directory, onerror=_raise):
        folders[:] = sorted(name for name in folders if name not in NEVER)
        links = [name for name in folders if Path(folder, name).is_symlink()]
        for name in sorted([*names, *links]):
            path = Path(folder, name)
            relative = path.relative_to(directory).as_posix()
            inside = (
                not path.readlink().is_absolute() and root in path.resolve().parents if path.is_symlink() else False
            )
            if inside or (as_they_are and path.is_symlink()):
                yield Member(relative, path, str(path.readlink()))
            elif path.is_file():
                yield Member(relative, path)


def directory(source: Path, into: Path) -> Path:
    """A .tar.gz of a directory's files, below `into`, named by its content and made only when it is not there.

    Raises:
        StagingError: something can't be read, or there is no room.
    """
    found = list(members(source))
    target = into / f"{_digest(found)}.tar.gz"
    if not target.exists():
        write(found, target)
    return target


def write(found: Iterable[Member], target: Path) -> None:
    """Write a .tar (or, by its name, .tar.gz) of `found`, whole or not at all."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            try:
                _write_to(found, file, target.name.endswith("gz"))  # type: ignore[arg-type]
                file.flush()
                Path(file.name).replace(target)
            finally:
                Path(file.name).unlink(missing_ok=True)
    except OSError as error:
        raise explain(error, error.filename or str(target)) from error


def _write_to(found: Iterable[Member], file: BinaryIO, compress: bool) -> None:
    if not compress:
        _write_tar(found, file)
        return
    # The fastest level: what travels is often larger than the time to pack it better is worth.
    with gzip.GzipFile("", "wb", 1, file, mtime=0) as zipped:
        _write_tar(found, zipped)  # type: ignore[arg-type]


def _write_tar(found: Iterable[Member], file: BinaryIO) -> None:
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for member in found:
            _add(tar, member)


def _add(tar: tarfile.TarFile, member: Member) -> None:
    info = tarfile.TarInfo(member.name)
    if member.link:
        info.type, info.linkname = tarfile.SYMTYPE, member.link
        tar.addfile(info)
        return
    with member.path.open("rb") as file:
        status = os.fstat(file.fileno())
        info.mode = 0o755 if status.st_mode & 0o100 else 0o644
        info.size = status.st_size
        tar.addfile(info, file)


def _digest(found: Iterable[Member]) -> str:
    digest = hashlib.sha256()
    for member in found:
        what = member.link or f"{sha256_of(member.path)} {os.access(member.path, os.X_OK)}"
        digest.update(f"{member.name}\0{what}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _raise(error: OSError) -> None:
    raise explain(error, error.filename or "") from error
