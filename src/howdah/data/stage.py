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

from howdah.data import hadoop_conf, pack, uris
from howdah.data.cache import local_directory, location, sha256_of
from howdah.data.fs import filesystem
from howdah.data.listing import Listing, listing
from howdah.errors import Mistake, SpecError, StagingError
from howdah.spec.check import file_name, nearest, origin_of
from howdah.spec.job import Input, JobSpec, Output
from howdah.spec.staged import DataFile, StagedFile, StagedInput, StagedJob

ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar")
ENVIRONMENT = "environment"
"""Name of the job's environment in each working directory."""


def stage(
    job: JobSpec,
    base: Path,
    home: str,
    *,
    cluster_fs: str = "file://",
    user: str = "",
    overwrite: bool = False,
    settings: Mapping[str, str] | None = None,
    origins: Mapping[str, str] | None = None,
) -> StagedJob:
    """`job` with its files found, its inputs listed, its outputs absolute.

    Paths are relative to `base`, the job file's directory. `home` is the URI of the engine's home, `cluster_fs` of the
    file system that paths without scheme are on. `overwrite` allows it for all outputs. The files are not uploaded:
    those that must be have a `source`, the inputs' are in `uploads`. Of `environment` it places `archive` only;
    `settings` may name `hadoop_conf_dir`.

    Raises:
        SpecError: everything that is missing, in the way, or not what it should be.
        EngineUnavailable: the file system does not answer.
    """
    conf_dir = (settings or {}).get("hadoop_conf_dir", "")
    stager = _Stager(base.absolute(), home, cluster_fs, user or _user(), conf_dir)
    files = [*stager.files(job), *stager.environment(job)]
    inputs = tuple(stager.input(number, entry) for number, entry in enumerate(job.inputs))
    outputs = tuple(stager.outputs(job, overwrite))
    if stager.mistakes:
        found = (replace(one, origin=origin_of(one.place, origins or {})) for one in stager.mistakes)
        raise SpecError(list(found))
    staged = StagedJob(replace(job, outputs=outputs), home, tuple(files), inputs, user=user or _user())
    return replace(staged, program_path=(f"{ENVIRONMENT}/bin",) if job.environment.archive else ())


def _user() -> str:
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


@dataclass
class _Stager:
    base: Path
    home: str
    cluster_fs: str
    user: str
    conf_dir: str
    mistakes: list[Mistake] = field(default_factory=list)

    @property
    def is_local(self) -> bool:
        return uris.split(self.cluster_fs)[0] == "file"

    @property
    def user_directory(self) -> str:
        """Where relative paths on the job's file system start."""
        if self.is_local:
            return uris.of_local(self.base)
        conf = hadoop_conf.load(hadoop_conf.directory(self.conf_dir))
        return uris.join(self.cluster_fs, conf.get("dfs.user.home.dir.prefix", "/user"), self.user)

    def wrong(self, place: str, problem: str, near: str | None = None) -> None:
        self.mistakes.append(Mistake(place, problem, near))

    # Files and archives

    def files(self, job: JobSpec) -> Iterator[StagedFile]:
        for number, entry in enumerate(job.files):
            yield from self._file(f"files.{number}", entry, "file")
        for number, entry in enumerate(job.archives):
            yield from self._file(f"archives.{number}", entry, "archive")

    def environment(self, job: JobSpec) -> Iterator[StagedFile]:
        entry = job.environment.archive
        if not entry:
            return
        path = entry.partition("#")[0]
        if path.endswith(ARCHIVES) or (self.base / path).is_dir():
            yield from self._file("environment.archive", f"{path}#{ENVIRONMENT}", "archive")
        else:  # a pex: a program that is a Python interpreter
            found = list(self._file("environment.archive", f"{path}#python", "file"))
            yield from (replace(file, name=f"{ENVIRONMENT}/bin/{name}") for file in found for name in _PYTHONS)

    def _file(self, place: str, entry: str, kind: str) -> Iterator[StagedFile]:
        path, name = entry.partition("#")[0], file_name(entry)
        local = self.base / path
        try:
            if uris.has_scheme(path):
                yield from self._file_there(place, path, name, kind)
            elif local.is_dir():
                yield self._local_file(pack.directory(local, local_directory() / "packed"), name, "archive")
            elif local.exists():
                self._check_archive(place, path, kind)
                yield self._local_file(local, name, kind)
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

    def _local_file(self, path: Path, name: str, kind: str) -> StagedFile:
        digest = sha256_of(path)
        uri = location(self.home, digest, path.name)
        return StagedFile(name, uri, kind, str(path), digest, path.stat().st_size)

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
            self.wrong(place, f"{path!r}: no such file or directory: {'neither ' + also if also else ''}{uri}", near)
        elif not found.files:
            self.wrong(place, f"{path!r} has no files (names that begin with _ or . are passed over): {uri}")
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
                    self.wrong(place, f"{uri} exists already: remove it, choose another, or allow it with overwrite")
            except StagingError as error:
                self.wrong(place, str(error))
            yield replace(output, path=uri, overwrite=replaces)


_PYTHONS = ("python", "python3")


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
