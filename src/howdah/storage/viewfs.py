"""`viewfs://`: one tree of directories on other file systems, by the mount table in Hadoop's configuration.

Each call goes to the file system on which the path is; entries in its answer have URIs of the view.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

from howdah.errors import SpecError, StagingError
from howdah.hadoop import conf as hadoop_conf
from howdah.spec import uris
from howdah.storage.filesystem import Buffer, Entry, FileSystem
from howdah.storage.linked_tree import LeftOut

_LINK, _FALLBACK, _SLASH = "link.", "linkFallback", "linkMergeSlash"
Method = TypeVar("Method", bound=Callable[..., Any])


def _forward(method: Method) -> Method:
    """Return a method that calls `method` of the file system of its URI."""

    def forward(self: ViewFileSystem, uri: str, *arguments: Any, **options: Any) -> Any:
        fs, target = self._resolve(uri)
        return getattr(fs, method.__name__)(target, *arguments, **options)

    return cast("Method", forward)


class ViewFileSystem(FileSystem):
    """Reads a mount table: `fs.viewfs.mounttable.<authority>.link.<path>` names the directory that appears at <path>,
    and `linkFallback` the one for all other paths.

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
        """Return the mount that contains the path."""
        path = uris.path(uris.normalize(uri))
        found = [mount for mount in self._mounts if mount == "/" or path == mount or path.startswith(mount + "/")]
        if not found:
            mounts = ", ".join(sorted(self._mounts))
            raise StagingError(f"{uri}: nothing is mounted there; {self.root} has {mounts}")
        return max(found, key=len)

    def _resolve(self, uri: str) -> tuple[FileSystem, str]:
        """Return the file system of a path, and its URI there."""
        mount = self._mount(uri)
        below = uris.path(uris.normalize(uri))[len(mount.rstrip("/")) :]
        target = uris.join(self._mounts[mount], below)
        return self._filesystem(target, self._conf_dir), target

    def _renamed(self, asked: str, entry: Entry) -> Entry:
        mount = self._mount(asked)
        return dataclasses.replace(entry, uri=uris.join(self.root + mount, uris.below(entry.uri, self._mounts[mount])))

    def _mounted_below(self, uri: str) -> list[Entry]:
        """Return the mounts directly in this directory, and the directories that lead to deeper ones."""
        directory = uris.path(uris.normalize(uri)).rstrip("/") + "/"
        below = (mount[len(directory) :] for mount in self._mounts if mount.startswith(directory))
        names = {path.partition("/")[0] for path in below} - {""}
        return [Entry(uris.join(uri, name), 0, 0, is_dir=True, mode=0o555) for name in sorted(names)]

    def stat(self, uri: str) -> Entry | None:
        if self._mounted_below(uri):
            return Entry(uri, 0, 0, is_dir=True, mode=0o555)
        try:
            fs, target = self._resolve(uri)
        except StagingError:
            return None
        found = fs.stat(target)
        return self._renamed(uri, found) if found else None

    def children(self, directory: str) -> list[Entry]:
        mounted = {entry.uri: entry for entry in self._mounted_below(directory)}
        try:
            fs, target = self._resolve(directory)
            listed = [self._renamed(directory, entry) for entry in fs.children(target)]
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
        fs, target = self._resolve(directory)
        for entry in fs.walk(target):
            yield self._renamed(directory, entry)

    def list_tree(self, directory: str, left_out: LeftOut, skip_unreadable: bool = False) -> Iterator[Entry]:
        if mounted := self._mounted_below(directory):
            for entry in mounted:
                yield from self.list_tree(entry.uri, left_out, skip_unreadable)
            return
        fs, target = self._resolve(directory)
        for entry in fs.list_tree(target, left_out, skip_unreadable):
            yield self._renamed(directory, entry)

    def glob(self, pattern: str) -> list[Entry]:
        """List the matches within one mount: patterns do not reach across mounts."""
        fs, target = self._resolve(pattern)
        return [self._renamed(pattern, entry) for entry in fs.glob(target)]

    def copy_to(self, entry: Entry, start: int, take: Callable[[Sequence[Buffer]], object]) -> None:
        fs, target = self._resolve(entry.uri)
        fs.copy_to(dataclasses.replace(entry, uri=target), start, take)

    def why_not_flushed(self) -> str:
        found = (self._filesystem(target, self._conf_dir).why_not_flushed() for target in set(self._mounts.values()))
        return next(filter(None, found), "")

    def stat_flushed(self, entries: Sequence[Entry]) -> list[Entry]:
        mounted: dict[FileSystem, list[tuple[Entry, str]]] = {}
        for entry in entries:
            fs, target = self._resolve(entry.uri)
            mounted.setdefault(fs, []).append((entry, target))
        found = {}
        for fs, pairs in mounted.items():
            asked = [dataclasses.replace(entry, uri=target) for entry, target in pairs]
            for (entry, _), flushed in zip(pairs, fs.stat_flushed(asked), strict=True):
                found[entry.uri] = dataclasses.replace(flushed, uri=entry.uri)
        return [found[entry.uri] for entry in entries]

    def resolve(self, uri: str) -> str:
        try:
            fs, target = self._resolve(uri)
        except StagingError:
            return uris.normalize(uri)
        return fs.resolve(target)

    def rename(self, old: str, new: str, overwrite: bool = False) -> None:
        fs, target = self._resolve(new)
        source = self._resolve(old)[1]
        if uris.root(source) != uris.root(target):
            raise StagingError(f"{new}: {old} can't be renamed to another file system ({target})")
        fs.rename(source, target, overwrite)

    open_read = _forward(FileSystem.open_read)
    iter_chunks = _forward(FileSystem.iter_chunks)
    create = _forward(FileSystem.create)
    append = _forward(FileSystem.append)
    appends_cheaply = _forward(FileSystem.appends_cheaply)
    moves_at_once = _forward(FileSystem.moves_at_once)
    create_new = _forward(FileSystem.create_new)
    recover_lease = _forward(FileSystem.recover_lease)
    mkdirs = _forward(FileSystem.mkdirs)
    delete = _forward(FileSystem.delete)
    chmod = _forward(FileSystem.chmod)
    touch = _forward(FileSystem.touch)
