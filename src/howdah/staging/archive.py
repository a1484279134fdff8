"""Packs archives that are the same bytes for the same content: without times, owners or an order of this machine."""

# ruff: noqa: PTH115, PTH116, PTH120

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import hashlib
import lzma
import os
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from howdah.errors import StagingError
from howdah.localfiles import regular_file
from howdah.localfiles.file_errors import explain
from howdah.localfiles.own_directories import is_own, own_directories
from howdah.localfiles.symlinks import is_inside, is_interpreter, stays_inside
from howdah.spec import uris
from howdah.spec.message import message
from howdah.spec.values import dataclass
from howdah.storage.content_cache import local_directory, sha256_of
from howdah.storage.linked_tree import (
    HOWDAHS_OWN,
    MAX_DEPTH,
    NOTHING_TO_COPY,
    LeftOut,
    ignore,
    leads_back,
    leads_nowhere,
)

NEVER = {".git", ".hg", ".svn", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints"}
"""Directories that hold no code of the user, and are never packed."""
GITIGNORE, IGNORE = ".gitignore", ".howdahignore"
"""Files that say which names in their directory and below are not packed. The second file has the form of the first and
overrides it: `!data` packs a directory that a .gitignore names."""
_TOOLS = {".venv", "node_modules", ".tox", ".nox", ".idea", ".vscode", ".DS_Store", ".eggs"}
"""Names of directories that tools make for this machine. A job does not need them, so it is not reported when a
.gitignore leaves them out."""
MAX_LINKED_BYTES, MAX_LINKED_FILES = 256 << 20, 20_000
"""The most that is packed of a directory outside to which a link leads: a larger one is data rather than code."""
_GITIGNORED = "a .gitignore names it; a line !{name} in a .howdahignore beside it sends it along"
_TOO_LARGE = "it leads to {directory}, which has more than {mib} MiB or {files} files: name that among the inputs"
MAX_CHECKED_BYTES = 16 << 20
"""The largest archive of the user that is read to its end before it is sent."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
MIN_PART_BYTES, MAX_PART_BYTES = 8 << 20, 64 << 20
"""Bytes of a part. A larger directory is packed in parts, so that after a change only one part is uploaded again. Where
a part ends depends on the name of its last file alone, so that a change elsewhere does not move it."""


@dataclass(frozen=True)
class ArchiveMember:
    """A file, a symbolic link or an empty directory to be packed."""

    name: str
    """The name in the archive."""
    path: str
    link: str = ""
    """Where a symbolic link points; "" for a file."""
    size: int = 0
    mark: str = ""
    """A text that changes whenever the file changes."""
    is_empty_directory: bool = False


Followed = Callable[[str], object]
"""Called with the real path of a file or directory to which a link leads."""


def follow_silently(path: str) -> None:
    """Ignore where a link leads."""


Rule = Callable[[str], "bool | None"]
"""Returns whether an ignore file leaves out a name, which ends in `/` for a directory; None if the file has no rule for
it."""


@dataclass(frozen=True)
class _Rules:
    """The rules for a directory; those of its parents come first."""

    gitignore: tuple[Rule, ...] = ()
    howdahignore: tuple[Rule, ...] = ()

    def file_that_names(self, name: str) -> str:
        """Return the name of the ignore file that leaves out an entry; "" if the entry is to be packed."""
        for file, rules in ((IGNORE, self.howdahignore), (GITIGNORE, self.gitignore)):
            for rule in reversed(rules):
                is_left_out = rule(name)
                if is_left_out is not None:
                    return file if is_left_out else ""
        return ""


_NO_RULES = _Rules()


def members(
    directory: Path,
    as_they_are: bool = False,
    left_out: LeftOut = ignore,
    with_ignored_files: bool = False,
    followed: Followed = follow_silently,
    home: str = "",
) -> list[ArchiveMember]:
    """Return all files and empty directories in `directory`, sorted. Links that stay inside it are kept as links,
    others are followed.

    `as_they_are` is for an environment: its links to a Python outside are kept, too, and no ignore file is applied.
    `left_out` is called with each entry that is not packed, and the reason. `with_ignored_files` leaves out directories
    that a .gitignore names, but no files: a package may hold files that its build made. `followed` is called with each
    file and directory outside that is packed because a link leads to it. howdah's own directories are never packed, nor
    those in `home`, the URI of an engine's home.
    """
    real = os.path.realpath(directory)
    own = own_directories(real, *([uris.path(home)] if home.startswith("file:") else []))
    collector = _Collector(real, as_they_are, left_out, with_ignored_files, followed, own)
    found = list(collector.below(os.fspath(directory), ""))
    odd = next((member for member in found if _CONTROL.search(member.name)), None)
    if odd is not None:
        raise StagingError(f"{odd.path!r} has a control character in its name: give it another one")
    if collector.gitignored and not with_ignored_files and all(each.name in (GITIGNORE, IGNORE) for each in found):
        raise StagingError(f"{directory}: a .gitignore names all that is in it; `!*` in a .howdahignore there sends it")
    return found


@dataclass
class _Collector:
    root: str
    as_they_are: bool
    left_out: LeftOut
    with_ignored_files: bool = False
    followed: Followed = follow_silently
    own: tuple[str, ...] = ()
    """The directories of howdah's jobs and cache, which are left out."""
    gitignored: int = 0
    """The number of entries that a .gitignore has left out."""
    linked: tuple[str, ...] = ()
    """The directories outside that were entered through links, from the top to the collector's present place."""
    offset: int = 0
    """The position in a name at which the part below the last linked directory begins."""

    def below(self, directory: str, prefix: str, rules: _Rules = _NO_RULES) -> Iterator[ArchiveMember]:
        if prefix.count("/") > MAX_DEPTH:
            raise StagingError(f"{directory} lies more than {MAX_DEPTH} directories deep")
        base = self.linked[-1] if self.linked else self.root
        if is_own(os.path.join(base, prefix[self.offset :]).rstrip("/"), self.own):  # noqa: PTH118
            self.left_out(directory, HOWDAHS_OWN)
            return
        try:
            entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
            if not self.as_they_are:
                rules = _with_rules_of(rules, entries, prefix)
            if not entries and prefix:
                yield ArchiveMember(prefix.rstrip("/"), directory, is_empty_directory=True)
            for entry in entries:
                name = prefix + entry.name
                if not self._is_ignored(entry, name, rules):
                    yield from self._of_entry(entry, name, rules)
        except OSError as error:
            raise explain(error, error.filename or directory) from error

    def _is_ignored(self, entry: os.DirEntry[str], name: str, rules: _Rules) -> bool:
        """Return whether an ignore file leaves an entry out. The author of a .gitignore did not think of jobs, so the
        user is told."""
        if entry.name in NEVER:
            return False  # is left out anyway, and needs no word
        is_directory = False
        with contextlib.suppress(OSError):  # a link that leads to itself
            is_directory = entry.is_dir()
        file = rules.file_that_names(f"{name}/" if is_directory else name)
        if file == GITIGNORE and self.with_ignored_files and not is_directory:
            return False
        self.gitignored += file == GITIGNORE
        if file == GITIGNORE and entry.name not in _TOOLS and not entry.name.endswith((".pyc", ".egg-info")):
            self.left_out(entry.path, message(_GITIGNORED, name=entry.name))
        return bool(file)

    def _of_entry(self, entry: os.DirEntry[str], name: str, rules: _Rules) -> Iterator[ArchiveMember]:
        is_link, root = entry.is_symlink(), self.linked[-1] if self.linked else self.root
        if is_link and (stays_inside(entry.path, root) or (self.as_they_are and is_interpreter(name))):
            yield ArchiveMember(name, entry.path, os.readlink(entry.path))
        elif entry.is_dir() and is_link:
            yield from self._linked(entry.path, name, rules)
        elif entry.is_dir():
            if entry.name not in NEVER:
                yield from self.below(entry.path, f"{name}/", rules)
        elif entry.is_file():
            status = entry.stat()
            mark = f"{status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_mode}"
            if is_link:
                self.followed(os.path.realpath(entry.path))
            yield ArchiveMember(name, entry.path, "", status.st_size, mark)
        elif is_link:
            self.left_out(entry.path, leads_nowhere(entry.path))
        else:
            self.left_out(entry.path, NOTHING_TO_COPY)

    def _linked(self, path: str, name: str, rules: _Rules) -> Iterator[ArchiveMember]:
        """Yield the members below a link to a directory outside."""
        real = os.path.realpath(path)
        if any(is_inside(each, real) for each in (os.path.dirname(path), self.root, *self.linked)):
            self.left_out(path, leads_back(real))
            return
        before = self.linked, self.offset
        self.linked, self.offset = (*self.linked, real), len(name) + 1
        found, size = [], 0
        for member in self.below(path, f"{name}/", rules):
            found.append(member)
            size += member.size
            if size > MAX_LINKED_BYTES or len(found) > MAX_LINKED_FILES:
                self.left_out(
                    path, message(_TOO_LARGE, directory=real, mib=MAX_LINKED_BYTES >> 20, files=MAX_LINKED_FILES)
                )
                found = []
                break
        self.linked, self.offset = before
        if found:
            self.followed(real)
        yield from found


def _with_rules_of(rules: _Rules, entries: Iterable[os.DirEntry[str]], prefix: str) -> _Rules:
    """Add the rules of the ignore files among the entries of a directory."""
    paths = {entry.name: entry.path for entry in entries if entry.name in (GITIGNORE, IGNORE) and entry.is_file()}
    if GITIGNORE in paths:
        rules = replace(rules, gitignore=(*rules.gitignore, _rule(paths[GITIGNORE], prefix)))
    if IGNORE in paths:
        rules = replace(rules, howdahignore=(*rules.howdahignore, _rule(paths[IGNORE], prefix)))
    return rules


def _rule(path: str, prefix: str) -> Rule:
    from pathspec import GitIgnoreSpec

    try:
        content = regular_file.read(path, 1 << 20).removeprefix(codecs.BOM_UTF8)
        if path.endswith(IGNORE):
            spec = GitIgnoreSpec.from_lines(content.decode("utf-8").splitlines())
        else:  # git reads any text, and skips lines that are not patterns
            spec = GitIgnoreSpec.from_lines(filter(_is_pattern, content.decode("utf-8", "surrogateescape").split("\n")))
    except (OSError, ValueError) as error:
        raise StagingError(f"{path}: {error}") from error
    return lambda name: spec.check_file(name[len(prefix) :]).include


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def directory(
    source: Path, into: Path, left_out: LeftOut = ignore, followed: Followed = follow_silently, home: str = ""
) -> list[Path]:
    """Pack a directory into .tar.gz archives below `into`: into one, or for a large directory into several. An archive
    is named by its content, and made only if it does not exist. Files that are unchanged since the last time are not
    read again. `left_out`, `followed` and `home` are those of `members`.

    Raises:
        StagingError: something can't be read, or there is no room.
    """
    found = members(source, left_out=left_out, followed=followed, home=home)
    note = _note(found)
    with contextlib.suppress(OSError):
        known = [into / name for name in note.read_text().split()]
        if known and all(path.exists() for path in known):
            return known
    targets = []
    for part in _parts(found):
        target = into / f"{digest_of(part)}.tar.gz"
        if not target.exists():
            write(part, target)
        targets.append(target)
    with contextlib.suppress(OSError):  # without the note the next time takes longer
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = note.with_name(f"{note.name}.{os.getpid()}")
        fresh.write_text("\n".join(target.name for target in targets))
        fresh.replace(note)
    return targets


def file(source: Path, name: str, into: Path) -> Path:
    """Pack one file, under this name, into a .tar.gz archive below `into`, as `directory` does."""
    member = ArchiveMember(name, str(source), size=source.stat().st_size)
    target = into / f"{digest_of([member])}.tar.gz"
    if not target.exists():
        write([member], target)
    return target


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


def size_up_to(limit: int, directory: Path) -> int:
    """Return how many bytes of a directory would be packed; counting stops above `limit`."""
    size = 0
    real = os.path.realpath(directory)
    for member in _Collector(real, False, ignore, own=own_directories(real)).below(os.fspath(directory), ""):
        size += member.size
        if size > limit:
            break
    return size


def _note(members: list[ArchiveMember]) -> Path:
    """Return the file that holds the names of the archives for these files in their present state."""
    lines = "".join(f"{member.path}\0{member.link}\0{member.size}\0{member.mark}\n" for member in members)
    digest = hashlib.sha256(os.fsencode(lines)).hexdigest()
    return local_directory() / "packed" / "known" / digest


def check(path: Path) -> None:
    """Look into an archive, and read a small one to its end.

    Raises:
        StagingError: it is not an archive, or it is damaged.
    """
    try:
        if zipfile.is_zipfile(path):
            zipfile.ZipFile(path).close()
            return
        with tarfile.open(path) as tar:
            while tar.next() is not None and path.stat().st_size <= MAX_CHECKED_BYTES:
                tar.members.clear()  # type: ignore[attr-defined]
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError) as error:
        first = str(error).partition("\n")[0].rstrip(": ")
        raise StagingError(f"{path} is damaged, or no archive: {first}") from error
    except OSError as error:
        raise explain(error, str(path)) if error.errno else StagingError(f"{path} is damaged: {error}") from error


def with_gzip(source: Path, into: Path) -> Path:
    """Write the archive `source`, a .tar.bz2 or .tar.xz, as a .tar.gz below `into`, if it is not there.

    Raises:
        StagingError: it is damaged, or there is no room.
    """
    open_packed = bz2.open if source.suffix.endswith("bz2") else lzma.open
    target = into / f"{sha256_of(source)}.tar.gz"
    if not target.exists():
        with _fresh_file(target) as file, gzip.GzipFile("", "wb", 1, file, mtime=0) as sink:
            try:
                with open_packed(source) as packed:
                    shutil.copyfileobj(packed, sink, 1 << 20)
            except (EOFError, lzma.LZMAError, OSError) as error:
                if getattr(error, "errno", None) is not None:
                    raise
                raise StagingError(f"{source} cannot be unpacked: {error}") from error
    return target


def write(members: Iterable[ArchiveMember], target: Path) -> None:
    """Write `members` into a .tar, or into a .tar.gz if its name says so; after an error there is no file."""
    with _fresh_file(target) as file:
        _write_to(members, file, target.name.endswith("gz"))


@contextlib.contextmanager
def _fresh_file(target: Path) -> Iterator[BinaryIO]:
    """Open a new file that gets the name `target` when it is complete, and is removed after an error."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            try:
                yield file  # type: ignore[misc]
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
    if member.is_empty_directory:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(info)
        return
    with Path(member.path).open("rb") as file:
        status = os.fstat(file.fileno())
        info.mode = (0o755 if status.st_mode & 0o100 else 0o644) & (0o700 if regular_file.is_private(status) else 0o777)
        info.size = status.st_size
        tar.addfile(info, file)


def _describe(path: str) -> str:
    return f"{sha256_of(path)} {os.access(path, os.X_OK)}{' private' if regular_file.is_private(os.stat(path)) else ''}"


def digest_of(members: Iterable[ArchiveMember]) -> str:
    """Return 64 hexadecimal digits that change when a name, a content, or a permission to read or execute changes."""
    digest = hashlib.sha256()
    for member in members:
        what = "directory" if member.is_empty_directory else member.link or _describe(member.path)
        digest.update(f"{member.name}\0{what}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
