"""Collects the files of a TonY job: sources, virtual environment, resources, HDFS class path.

TonY writes a resource as `SOURCE[::NAME][#archive]`. NAME is its name in the container; a local directory arrives as a
directory, a directory on the cluster as the files directly in it.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from howdah.compat.tony.conf import Conf
from howdah.compat.tony.options import TonyOptions
from howdah.errors import Mistake
from howdah.spec import Role, uris
from howdah.spec.values import dataclass

if TYPE_CHECKING:
    from howdah.storage.filesystem import FileSystem

ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar")
VENV = "venv"


@dataclass
class Files:
    """The files of all roles, or of one role."""

    files: list[str] = field(default_factory=list)
    """The entries of the spec's `files`."""
    archives: list[str] = field(default_factory=list)
    """The entries of the spec's `archives`."""
    notes: list[str] = field(default_factory=list)
    of_role: dict[str, Files] = field(default_factory=dict)
    """The files of each role, in addition to those of all roles."""
    all: Files | None = None
    """The files of all roles, in those of one role."""

    def add(self, path: str, name: str, archive: bool) -> None:
        """Add a resource once."""
        entry = f"{path}#{name}" if name else path
        kind = "archives" if archive else "files"
        entries = getattr(self, kind)
        if entry not in entries and (self.all is None or entry not in getattr(self.all, kind)):
            entries.append(entry)

    def given(self, roles: Mapping[str, Role]) -> dict[str, Role]:
        """Return the roles, each with its own files."""
        own = {name: self.of_role.get(name, Files()) for name in roles}
        return {
            name: replace(role, files=tuple(own[name].files), archives=tuple(own[name].archives))
            for name, role in roles.items()
        }


def collect_files(options: TonyOptions, conf: Conf, names: Mapping[str, str], directory: Path) -> Files:
    """Collect all files, by the role that gets them; `names` has each role's name in keys."""
    found = Files()
    source, venv = options.first("src_dir"), options.first("python_venv")
    if source:
        found.add(source, ".", source.endswith(ARCHIVES))
    if venv:
        is_directory = os.path.isdir(directory / venv)  # noqa: PTH112 - False also for a name that no file can have
        found.add(venv, VENV, not is_directory)
        if not venv.endswith(ARCHIVES) and not is_directory:
            options.mistakes.append(Mistake("--python_venv", f"is {venv!r}, must be an archive: {', '.join(ARCHIVES)}"))
    for entry in conf.get_list("tony.containers.resources"):
        _resource(found, conf, "tony.containers.resources", entry, directory)
    for path in options.first("hdfs_classpath").split(","):
        if path.strip():
            _class_path_entry(found, conf, path.strip())
    for key, name in (("hdfs", "hdfs-site.xml"), ("yarn", "yarn-site.xml"), ("mapred", "mapred-site.xml")):
        path = conf.get(f"tony.application.{key}-conf-path")
        if path:
            found.add(path, name, False)
    for role, name in names.items():  # last: an entry that all roles get is not added again
        own = found.of_role[role] = Files(all=found)
        for entry in conf.get_list(f"tony.{name}.resources"):
            _resource(own, conf, f"tony.{name}.resources", entry, directory)
    return found


def _resource(files: Files, conf: Conf, key: str, entry: str, directory: Path) -> None:
    text, archive, rest = entry.partition("#archive")
    source, _, name = text.partition("::")
    if not source or rest or "/" in name:
        conf.wrong(key, f"has {entry!r}, must be SOURCE, SOURCE::NAME or SOURCE::NAME#archive with a plain NAME")
    elif uris.has_scheme(source):
        for path in _files_of(source, conf):
            # The name is for a single file, not for the files of a directory.
            files.add(path, name if path == source else "", bool(archive))
    elif os.path.isdir(directory / source):  # noqa: PTH112 - False also for a name that no file can have
        files.add(source, name, False)
    else:
        files.add(source, name or posixpath.basename(source), bool(archive))


def _filesystem(uri: str, conf: Conf) -> FileSystem:
    from howdah.storage.factory import filesystem  # most command lines name local files only

    return filesystem(uri, conf.hadoop)


def _class_path_entry(files: Files, conf: Conf, path: str) -> None:
    """Add the files of one entry of the HDFS class path, or a note that there is none."""
    if not uris.has_scheme(path):
        from howdah.hadoop import conf as hadoop_conf

        root = hadoop_conf.default_filesystem(hadoop_conf.load(hadoop_conf.directory(conf.hadoop)))
        path = uris.absolute(path, root, root)
    if not _filesystem(path, conf).exists(path):
        files.notes.append(f"--hdfs_classpath: {path} isn't there, and is ignored")
        return
    for file in _files_of(path, conf):
        files.add(file, "", False)


def _files_of(uri: str, conf: Conf) -> list[str]:
    """Return the files directly in a directory, or the URI itself if there are none."""
    files = _filesystem(uri, conf)
    entry = files.stat(uri)
    found = files.children(uri) if entry is not None and entry.is_dir else []
    return [entry.uri for entry in found if not entry.is_dir] or [uri]
