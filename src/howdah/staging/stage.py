"""Makes a StagedJob from the user's job: finds its files, lists its inputs, and completes its URIs.

Staging changes only this machine's own cache (packed directories), because the dry run stages, too. All missing files
are reported together, each with the field of the job that names it.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from howdah.errors import Mistake, SpecError, StagingError
from howdah.hadoop import conf as hadoop_conf
from howdah.hadoop import identity
from howdah.inputs import assignment
from howdah.localfiles import regular_file
from howdah.spec import uris
from howdah.spec.job import Board, Checkpoint, Input, JobSpec, Output, Save
from howdah.spec.message import Message, message
from howdah.spec.staged import DataFile, StagedFile, StagedInput, StagedJob
from howdah.spec.validation import apply_alias
from howdah.spec.values import dataclass
from howdah.spec.working_files import SPREAD, entries, file_name, name_of_packed_file
from howdah.staging.files_wrong import FilesWrong
from howdah.staging.name_clashes import find_name_clashes, mark_shipped
from howdah.staging.path_listing import Listing, describe_hidden, listing, nearest_file_name, numbered_paths, tree
from howdah.staging.replacement import (
    KeptPath,
    Loss,
    directories_of,
    display_uri,
    find_forbidden,
    find_shared_places,
    list_losses,
    list_written_places,
    named_paths,
    personal_paths,
    why_not_keep_failed,
    why_not_put_aside,
    why_not_store,
)
from howdah.storage.content_cache import local_directory, location, sha256_of
from howdah.storage.factory import filesystem
from howdah.storage.linked_tree import describe_left_out
from howdah.storage.progress import Notice, no_notice

MAX_LEFT_OUT_LINES = 10
"""The most lines about entries that are left out; a last line counts the others."""
_REPACKED = (".tar.bz2", ".tbz2", ".tar.xz", ".txz")
"""Archives that are sent as .tar.gz, because YARN's nodes can unpack no other kind."""
_MAX_KEY_BYTES = 1 << 20
"""The largest private file that is packed for its permission bits."""
ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar", *_REPACKED)


def stage(
    job: JobSpec,
    base_directory: Path,
    home: str,
    *,
    conf_dir: str = "",
    user: str = "",
    overwrite: bool = False,
    fresh: bool = False,
    origins: Mapping[str, str] | None = None,
    notice: Notice = no_notice,
) -> StagedJob:
    """Return `job` with its files found, its inputs listed, and its outputs absolute.

    Paths are relative to `base_directory`, the job file's directory. `home` is the URI of the engine's home: if it
    is on this machine, all paths are; otherwise paths without a scheme are on the default file system of the Hadoop
    configuration in `conf_dir`. `overwrite` allows all outputs to replace what exists; with `fresh` the checkpoint will
    be renamed. Nothing is uploaded: files to upload have a `source`, and inputs list theirs in `uploads`. The job's
    `environment` is not staged here.
    `notice` is called with a sentence about each thing below a directory that is left out.

    Raises:
        FilesWrong: every file that is missing, in the way of an output, or of the wrong kind.
        SpecError: the checkpoint holds what must stay.
        EngineUnavailable: the file system does not answer.
    """
    conf = hadoop_conf.load(hadoop_conf.directory(conf_dir)) if uris.split(home)[0] != "file" else {}
    job = replace(job, inputs=tuple(map(apply_alias, job.inputs)))
    user = user or identity.user(identity.is_secure(conf))
    stager = _Stager(base_directory.absolute(), home, conf_dir, user, conf, notice)
    files = tuple(stager.files(job))
    stager.check_mounts(job)
    inputs = tuple(stager.input(number, job) for number in range(len(job.inputs)))
    shipped = set[str]()
    stager.mistakes += find_name_clashes(job, stager.base_directory, inputs, stager.directories, shipped)
    inputs = mark_shipped(inputs, shipped)
    job = stager.with_fewer_tasks(job, inputs)
    checkpoint = stager.checkpoint(job.checkpoint)
    board = stager.board(job.board)
    outputs = tuple(stager.outputs(job, overwrite))
    stager.check_replacements(job, outputs, checkpoint.path if fresh else "")
    stager.check_places(outputs, checkpoint)
    if (more := stager.left_out - MAX_LEFT_OUT_LINES) > 0:
        notice(message("{count} more are left out in the same way", count=more))
    if stager.mistakes:
        found = (each.with_origin(origins or {}) for each in stager.mistakes)
        raise FilesWrong(list(found))
    job = replace(job, outputs=outputs, checkpoint=checkpoint, board=board)
    return StagedJob(job, home, files, (*inputs, *stager.directories), user=stager.user)


def archive_file(name: str, path: str, home: str, place: str = "environment.archive", conf_dir: str = "") -> StagedFile:
    """Return an environment to ship as `name`: an archive with a `bin` in it, or a pex, which becomes
    `<name>/bin/python`.

    `path` is on this machine, or the URI of an environment on the cluster; `place` is the field that names it.

    Raises:
        FilesWrong: there is no such file.
    """
    if uris.has_scheme(path):
        entry = filesystem(path, conf_dir).stat(path)
        if entry is None:
            raise FilesWrong.at(place, f"{path!r}: no such file")
        if path.endswith(_REPACKED) and uris.split(home)[0] != "file":
            raise FilesWrong.at(
                place, f"{path} can't be unpacked by YARN's nodes: pack it as .zip, .tar.gz, .tgz or .tar"
            )
        return StagedFile(name, entry.uri, "archive", size=entry.size, modified_ms=entry.modified_ms)
    try:
        exists = regular_file.exists(path)
    except StagingError as error:
        raise FilesWrong.at(place, str(error)) from None
    if Path(path).is_dir():
        raise FilesWrong.at(place, f"{path} is a directory; pack it as one of {', '.join(ARCHIVES)}")
    if not exists:
        raise FilesWrong.at(place, f"{path!r}: no such file", nearest_file_name(Path(path)))
    if path.endswith(ARCHIVES):
        return _local_file(Path(path), name, "archive", home)
    return _local_file(Path(path), f"{name}/bin/python", "file", home)


def _local_file(path: Path, name: str, kind: str, home: str) -> StagedFile:
    if kind != "file" and path.name.endswith(_REPACKED):
        from howdah.staging import archive  # is slow to import, and most jobs have no such archive

        path = archive.with_gzip(path, local_directory() / "packed")
    digest = sha256_of(path)
    return StagedFile(name, location(home, digest, path.name), kind, str(path), digest, path.stat().st_size)


@dataclass
class _Stager:
    base_directory: Path
    home: str
    conf_dir: str
    user: str
    conf: Mapping[str, str]
    notice: Notice
    mistakes: list[Mistake] = field(default_factory=list)
    left_out: int = 0
    """The number of entries below directories that are left out."""
    directories: list[StagedInput] = field(default_factory=list)
    """Directories on the cluster that `files` names."""
    kept: list[KeptPath] = field(default_factory=list)
    """The paths that no output may replace."""

    @property
    def is_local(self) -> bool:
        return uris.split(self.home)[0] == "file"

    @property
    def cluster_fs(self) -> str:
        """Return the file system of paths without a scheme."""
        default = hadoop_conf.default_filesystem(self.conf)
        return uris.root(self.home if default.startswith("file:") else default)

    @property
    def user_directory(self) -> str:
        """Return the directory at which relative paths on the job's file system start."""
        if self.is_local:
            return uris.of_local(self.base_directory)
        return hadoop_conf.home(self.conf, self.cluster_fs, self.user)

    def _left_out(self, path: str, reason: str) -> None:
        self._tell(describe_left_out(path, reason))

    def _tell(self, sentence: Message) -> None:
        self.left_out += 1
        if self.left_out <= MAX_LEFT_OUT_LINES:
            self.notice(sentence)

    def wrong(self, place: str, problem: str, near: str | None = None) -> None:
        self.mistakes.append(Mistake(place, problem, near))

    # Files and archives

    def files(self, job: JobSpec) -> Iterator[StagedFile]:
        for place, kind, entry, roles in entries(job):
            for found in self._file(place, entry, kind):
                if isinstance(found, StagedInput):
                    self.directories.append(replace(found, roles=roles or tuple(job.roles)))
                else:
                    yield replace(found, roles=roles) if roles else found

    def _file(self, place: str, entry: str, kind: str) -> Iterator[StagedFile | StagedInput]:
        path, name = entry.partition("#")[0], file_name(entry)
        self._keep(place, path, whole=True)
        if name == SPREAD:
            name, kind = f"howdah-{place.replace('.', '-')}", "spread"
        local = self.base_directory / path
        try:
            if uris.has_scheme(path):
                yield from self._cluster_file(place, uris.absolute(path, self.cluster_fs, ""), name, kind)
            elif regular_file.exists(local) and local.is_dir():
                yield from self._directory(place, local, name, "archive" if kind == "file" else kind)
            elif local.exists():
                self._check_archive(place, path, kind)
                yield self._whole_file(local, name, kind)
            elif path.startswith("/") and not self.is_local:
                yield from self._cluster_file(place, uris.absolute(path, self.cluster_fs, ""), name, kind, path)
            else:
                self.wrong(place, f"{path!r}: no such file: {local}", nearest_file_name(local))
        except StagingError as error:
            self.wrong(place, str(error))

    def _directory(self, place: str, directory: Path, name: str, kind: str) -> Iterator[StagedFile]:
        """Pack a directory; a large one becomes several archives, which are unpacked into one directory."""
        from howdah.staging import archive  # is slow to import, and most jobs have no directory

        linked = list[str]()
        parts = archive.directory(directory, local_directory() / "packed", self._left_out, linked.append, self.home)
        self.kept += [KeptPath(place, uris.of_local(path), whole=True) for path in dict.fromkeys(linked)]
        if len(parts) == 1 and ":" not in name:
            yield _local_file(parts[0], name, kind, self.home)
            return
        for number, part in enumerate(parts):
            yield self._part(part, name, number, "" if kind == "spread" else name)

    def _part(self, path: Path, name: str, number: int, into: str) -> StagedFile:
        file = _local_file(path, f"howdah-part-{number}-{name.replace(':', '%3A')}", "spread", self.home)
        return replace(file, into=into)

    def _whole_file(self, path: Path, name: str, kind: str) -> StagedFile:
        """Return a file or archive. If its name contains `:` it is put into an archive, because YARN can't link to it.
        So is a small private file, such as a key, because all containers can read the cache."""
        if kind != "file" and path.name.endswith(ARCHIVES):
            from howdah.staging import archive

            archive.check(path)
        private = kind == "file" and path.stat().st_size <= _MAX_KEY_BYTES and regular_file.is_private(path.stat())
        if (":" not in name and not private) or kind == "spread":
            return _local_file(path, name, kind, self.home)
        if kind == "archive":
            return self._part(path, name, 0, name)
        from howdah.staging import archive

        packed = archive.file(path, name, local_directory() / "packed")
        return _local_file(packed, name_of_packed_file(name), "spread", self.home)

    def _cluster_file(
        self, place: str, uri: str, name: str, kind: str, missing: str = ""
    ) -> Iterator[StagedFile | StagedInput]:
        """Yield a file of the cluster. A directory becomes an input, whose files each task downloads, because a node
        can only unpack archives. `missing` is the local path at which the file was not found."""
        fs = filesystem(uri, self.conf_dir)
        entry = fs.stat(uri)
        if entry is None:
            self.wrong(place, f"no such file: {f'neither {missing} here nor ' if missing else ''}{uri}")
        elif entry.is_dir and kind == "file":
            found = tree(fs, entry, self._left_out, self.home)
            self._keep_directories(place, (file.uri for file in found.files))
            yield StagedInput(name, found.files, share="all", empty=found.empty)
        elif entry.is_dir:
            self.wrong(place, f"{uri} is a directory; pack it as one of {', '.join(ARCHIVES)}")
        elif ":" in name and not self.is_local:
            self.wrong(place, f"is to be {name!r}, and YARN takes no ':' in a name: give it another one after #")
        else:
            self._check_archive(place, uri, kind)
            if kind != "file" and not self.is_local and uri.endswith(_REPACKED):
                self.wrong(place, f"{uri} can't be unpacked by YARN's nodes: pack it as .zip, .tar.gz, .tgz or .tar")
            yield StagedFile(name, entry.uri, kind, size=entry.size, modified_ms=entry.modified_ms)

    def _check_archive(self, place: str, path: str, kind: str) -> None:
        if kind != "file" and not path.endswith(ARCHIVES):
            self.wrong(place, f"{path!r} is not an archive: its name must end in one of {', '.join(ARCHIVES)}")

    def check_mounts(self, job: JobSpec) -> None:
        """Refuse to mount a directory of the cluster, because a container starts before its executor downloads
        anything."""
        owners = [("environment", job.environment.mounts)]
        owners += [(f"roles.{name}", role.mounts) for name, role in job.roles.items()]
        fetched = {directory.to for directory in self.directories}
        for owner, mounts in owners:
            for number, mount in enumerate(mounts):
                if mount.partition(":")[0] in fetched:
                    problem = f"is {mount!r}, a directory on the cluster, which can't be mounted"
                    self.wrong(f"{owner}.mounts.{number}", f"{problem}: pack it as one of {', '.join(ARCHIVES)}")

    # Inputs

    def input(self, number: int, job: JobSpec) -> StagedInput:
        entry = job.inputs[number]
        files: dict[str, DataFile] = {}
        uploads: dict[str, str] = {}
        empty: dict[str, None] = {}
        mistakes = len(self.mistakes)
        for place, path in numbered_paths(f"inputs.{number}.path", entry.path):
            try:
                self._keep(place, path)
                for file, source in self._input_files(place, path, empty):
                    files.setdefault(source or file.uri, file)  # a file that is named twice counts once
                    if source:
                        uploads[file.uri] = source
            except StagingError as error:
                self.wrong(place, str(error))
        self._keep_directories(f"inputs.{number}.path", files)
        if len(self.mistakes) == mistakes:
            self._check_shares(f"inputs.{number}", job, entry, list(files.values()))
        found = tuple(
            replace(file, name=posixpath.basename(file.name)) if entry.flat else file for file in files.values()
        )
        names = () if entry.flat else tuple(empty)
        staged = StagedInput(entry.to, found, entry.roles, entry.share, uploads, empty=names)
        if entry.strategy == "stream":
            from howdah.inputs.streaming.split_planner import plan_splits  # most jobs stream nothing

            staged, stream_mistakes = plan_splits(number, job, entry, staged, self.conf_dir)
            self.mistakes.extend(stream_mistakes)
        return staged

    def _check_shares(self, place: str, job: JobSpec, entry: Input, files: list[DataFile]) -> None:
        """Refuse tasks without data: they train nothing, and others may wait for them."""
        if entry.strategy == "stream" or entry.allow_empty or entry.fewer_tasks:
            return  # splits of one file go to several tasks
        without = assignment.tasks_without_files(job, entry, files)
        if without:
            tasks = len(assignment.sharing_tasks(job, entry.roles, without[0].role))
            others = f" and {len(without) - 1} more" if len(without) > 1 else ""
            self.wrong(
                f"{place}.share",
                f"has fewer files ({len(files)}) than tasks ({tasks}): {without[0]}{others} would have none. Start"
                " fewer tasks, give all files to each with `share: all`, or allow it with `allow_empty: true`",
            )

    def with_fewer_tasks(self, job: JobSpec, inputs: tuple[StagedInput, ...]) -> JobSpec:
        """Return the job with no more tasks than files, as far as it allows fewer tasks."""
        fewer = assignment.with_fewer_tasks(job, inputs)
        named = {f"outputs.{number}.tasks": output.tasks for number, output in enumerate(job.outputs)}
        for place, task in {**named, "board.tasks": job.board.tasks, "checkpoint.tasks": job.checkpoint.tasks}.items():
            role, _, index = task.partition(":")
            if index.isdigit() and int(index) >= fewer.roles[role].replicas:
                there = fewer.roles[role].replicas
                self.wrong(place, f"is {task!r}, but there are {there} tasks of {role}: one for each file")
        return fewer

    def _input_files(self, place: str, path: str, empty: dict[str, None]) -> Iterator[tuple[DataFile, str]]:
        """Yield pairs of a file and its local path, which is "" if the file needs no upload; add empty directories."""
        beside = uris.of_local(self.base_directory / path)
        relative = not uris.has_scheme(path) and not path.startswith("/")
        found = self._listing(place, path, beside, empty) if relative else Listing(False)
        if found.found and not self.is_local:
            for file in found.files:
                source = uris.path(file.uri)
                # The upload is named by its content, and has no time of its own.
                yield replace(file, uri=location(self.home, sha256_of(source), source), modified_ms=0), source
            return
        uri = uris.absolute(path, self.cluster_fs, self.user_directory)
        if not found.found:
            found = self._listing(place, path, uri, empty)
        if not found.found:
            also = f"{self.base_directory / path} nor " if relative and not self.is_local else ""
            near = nearest_file_name(Path(uris.path(uri))) if uris.split(uri)[0] == "file" else None
            where = display_uri(uri)
            self.wrong(place, f"{path!r}: no such file or directory: {'neither ' + also if also else ''}{where}", near)
        elif not found.files:
            self.wrong(place, f"{path!r} has no files (names that begin with _ or . are skipped): {display_uri(uri)}")
        for file in found.files:
            if file.uri.startswith("file:") and not os.access(uris.path(file.uri), os.R_OK):
                self.wrong(place, f"{display_uri(file.uri)}: permission denied")
                break
        yield from ((file, "") for file in found.files)

    def _listing(self, place: str, path: str, uri: str, empty: dict[str, None]) -> Listing:
        if uris.split(uri)[0] == "file" and not uris.is_pattern(uris.path(uri)):
            regular_file.exists(uris.path(uri))  # refuses a device, which would be a file without an end
        found = listing(filesystem(uri, self.conf_dir), uri, self._left_out, self.home)
        if found.hidden and found.files:
            self._tell(describe_hidden(display_uri(uri), found.hidden))
        for each in found.missing if found.found else ():
            self.wrong(place, f"{path!r}: no such file or directory: {display_uri(each)}")
        empty.update(dict.fromkeys(found.empty))
        return found

    # Outputs

    def outputs(self, job: JobSpec, overwrite: bool) -> Iterator[Output]:
        for number, output in enumerate(job.outputs):
            place = f"outputs.{number}.path"
            uri = uris.absolute(output.path, self.cluster_fs, self.user_directory)
            replaces = output.overwrite or overwrite
            if problem := why_not_keep_failed(job.outputs, number):
                self.wrong(place, problem)
            try:
                local = Path(uris.path(uri)) if uri.startswith("file:") else None
                if local is not None and local.is_symlink() and not local.exists():
                    self.wrong(place, f"{display_uri(uri)} is a link to nothing: remove it, or choose another")
                elif not replaces and filesystem(uri, self.conf_dir).exists(uri):
                    self.wrong(
                        place,
                        f"{display_uri(uri)} exists already: remove it, choose another, or allow it with overwrite",
                    )
            except StagingError as error:
                self.wrong(place, str(error))
            if output.strategy == "stream":
                from howdah.inputs.streaming.split_planner import format_mistakes

                self.mistakes.extend(format_mistakes(f"outputs.{number}", output))
            yield replace(output, path=uri, overwrite=replaces, save=self._save(output.save))

    def check_places(self, outputs: Sequence[Output], checkpoint: Checkpoint) -> None:
        """Refuse outputs that are the same place under several names: the second one would find the place occupied when
        it is moved."""
        written = list_written_places(outputs, checkpoint)
        paths = written[: len(outputs)]
        for first, second in find_shared_places(written, self.conf_dir):
            is_told = any(mistake.place in (first.what, second.what) for mistake in self.mistakes)
            is_inside = second.what == "checkpoint.path" and first.uri.startswith(f"{second.uri}/")
            if first in paths and not is_told and not is_inside:
                shown = f"{second.what} ({display_uri(second.uri)})"
                self.wrong(first.what, f"is {display_uri(first.uri)}, which is, holds or lies in {shown}")

    def check_replacements(self, job: JobSpec, outputs: Sequence[Output], put_aside: str) -> None:
        """Refuse outputs that would replace the job's inputs, its code or checkpoints, or a directory of people. Refuse
        a checkpoint that is to be `put_aside`, if any, with such files in it."""
        losses = list[Loss]()
        for number in range(len(outputs)):
            try:
                losses += list_losses(outputs, number, self.conf_dir)
            except StagingError as error:
                self.wrong(f"outputs.{number}.path", str(error))
        if not losses and not put_aside:
            return
        for place, path, how in named_paths(job, self.base_directory):
            self._keep(place, path, **how)
        self.kept += personal_paths(self.base_directory)
        self.kept.append(KeptPath("where howdah keeps its jobs", self.home, whole=True))
        if not self.is_local:
            self.kept.append(KeptPath("your home directory", self.user_directory))
        for place, problem in find_forbidden(losses, outputs, self.kept, self.conf_dir):
            self.wrong(place, problem)
        made = [KeptPath(f"outputs.{number}.path", output.path) for number, output in enumerate(outputs)]
        if put_aside and (problem := why_not_put_aside(put_aside, [*self.kept, *made], self.conf_dir)):
            if not self.mistakes:
                raise SpecError.at("--fresh", problem)
            self.wrong("--fresh", problem)

    def _keep_directories(self, place: str, files: Iterable[str]) -> None:
        self.kept += [KeptPath(place, each, is_around_files=True) for each in sorted(directories_of(files))]

    def _keep(self, place: str, path: str, **how: bool) -> None:
        """Note that a path, of this machine or of the cluster, belongs to the job."""
        if path and not uris.has_scheme(path):
            self.kept.append(KeptPath(place, uris.of_local(self.base_directory / path), **how))
        if path:
            self.kept.append(KeptPath(place, uris.absolute(path, self.cluster_fs, self.user_directory), **how))

    def _save(self, save: Save) -> Save:
        """Complete the URI that begins the names of snapshots. A `/` at its end stays, and makes it a directory."""
        if not save.to:
            return save
        end = "/" if save.to.endswith("/") else ""
        return replace(save, to=uris.absolute(save.to, self.cluster_fs, self.user_directory) + end)

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """Complete the URI of the directory of checkpoints, which may exist or not."""
        return replace(checkpoint, path=self._directory_uri("checkpoint.path", checkpoint.path, checkpoint.local))

    def board(self, board: Board) -> Board:
        """Complete the URI of the directory of event files, which may exist or not."""
        return replace(board, path=self._directory_uri("board.path", board.path, board.local))

    def _directory_uri(self, place: str, path: str, local: str) -> str:
        """Return the URI of a directory; report a file at that place, and a place in which `local` must not be
        stored."""
        if not path:
            return ""
        uri = uris.absolute(path, self.cluster_fs, self.user_directory)
        kept = [*self.kept, *personal_paths(self.base_directory), KeptPath("your home directory", self.user_directory)]
        self.kept.append(KeptPath(place, uri, whole=True))
        try:
            entry = filesystem(uri, self.conf_dir).stat(uri)
            if entry is not None and not entry.is_dir:
                self.wrong(place, f"{display_uri(uri)} is a file, must be a directory or not there yet")
            elif problem := why_not_store(uri, kept if local else (), self.conf_dir):
                self.wrong(place, problem)
        except StagingError as error:
            self.wrong(place, str(error))
        return uri
