"""`viewfs://`: one tree made of directories of other file systems, by the mount table in Hadoop's configuration.

Every call goes to the file system that the path is on; what comes back is named as it was asked for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from howdah.errors import SpecError, StagingError
from howdah.hadoop import conf as hadoop_conf
from howdah.spec import uris
from howdah.storage.filesystem import Buffer, Entry, FileSystem, Sink

_LINK, _FALLBACK, _SLASH = "link.", "linkFallback", "linkMergeSlash"


class ViewFileSystem(FileSystem):
    """`fs.viewfs.mounttable.<authority>.link.<path>` is the directory seen at <path>; `linkFallback` has the rest.

    Raises:
        SpecError: there is no such table, or it has mounts of other kinds.
    """

    def __init__(self, root: str, conf_dir: str, filesystem: Callable[[str, str], FileSystem]) -> None:
        """Read the mount table of `root`; `filesystem` gives the file system of a mount, by its URI and `conf_dir`."""
        self.root, self._conf_dir, self._filesystem = root, hadoop_conf.directory(conf_dir), filesystem
        conf = hadoop_conf.load(self._conf_dir)
        authority = uris.split(hadoop_conf.complete(root, conf))[1]
        prefix = f"fs.viewfs.mounttable.{authority}."
        table = {name[len(prefix) :]: value.strip() for name, value in conf.items() if name.startswith(prefix)}
        self._mounts = {"/" + name[len(_LINK) :].strip("/"): at for name, at in table.items() if name.startswith(_LINK)}
        if fallback := table.get(_FALLBACK) or table.get(_SLASH):
            self._mounts["/"] = fallback
        other = [name for name in table if name.startswith(("linkMerge.", "linkNfly", "linkRegex"))]
        if other or not self._mounts:
            problem = f"{other[0]} is a kind of mount that howdah does not know" if other else "has no mounts"
            raise SpecError.at(prefix.rstrip("."), f"{problem} ({self._conf_dir or 'HADOOP_CONF_DIR is not set'})")

    def _mount(self, uri: str) -> str:
        """The mount that the path lies in or is."""
        path = uris.path(uris.normal(uri))
        found = [mount for mount in self._mounts if mount == "/" or path == mount or path.startswith(mount + "/")]
        if not found:
            places = ", ".join(sorted(self._mounts))
            raise StagingError(f"{uri}: nothing is mounted there; {self.root} has {places}")
        return max(found, key=len)

    def _there(self, uri: str) -> tuple[FileSystem, str]:
        """The file system that it is on, and its name there."""
        mount = self._mount(uri)
        below = uris.path(uris.normal(uri))[len(mount.rstrip("/")) :]
        target = uris.join(self._mounts[mount], below)
        return self._filesystem(target, self._conf_dir), target

    def _as_asked(self, asked: str, entry: Entry) -> Entry:
        mount = self._mount(asked)
        return dataclasses.replace(entry, uri=uris.join(self.root + mount, uris.below(entry.uri, self._mounts[mount])))

    def _mounted_below(self, uri: str) -> list[Entry]:
        """Mounts directly in this directory, or the directories that lead to them."""
        folder = uris.path(uris.normal(uri)).rstrip("/") + "/"
        names = {mount[len(folder) :].partition("/")[0] for mount in self._mounts if mount.startswith(folder)} - {""}
        return [Entry(uris.join(uri, name), 0, 0, is_dir=True, mode=0o555) for name in sorted(names)]

    def stat(self, uri: str) -> Entry | None:
        if self._mounted_below(uri):
            return Entry(uri, 0, 0, is_dir=True, mode=0o555)
        try:
            fs, target = self._there(uri)
        except StagingError:
            return None
        found = fs.stat(target)
        return self._as_asked(uri, found) if found else None

    def children(self, directory: str) -> list[Entry]:
        mounted = {entry.uri: entry for entry in self._mounted_below(directory)}
        try:
            fs, target = self._there(directory)
            listed = [self._as_asked(directory, entry) for entry in fs.children(target)]
        except StagingError:
            if not mounted:
                raise
            listed = []
        return sorted({**{entry.uri: entry for entry in listed}, **mounted}.values(), key=lambda entry: entry.uri)

    def walk(self, directory: str) -> Iterator[Entry]:
        if mounted := self._mounted_below(directory):
            for entry in mounted:
                yield from self.walk(entry.uri)
            return
        fs, target = self._there(directory)
        for entry in fs.walk(target):
            yield self._as_asked(directory, entry)

    def glob(self, pattern: str) -> list[Entry]:
        """Patterns do not reach across mounts."""
        fs, target = self._there(pattern)
        return [self._as_asked(pattern, entry) for entry in fs.glob(target)]

    def open_read(self, uri: str) -> BinaryIO:
        fs, target = self._there(uri)
        return fs.open_read(target)

    def iter_chunks(self, uri: str, start: int = 0) -> Iterator[bytes]:
        fs, target = self._there(uri)
        return fs.iter_chunks(target, start)

    def copy_to(self, entry: Entry, start: int, take: Callable[[Sequence[Buffer]], object]) -> None:
        fs, target = self._there(entry.uri)
        fs.copy_to(dataclasses.replace(entry, uri=target), start, take)

    def why_not_flushed(self) -> str:
        found = (self._filesystem(target, self._conf_dir).why_not_flushed() for target in set(self._mounts.values()))
        return next(filter(None, found), "")

    def stat_flushed(self, entries: Sequence[Entry]) -> list[Entry]:
        mounted: dict[FileSystem, list[tuple[Entry, str]]] = {}
        for entry in entries:
            fs, target = self._there(entry.uri)
            mounted.setdefault(fs, []).append((entry, target))
        found = {}
        for fs, those in mounted.items():
            asked = [dataclasses.replace(entry, uri=target) for entry, target in those]
            for (entry, _), there in zip(those, fs.stat_flushed(asked), strict=True):
                found[entry.uri] = dataclasses.replace(there, uri=entry.uri)
        return [found[entry.uri] for entry in entries]

    def create(self, uri: str, mode: int = 0o644) -> Sink:
        fs, target = self._there(uri)
        return fs.create(target, mode)

    def recover_lease(self, uri: str) -> None:
        fs, target = self._there(uri)
        fs.recover_lease(target)

    def append(self, uri: str, data: bytes) -> None:
        fs, target = self._there(uri)
        fs.append(target, data)

    def mkdirs(self, directory: str, mode: int = 0o755) -> None:
        fs, target = self._there(directory)
        fs.mkdirs(target, mode)

    def rename(self, old: str, new: str, overwrite: bool = False) -> None:
        fs, target = self._there(new)
        source = self._there(old)[1]
        if uris.root(source) != uris.root(target):
            raise StagingError(f"{new}: {old} can't be renamed to another file system ({target})")
        fs.rename(source, target, overwrite)

    def delete(self, uri: str) -> bool:
        fs, target = self._there(uri)
        return fs.delete(target)

    def chmod(self, uri: str, mode: int) -> None:
        fs, target = self._there(uri)
        fs.chmod(target, mode)

    def touch(self, uri: str) -> None:
        fs, target = self._there(uri)
        fs.touch(target)
