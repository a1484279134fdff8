"""Unpacks .zip and .tar archives of any origin, and writes only below the directory that is given.

Python's own filters are for .tar alone, came with 3.12 and later with some older versions, and let links lead anywhere.
Here one check serves both kinds of archive. It raises an error with the name of the member for absolute names, `..` and
control characters in names, names that occur twice, members below a link, links that lead out of the archive, and
anything that is not a file, directory or link. Set-uid bits are dropped, and so is the right to write files, because
containers share them.

One kind of link may lead out: that of a packed environment to the Python with which it was made (`bin/python3`).
"""

from __future__ import annotations

import lzma
import os
import re
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import IO

from howdah.errors import StagingError
from howdah.localfiles.symlinks import is_interpreter, stays_inside

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MAX_LINK = 4096
_BROKEN = (
    *(zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, struct.error),
    *(NotImplementedError, RuntimeError, ValueError, OverflowError, KeyError),
)
"""The errors of the standard library for archives that are damaged, encrypted, or packed by other methods."""


def unpack(archive: Path, target: Path) -> None:
    """Make `target` with the archive's content. After an error the caller removes it.

    Raises:
        StagingError: it is no archive, is damaged, or has a member that is refused.
        OSError: there is no room, or a name is too long for the file system.
    """
    try:
        if zipfile.is_zipfile(archive):
            _unzip(archive, target)
        elif tarfile.is_tarfile(archive):
            _untar(archive, target)
        else:
            raise StagingError(f"{archive.name} is not a .zip or .tar archive")
    except _MemberRefused as error:
        raise StagingError(f"{archive.name} is not unpacked: {error}") from error
    except _BROKEN as error:
        raise StagingError(f"{archive.name} cannot be unpacked: {error or type(error).__name__}") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise StagingError(f"{archive.name} cannot be unpacked: {error}") from error  # of gzip or bz2


class _MemberRefused(Exception):
    """A member that is not unpacked."""


class _Tree:
    """Makes files and directories at once and links last, so that nothing is written through a link."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self._made: dict[str, str] = {}
        self._links: list[tuple[str, str]] = []
        target.mkdir(parents=True, mode=0o700)

    def directory(self, name: str, mode: int) -> None:
        name = _clean_name(name)
        if name:
            self._parents(name)
            self._claim(name, "directory")
            path = self.target / name
            path.mkdir(exist_ok=True)
            path.chmod(mode & 0o755 | 0o700)

    def file(self, name: str, mode: int, content: IO[bytes], modified: float = 0.0) -> None:
        path = self.target / self._new_path(name, "file")
        with path.open("xb") as sink:
            shutil.copyfileobj(content, sink, 1 << 20)
            os.fchmod(sink.fileno(), mode & 0o555 | 0o400)
        if modified > 0:  # byte code of a packed environment counts only beside a source of its time
            os.utime(path, (modified, modified))

    def hard_link(self, name: str, to: str) -> None:
        source = _clean_name(to)
        if self._made.get(source) != "file":
            raise _MemberRefused(f"{name!r} is a link to {to!r}, which is not a file before it in the archive")
        os.link(self.target / source, self.target / self._new_path(name, "file"))

    def link(self, name: str, to: str) -> None:
        if not to or "\0" in to or len(to) > _MAX_LINK:
            raise _MemberRefused(f"{name!r} is a link to nothing")
        self._links.append((self._new_path(name, "link"), to))

    def finish(self) -> None:
        """Make the links. Their targets are checked when all of them exist."""
        for name, to in self._links:
            (self.target / name).symlink_to(to)
        for name, to in self._links:
            if not is_interpreter(name) and not stays_inside(os.fspath(self.target / name), os.fspath(self.target)):
                raise _MemberRefused(
                    f"{name!r} is a link out of the archive, to {to!r}: pack what it leads to (tar -h)"
                )

    def _new_path(self, name: str, kind: str) -> str:
        checked = _clean_name(name)
        if not checked:
            raise _MemberRefused(f"{name!r} is not a name for a {kind}")
        self._parents(checked)
        self._claim(checked, kind)
        return checked

    def _claim(self, name: str, kind: str) -> None:
        before = self._made.get(name)
        self._made[name] = kind
        if before is not None and (before, kind) != ("directory", "directory"):
            raise _MemberRefused(f"{name!r} is there twice")

    def _parents(self, name: str) -> None:
        """Make the parent directories of a member, which need not be members themselves."""
        end = name.find("/")
        while end >= 0:
            parent = name[:end]
            kind = self._made.get(parent)
            if kind is None:  # asking the file system for each member took a third of the time
                self._made[parent] = "directory"
                (self.target / parent).mkdir(exist_ok=True)
            elif kind != "directory":
                raise _MemberRefused(f"{name!r} lies below {parent!r}, which is a {kind}")
            end = name.find("/", end + 1)


def _clean_name(name: str) -> str:
    """Return the name without `.` and needless slashes; "" for the directory itself."""
    if _CONTROL.search(name):
        raise _MemberRefused(f"{name[:200]!r} has a control character in its name")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        raise _MemberRefused(f"{name[:200]!r} leads out of the archive")
    return "/".join(parts)


def _untar(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as tar:
        tree = _Tree(target)
        for member in tar:
            if member.isdir():
                tree.directory(member.name, member.mode)
            elif member.isreg():
                content = tar.extractfile(member)
                assert content is not None
                tree.file(member.name, member.mode, content, member.mtime)
            elif member.issym():
                tree.link(member.name, member.linkname)
            elif member.islnk():
                tree.hard_link(member.name, member.linkname)
            else:
                raise _MemberRefused(f"{member.name[:200]!r} is a device or a pipe")
        # tarfile takes a damaged header for the end.
        assert tar.fileobj is not None
        tar.fileobj.seek(tar.offset)
        if tar.fileobj.read(tarfile.BLOCKSIZE).strip(b"\0"):
            raise tarfile.ReadError("it is damaged")
        tree.finish()


def _unzip(archive: Path, target: Path) -> None:
    """Unpack a .zip; if it was packed on Unix, the high half of the attributes is the mode (APPNOTE 4.4.15)."""
    with zipfile.ZipFile(archive) as zipped:
        tree = _Tree(target)
        for member in zipped.infolist():
            name, mode = member.orig_filename, member.external_attr >> 16
            kind = stat.S_IFMT(mode)
            if member.is_dir() or kind == stat.S_IFDIR:
                tree.directory(name, mode or 0o755)
            elif kind == stat.S_IFLNK:
                with zipped.open(member) as source:
                    tree.link(name, os.fsdecode(source.read(_MAX_LINK + 1)))
            elif kind in (0, stat.S_IFREG):
                with zipped.open(member) as source:
                    tree.file(name, mode or 0o644, source)
            else:
                raise _MemberRefused(f"{name[:200]!r} is a device or a pipe")
        tree.finish()
