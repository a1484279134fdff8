"""A job's files find their places: from what the user wrote to a StagedJob in which everything is known to exist.

Nothing is changed anywhere but in this machine's own cache (packed directories): this is part of the dry run too.
Whatever is missing is reported at once, by place.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from howdah.data import hadoop_conf, uris
from howdah.data.cache import local_directory, location, sha256_of
from howdah.data.fs import filesystem
from howdah.data.listing import Listing, listing
from howdah.errors import Mistake, SpecError, StagingError
from howdah.spec.check import file_name, nearest, origin_of
from howdah.spec.job import Input, JobSpec, Output
from howdah.spec.staged import DataFile, StagedFile, StagedInput, StagedJob

ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar")


class FilesWrong(SpecError):
    """Nothing is wrong with how the job is written, but with the files that it names."""

    exit_code = StagingError.exit_code


def stage(
    job: JobSpec,
    base: Path,
    home: str,
    *,
    conf_dir: str = "",
    user: str = "",
    overwrite: bool = False,
    origins: Mapping[str, str] | None = None,
) -> StagedJob:
    """`job` with its files found, its inputs listed, its outputs absolute.

    Paths are relative to `base`, the job file's directory. `home` is the URI of the engine's home: when that is on this
    machine everything is, else paths without a scheme are on the default file system of the Hadoop configuration in
    `conf_dir`. `overwrite` allows it for all outputs. Nothing is uploaded: files that must be have a `source`, the
    inputs' are in `uploads`. The job's `environment` is not placed here.

    Raises:
        FilesWrong: everything that is missing, in the way, or not what it should be.
        EngineUnavailable: the file system does not answer.
    """
    conf = hadoop_conf.load(hadoop_conf.directory(conf_dir)) if uris.split(home)[0] != "file" else {}
    stager = _Stager(base.absolute(), home, conf_dir, user or _user(), conf)
    files = tuple(stager.files(job))
    inputs = tuple(stager.input(number, entry) for number, entry in enumerate(job.inputs))
    outputs = tuple(stager.outputs(job, overwrite))
    if stager.mistakes:
        found = (replace(one, origin=origin_of(one.place, origins or {})) for one in stager.mistakes)
        raise FilesWrong(list(found))
    return StagedJob(replace(job, outputs=outputs), home, files, inputs, user=stager.user)


def archive_file(name: str, path: str, home: str, place: str = "environment.archive", conf_dir: str = "") -> StagedFile:
    """An environment to ship as `name`: an archive with a `bin` in it, or a pex, which becomes `<name>/bin/python`.

    `path` is on this machine, or the URI of one that is on the cluster already; `place` is who names it.

    Raises:
        FilesWrong: there is no such file.
    """
    if uris.has_scheme(path):
        there = filesystem(path, conf_dir).stat(path)
        if there is None:
            raise FilesWrong.at(place, f"{path!r}: no such file")
        return StagedFile(name, there.uri, "archive", size=there.size, modified_ms=there.modified_ms)
    if not Path(path).is_file():
        raise FilesWrong.at(place, f"{path!r}: no such file", _neighbour(Path(path)))
    if path.endswith(ARCHIVES):
        return _local_file(Path(path), name, "archive", home)
    return _local_file(Path(path), f"{name}/bin/python", "file", home)


def _local_file(path: Path, name: str, kind: str, home: str) -> StagedFile:
    digest = sha256_of(path)
    return StagedFile(name, location(home, digest, path.name), kind, str(path), digest, path.stat().st_size)


def _user() -> str:
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


@dataclass
class _Stager:
    base: Path
    home: str
    conf_dir: str
    user: str
    conf: Mapping[str, str]
    mistakes: list[Mistake] = field(default_factory=list)

    @property
    def is_local(self) -> bool:
        return uris.split(self.home)[0] == "file"

    @property
    def cluster_fs(self) -> str:
        """The file system that paths without a scheme are on."""
        default = hadoop_conf.default_filesystem(self.conf)
        return uris.root(self.home if default.startswith("file:") else default)

    @property
    def user_directory(self) -> str:
        """Where relative paths on the job's file system start."""
        if self.is_local:
            return uris.of_local(self.base)
        return uris.join(self.cluster_fs, self.conf.get("dfs.user.home.dir.prefix", "/user"), self.user)

    def wrong(self, place: str, problem: str, near: str | None = None) -> None:
        self.mistakes.append(Mistake(place, problem, near))

    # Files and archives

    def files(self, job: JobSpec) -> Iterator[StagedFile]:
        for number, entry in enumerate(job.files):
            yield from self._file(f"files.{number}", entry, "file")
        for number, entry in enumerate(job.archives):
            yield from self._file(f"archives.{number}", entry, "archive")

    def _file(self, place: str, entry: str, kind: str) -> Iterator[StagedFile]:
        path, name = entry.partition("#")[0], file_name(entry)
        local = self.base / path
        try:
            if uris.has_scheme(path):
                yield from self._file_there(place, path, name, kind)
            elif local.is_dir():
                yield _local_file(_packed(local), name, "archive", self.home)
            elif local.exists():
                self._check_archive(place, path, kind)
                yield _local_file(local, name, kind, self.home)
            elif path.startswith("/") and not self.is_local:
                yield from self._file_there(place, uris.absolute(path, self.cluster_fs, ""), name, kind)
            else:
                self.wrong(place, f"{path!r}: no such file: {local}", _neighbour(local))
        except StagingError as error:
            self.wrong(place, str(error))

    def _file_there(self, place: str, uri: str, name: str, kind: str) -> Iterator[StagedFile]:
        entry = filesystem(uri, self.conf_dir).stat(uri)
        if entry is None:
            self.wrong(place, f"no such file: {uri}")
        elif entry.is_dir:
            self.wrong(place, f"{uri} is a directory; pack it as one of {', '.join(ARCHIVES)}")
        else:
            self._check_archive(place, uri, kind)
            yield StagedFile(name, entry.uri, kind, size=entry.size, modified_ms=entry.modified_ms)

    def _check_archive(self, place: str, path: str, kind: str) -> None:
        if kind == "archive" and not path.endswith(ARCHIVES):
            self.wrong(place, f"{path!r} is no archive: its name must end in one of {', '.join(ARCHIVES)}")

    # Inputs

    def input(self, number: int, entry: Input) -> StagedInput:
        files: dict[str, DataFile] = {}
        uploads: dict[str, str] = {}
        for place, path in _places(f"inputs.{number}.path", entry):
            try:
                for file, source in self._input_files(place, path):
                    files.setdefault(source or file.uri, file)  # named twice is there once
                    if source:
                        uploads[file.uri] = source
            except StagingError as error:
                self.wrong(place, str(error))
        return StagedInput(entry.to, tuple(files.values()), entry.roles, entry.share, uploads)

    def _input_files(self, place: str, path: str) -> Iterator[tuple[DataFile, str]]:
        """Pairs of a file and, when it has to be uploaded, where it is on this machine."""
        beside = uris.of_local(self.base / path)
        relative = not uris.has_scheme(path) and not path.startswith("/")
        found = self._listing(beside) if relative else Listing(False)
        if found.found and not self.is_local:
            yield from map(self._to_upload, found.files)
            return
        uri = uris.absolute(path, self.cluster_fs, self.user_directory)
        if not found.found:
            found = self._listing(uri)
        if not found.found:
            also = f"{self.base / path} nor " if relative and not self.is_local else ""
            near = _neighbour(Path(uris.path(uri))) if uris.split(uri)[0] == "file" else None
            where = _shown(uri)
            self.wrong(place, f"{path!r}: no such file or directory: {'neither ' + also if also else ''}{where}", near)
        elif not found.files:
            self.wrong(place, f"{path!r} has no files (names that begin with _ or . are passed over): {_shown(uri)}")
        yield from ((file, "") for file in found.files)

    def _listing(self, uri: str) -> Listing:
        return listing(filesystem(uri, self.conf_dir), uri)

    def _to_upload(self, file: DataFile) -> tuple[DataFile, str]:
        source = uris.path(file.uri)
        return replace(file, uri=location(self.home, sha256_of(source), source)), source

    # Outputs

    def outputs(self, job: JobSpec, overwrite: bool) -> Iterator[Output]:
        for number, output in enumerate(job.outputs):
            place = f"outputs.{number}.path"
            uri = uris.absolute(output.path, self.cluster_fs, self.user_directory)
            replaces = output.overwrite or overwrite
            try:
                if not replaces and filesystem(uri, self.conf_dir).exists(uri):
                    self.wrong(
                        place, f"{_shown(uri)} exists already: remove it, choose another, or allow it with overwrite"
                    )
            except StagingError as error:
                self.wrong(place, str(error))
            yield replace(output, path=uri, overwrite=replaces)


def _shown(uri: str) -> str:
    """A file of this machine is known by its path."""
    return uris.path(uri) if uris.split(uri)[0] == "file" else uri


def _packed(folder: Path) -> Path:
    # Most jobs have none, and archives are slow to import.
    from howdah.data import pack

    return pack.directory(folder, local_directory() / "packed")


def _places(place: str, entry: Input) -> list[tuple[str, str]]:
    if isinstance(entry.path, str):
        return [(place, entry.path)]
    return [(f"{place}.{number}", path) for number, path in enumerate(entry.path)]


def _neighbour(path: Path) -> str | None:
    """The name in the same directory that was probably meant."""
    try:
        return nearest(path.name, [each.name for each in path.parent.iterdir()])
    except OSError:
        return None
