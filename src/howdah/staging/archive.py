"""Packs archives that are the same bytes for the same content: without times, owners or an order of this machine."""

# ruff: noqa: PTH115, PTH118

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from howdah.errors import StagingError
from howdah.localfiles import regular_file
from howdah.localfiles.file_errors import explain
from howdah.localfiles.symlinks import is_interpreter, stays_inside
from howdah.spec.values import dataclass
from howdah.storage.content_cache import local_directory, sha256_of

NEVER = {".git", ".hg", ".svn", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints"}
"""Directories that are not the user's code, and are never packed."""
IGNORE = ".howdahignore"
"""A file that says, in the form of a .gitignore, what in its directory and below is not packed."""
MIN_PART_BYTES, MAX_PART_BYTES = 8 << 20, 64 << 20
"""Bytes of a part. A larger directory is packed in parts, so that after a change only one part is uploaded again. Where
a part ends depends on the name of its last file alone, so that a change elsewhere does not move it."""


@dataclass(frozen=True)
class ArchiveMember:
    """A file or a symbolic link to be packed."""

    name: str
    """The name in the archive."""
    path: str
    link: str = ""
    """Where a symbolic link points; "" for a file."""
    size: int = 0
    mark: str = ""
    """A text that differs when the file has changed."""


def members(directory: Path, as_they_are: bool = False) -> Iterator[ArchiveMember]:
    """Yield all files in `directory`, sorted. Links that stay inside it are kept as links, others to files are
    followed.

    `as_they_are` is for an environment: its links to a Python outside are kept, too, and nothing in it is ignored.
    """
    yield from _members_below(os.fspath(directory), "", (), os.path.realpath(directory), as_they_are)


Ignored = Callable[[str], bool]


def _members_below(
    directory: str, prefix: str, rules: tuple[Ignored, ...], root: str, as_they_are: bool
) -> Iterator[ArchiveMember]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
        if not as_they_are and any(entry.name == IGNORE for entry in entries):
            rules = (*rules, _ignore_rules(os.path.join(directory, IGNORE), prefix))
        yield from _walk_entries(entries, prefix, rules, root, as_they_are)
    except OSError as error:
        raise explain(error, error.filename or directory) from error


def _walk_entries(
    entries: list[os.DirEntry[str]], prefix: str, rules: tuple[Ignored, ...], root: str, as_they_are: bool
) -> Iterator[ArchiveMember]:
    for entry in entries:
        name, is_link = prefix + entry.name, entry.is_symlink()
        if rules and any(ignored(f"{name}/" if entry.is_dir() else name) for ignored in rules):
            continue
        if is_link and (stays_inside(entry.path, root) or (as_they_are and is_interpreter(name))):
            yield ArchiveMember(name, entry.path, os.readlink(entry.path))
        elif entry.is_dir(follow_symlinks=False):
            if entry.name not in NEVER:
                yield from _members_below(entry.path, f"{name}/", rules, root, as_they_are)
        elif entry.is_file():
            status = entry.stat()
            mark = f"{status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_mode}"
            yield ArchiveMember(name, entry.path, "", status.st_size, mark)


def _ignore_rules(path: str, prefix: str) -> Ignored:
    from pathspec import GitIgnoreSpec

    try:
        spec = GitIgnoreSpec.from_lines(regular_file.read(path, 1 << 20).decode("utf-8").splitlines())
    except (OSError, ValueError) as error:
        raise StagingError(f"{path}: {error}") from error
    return lambda name: spec.match_file(name[len(prefix) :])


def directory(source: Path, into: Path) -> list[Path]:
    """Pack a directory into .tar.gz archives below `into`: one, or several of a large directory. An archive is named by
    its content, and made only if it does not exist. What has not changed since the last time is not read again.

    Raises:
        StagingError: something can't be read, or there is no room.
    """
    found = list(members(source))
    note = _note(found)
    with contextlib.suppress(OSError):
        known = [into / name for name in note.read_text().split()]
        if known and all(path.exists() for path in known):
            return known
    targets = []
    for part in _parts(found):
        target = into / f"{_digest(part)}.tar.gz"
        if not target.exists():
            write(part, target)
        targets.append(target)
    with contextlib.suppress(OSError):  # without the note the next time takes longer
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = note.with_name(f"{note.name}.{os.getpid()}")
        fresh.write_text("\n".join(target.name for target in targets))
        fresh.replace(note)
    return targets


def _parts(members: list[ArchiveMember]) -> Iterator[list[ArchiveMember]]:
    part: list[ArchiveMember] = []
    size = 0
    for member in members:
        part.append(member)
        size += member.size
        if size >= MAX_PART_BYTES or (size >= MIN_PART_BYTES and zlib.crc32(os.fsencode(member.name)) % 8 == 0):
            yield part
            part, size = [], 0
    if part or not members:
        yield part


def _note(members: list[ArchiveMember]) -> Path:
    """Return the file that holds the names of the archives of these files, as they are now."""
    lines = "".join(f"{member.path}\0{member.link}\0{member.size}\0{member.mark}\n" for member in members)
    digest = hashlib.sha256(os.fsencode(lines)).hexdigest()
    return local_directory() / "packed" / "known" / digest


def write(members: Iterable[ArchiveMember], target: Path) -> None:
    """Write a .tar, or .tar.gz by its name, of `members`; after an error there is no file."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            try:
                _write_to(members, file, target.name.endswith("gz"))  # type: ignore[arg-type]
                file.flush()
                Path(file.name).replace(target)
            finally:
                Path(file.name).unlink(missing_ok=True)
    except OSError as error:
        raise explain(error, error.filename or str(target)) from error


def _write_to(members: Iterable[ArchiveMember], file: BinaryIO, compress: bool) -> None:
    # The fastest level: a better one takes more time than the smaller archive saves.
    sink = gzip.GzipFile("", "wb", 1, file, mtime=0) if compress else contextlib.nullcontext(file)
    with sink as target, tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for member in members:
            _add(tar, member)


def _add(tar: tarfile.TarFile, member: ArchiveMember) -> None:
    info = tarfile.TarInfo(member.name)
    if member.link:
        info.type, info.linkname = tarfile.SYMTYPE, member.link
        tar.addfile(info)
        return
    with Path(member.path).open("rb") as file:
        status = os.fstat(file.fileno())
        info.mode = 0o755 if status.st_mode & 0o100 else 0o644
        info.size = status.st_size
        tar.addfile(info, file)


def _digest(members: Iterable[ArchiveMember]) -> str:
    digest = hashlib.sha256()
    for member in members:
        what = member.link or f"{sha256_of(member.path)} {os.access(member.path, os.X_OK)}"
        digest.update(f"{member.name}\0{what}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
