"""The files of a TonY job: sources, virtual environment, resources, HDFS class path.

TonY writes a resource as `SOURCE[::NAME][#archive]`. NAME is its name in the container; a local directory arrives as a
directory, a directory on the cluster as the files directly in it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from howdah.compat.tony.conf import Conf
from howdah.compat.tony.options import TonyOptions
from howdah.errors import Mistake
from howdah.spec import Role, uris

if TYPE_CHECKING:
    from howdah.storage.filesystem import FileSystem

ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar")
VENV = "venv"


@dataclass
class Files:
    """The `files` and `archives` of the spec by role, with notes on them; those of the role `all` are for every one."""

    files: list[str] = field(default_factory=list)
    archives: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    of_role: dict[str, Files] = field(default_factory=dict)
    all: Files | None = None

    def add(self, path: str, name: str, archive: bool) -> None:
        """Add a resource once."""
        entry = f"{path}#{name}" if name else path
        kind, there = ("archives", self.archives) if archive else ("files", self.files)
        if entry not in there and (self.all is None or entry not in getattr(self.all, kind)):
            there.append(entry)

    def given(self, roles: Mapping[str, Role]) -> dict[str, Role]:
        """Return these roles with their own files."""
        own = {name: self.of_role.get(name, Files()) for name in roles}
        return {
            name: replace(role, files=tuple(own[name].files), archives=tuple(own[name].archives))
            for name, role in roles.items()
        }


def collected(options: TonyOptions, conf: Conf, types: list[str], directory: Path) -> Files:
    """Collect all files, by the role that gets them."""
    found = Files()
    source, venv = options.first("src_dir"), options.first("python_venv")
    if source:
        found.add(source, ".", source.endswith(ARCHIVES))
    if venv:
        found.add(venv, VENV, not (directory / venv).is_dir())
        if not venv.endswith(ARCHIVES) and not (directory / venv).is_dir():
            options.mistakes.append(Mistake("--python_venv", f"is {venv!r}, must be an archive: {', '.join(ARCHIVES)}"))
    for entry in conf.listed("tony.containers.resources"):
        _resource(found, conf, "tony.containers.resources", entry, directory)
    for path in options.first("hdfs_classpath").split(","):
        if path.strip():
            _there(found, conf, path.strip())
    for key, name in (("hdfs", "hdfs-site.xml"), ("yarn", "yarn-site.xml"), ("mapred", "mapred-site.xml")):
        path = conf.get(f"tony.application.{key}-conf-path")
        if path:
            found.add(path, name, False)
    for name in types:  # last: what all get they have
        own = found.of_role[name] = Files(all=found)
        for entry in conf.listed(f"tony.{name}.resources"):
            _resource(own, conf, f"tony.{name}.resources", entry, directory)
    return found


def _resource(found: Files, conf: Conf, key: str, entry: str, directory: Path) -> None:
    text, archive, rest = entry.partition("#archive")
    source, _, name = text.partition("::")
    if not source or rest or "/" in name:
        conf.wrong(key, f"has {entry!r}, must be SOURCE, SOURCE::NAME or SOURCE::NAME#archive with a plain NAME")
    elif uris.has_scheme(source):
        for path in _below(source, conf) or [source]:
            # Of a directory there are many, and one name is not enough for them.
            found.add(path, name if path == source else "", bool(archive))
    elif (directory / source).is_dir():
        found.add(source, name, False)
    else:
        found.add(source, name or posixpath.basename(source), bool(archive))


def _filesystem(uri: str, conf: Conf) -> FileSystem:
    from howdah.storage.factory import filesystem  # most command lines name nothing that is elsewhere

    return filesystem(uri, conf.hadoop)


def _there(found: Files, conf: Conf, path: str) -> None:
    """Yield what exists of the HDFS class path."""
    uri = path if uris.has_scheme(path) else uris.absolute(path, _cluster(conf), _cluster(conf))
    files = _filesystem(uri, conf)
    if not files.exists(uri):
        found.notes.append(f"--hdfs_classpath: {uri} isn't there, and is passed over")
        return
    for each in _below(uri, conf) or [uri]:
        found.add(each, "", False)


def _cluster(conf: Conf) -> str:
    from howdah.hadoop import conf as hadoop_conf

    return hadoop_conf.default_filesystem(hadoop_conf.load(hadoop_conf.directory(conf.hadoop)))


def _below(uri: str, conf: Conf) -> list[str]:
    """Yield the files directly in a directory; none for a file."""
    files = _filesystem(uri, conf)
    entry = files.stat(uri)
    return list(_files_in(files, uri)) if entry is not None and entry.is_dir else []


def _files_in(files: FileSystem, uri: str) -> Iterator[str]:
    return (entry.uri for entry in files.children(uri) if not entry.is_dir)
