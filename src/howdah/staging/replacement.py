"""Refuses outputs that would replace files that must stay: the job's inputs, its code and checkpoints, and directories
that contain such files, under any name.

An output that may `overwrite` replaces everything at its path. That may be a data set whose path was given by mistake,
or a directory above it. So each path that the job names, and each file of its inputs, is compared with the output's
path, after links, mounts and the names of one HDFS have been followed.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath

from howdah.errors import SpecError, StagingError
from howdah.spec import uris
from howdah.spec.job import Checkpoint, Environment, JobSpec, Output
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import MAX_NAME_BYTES, Entry
from howdah.storage.published import is_published
from howdah.storage.snapshot_places import list_snapshots, snapshot_prefix

_PATH = re.compile(r"(?:^|(?<=[\s='\":,;]))(?:[A-Za-z][A-Za-z0-9+.-]*://|file:/|~?/|\$HOME/|\$\{HOME\}/)[^\s'\",;]*")
_HOME = re.compile(r"~(?=/)|\$HOME(?=/)|\$\{HOME\}")
_RESERVED = "/.reserved/"  # below it HDFS shows all of itself once more
_KINDS = {"viewfs": "hdfs", "s3a": "s3", "gcs": "gs", "az": "abfs"}
"""Schemes that name the same files as another scheme."""
_CODE = (".py", ".sh", ".bash", ".zsh", ".r", ".jl", ".pl", ".lua", ".js", ".ipynb", ".jar")
_LOOKS = 3
_FAILED_SUFFIX = ".failed"


@dataclass(frozen=True)
class KeptPath:
    """A path that no output may replace."""

    what: str
    """A description of the path: the field of the job that names it, or a sentence's object (`the home directory`)."""
    uri: str
    """The URI that the job names, before links and mounts are followed."""
    whole: bool = False
    """Whether everything below belongs to it: an output there may replace only what a job has published there."""
    is_mentioned: bool = False
    """Whether a command or a variable mentions it, possibly as the path that is to be replaced. A published output
    there may be replaced."""
    is_around_files: bool = False
    """Whether it is a directory that contains files of an input; the job need not name it."""


def personal_paths(job_directory: Path) -> list[KeptPath]:
    """Return the directories of this machine that contain a person's own files."""
    directories = {
        "the job file's directory": job_directory,
        "the current directory": Path.cwd(),
        "your home directory": Path.home(),
    }
    return [KeptPath(what, uris.of_local(path)) for what, path in directories.items()]


def mentioned_paths(job: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the absolute paths in a job's commands and variables, each after its field: programs may read these
    paths."""
    texts = [("env", value) for value in job.env.values()]
    for name, role in job.roles.items():
        words = [role.command] if isinstance(role.command, str) else role.command
        texts += [(f"roles.{name}.command", word) for word in words]
        texts += [(f"roles.{name}.env", value) for value in role.env.values()]
    for place, text in texts:
        yield from ((place, _HOME.sub(lambda _: str(Path.home()), path, count=1)) for path in _PATH.findall(text))


def why_not_replace(uri: str, kept_paths: Iterable[KeptPath], conf_dir: str) -> str:
    """Return why an output must not replace the present or future content of `uri`; "" if it may.

    Raises:
        StagingError: a file system does not answer.
    """
    fs = filesystem(uri, conf_dir)
    found = fs.stat(uri)
    shown = display_uri(uri)
    if uris.path(uri) == "/" or uris.path(uri).startswith(_RESERVED):
        return f"would replace {shown}, which is the file system's own"
    if uri.startswith("file:") and os.path.ismount(uris.path(uri)):
        return f"would replace {shown}, which is a mount point and can't be renamed: name a directory in it"
    if found is not None and not found.is_dir:
        return f"would replace {shown}, which is a file; an output is a directory"
    _is_same_hdfs.cache_clear()  # it holds while one output is looked at
    is_ours = found is None or is_published(fs, uri) or not fs.children(uri)
    output = _Place(uri, conf_dir)
    for kept, place in _places_beside(uri, kept_paths, conf_dir):
        if output.holds(place) and not (kept.is_mentioned and is_ours):
            return f"would replace {_describe_held(output, kept, place)}"
        if kept.whole and not is_ours and place.holds(output):
            return (
                f"would replace {shown}, which lies in {kept.what} ({display_uri(kept.uri)}), and no job of howdah's"
                " has published it"
            )
    return ""


def why_not_put_aside(uri: str, kept_paths: Iterable[KeptPath], conf_dir: str) -> str:
    """Return why the checkpoint at `uri` must not be renamed before the job begins; "" if it may. The path in a command
    is often the checkpoint itself: of such paths only code has to stay.

    Raises:
        StagingError: a file system does not answer.
    """
    kept = [
        replace(each, whole=False, is_mentioned=False)  # a checkpoint may be in the job's code
        for each in kept_paths
        if each.what not in ("checkpoint.path", "board.path") and not (each.is_mentioned and not _is_code(each.uri))
    ]
    return why_not_replace(uri, kept, conf_dir)


def _is_code(uri: str) -> bool:
    path = uris.path(uri)
    ending = os.path.splitext(path)[1]  # noqa: PTH122
    is_program = not ending and uri.startswith("file:") and os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113
    return is_program or ending.lower() in _CODE


@dataclass(frozen=True)
class Loss:
    """A path whose content a job may replace or remove."""

    place: str
    """The field of the job that allows it."""
    uri: str
    verb: str = ""
    """What happens to the content, if only jobs can have made it; "" for the content of an output's path, which may be
    anything."""


def why_not_keep_failed(outputs: Sequence[Output], number: int) -> str:
    """Return why output `number` can't be kept when the job fails; "" if it can or need not be."""
    size, most = len(os.fsencode(uris.name(outputs[number].path))), MAX_NAME_BYTES - len(_FAILED_SUFFIX)
    if size <= most or not _is_kept_when_failed(outputs, number):
        return ""
    return f"has a name of {size} bytes, must be at most {most}: what a failed job has made is kept at <path>.failed"


def _is_kept_when_failed(outputs: Sequence[Output], number: int) -> bool:
    """Return whether output `number` may be kept when the job fails. That happens without a request, too, when another
    output is missing because no task made it."""
    uploads = [output for output in outputs if output.strategy == "upload"]
    return outputs[number] in uploads and (outputs[number].keep_failed or len(uploads) > 1)


def list_losses(outputs: Sequence[Output], number: int, conf_dir: str) -> Iterator[Loss]:
    """Yield the paths whose content output `number` may replace or remove: by `overwrite` its own path, when the job
    fails the output of an earlier job at `<path>.failed`, and by `save.keep` the existing snapshots.

    Raises:
        StagingError: a file system does not answer.
    """
    output, place = outputs[number], f"outputs.{number}"
    if output.overwrite:
        yield Loss(f"{place}.path", output.path)
    failed = f"{output.path.rstrip('/')}{_FAILED_SUFFIX}"
    may_be_there = _is_kept_when_failed(outputs, number) and not why_not_keep_failed(outputs, number)
    if may_be_there and filesystem(failed, conf_dir).exists(failed):
        yield Loss(f"{place}.{'keep_failed' if output.keep_failed else 'path'}", failed, "replace")
    if output.save.keep:
        to = snapshot_prefix(output)
        for uri in list_snapshots(filesystem(to, conf_dir), to):
            yield Loss(f"{place}.save.keep", uri, "remove")


def find_forbidden(
    losses: Sequence[Loss], outputs: Sequence[Output], kept_paths: Sequence[KeptPath], conf_dir: str
) -> Iterator[tuple[str, str]]:
    """Yield the fields by which a job would lose files that must stay, each with the reason."""
    near: dict[str, list[tuple[KeptPath, _Place]]] = {}  # keyed by the directory that may hold many snapshots
    for loss in losses:
        try:
            if not loss.verb:
                named = [(f"outputs.{number}.path", output.path) for number, output in enumerate(outputs)]
                others = [KeptPath(place, path) for place, path in named if place != loss.place]
                problem = why_not_replace(loss.uri, [*kept_paths, *others], conf_dir)
            else:
                parent = uris.parent(loss.uri)
                if parent not in near:
                    near[parent] = list(_find_held(parent, kept_paths, conf_dir))
                problem = _why_not_lose(loss, near[parent], conf_dir)
        except StagingError as error:
            problem = str(error)
        if problem:
            yield loss.place, problem


def _find_held(uri: str, kept_paths: Iterable[KeptPath], conf_dir: str) -> Iterator[tuple[KeptPath, _Place]]:
    above = _Place(uri, conf_dir)
    return ((kept, place) for kept, place in _places_beside(uri, kept_paths, conf_dir) if above.holds(place))


def _why_not_lose(loss: Loss, near: Iterable[tuple[KeptPath, _Place]], conf_dir: str) -> str:
    lost = _Place(loss.uri, conf_dir)
    held = next(((kept, place) for kept, place in near if lost.holds(place)), None)
    return f"would {loss.verb} {_describe_held(lost, *held)}" if held else ""


def _places_beside(uri: str, kept_paths: Iterable[KeptPath], conf_dir: str) -> Iterator[tuple[KeptPath, _Place]]:
    """Yield the paths that may be on the same file system as `uri`."""
    return ((kept, _Place(kept.uri, conf_dir)) for kept in kept_paths if _kind(kept.uri) == _kind(uri))


def _describe_held(directory: _Place, kept: KeptPath, place: _Place) -> str:
    holds = "is" if place.holds(directory) else "holds"
    return f"{display_uri(directory.uri)}, which {holds} {kept.what} ({display_uri(kept.uri)})"


def directories_of(files: Iterable[str]) -> set[str]:
    """Return the directories of files that are given by URIs or paths, and for links among the files of this machine
    also the directories of their targets."""
    found = set[str]()
    for file in files:
        found.add(uris.parent(file))
        if uris.split(file)[0] == "file" and (path := Path(uris.path(file))).is_symlink():
            found.add(uris.of_local(path.resolve().parent))
    return found


def named_paths(job: JobSpec, job_directory: Path) -> Iterator[tuple[str, str, dict[str, bool]]]:
    """Yield the paths in a job's environment, secrets, commands and variables, each after its field and with its
    properties as a KeptPath."""
    for place, path in _environment_paths(job.environment, job_directory):
        yield place, path, {"whole": True}
    for name, reference in job.secrets.items():
        if reference.startswith("file:"):
            yield f"secrets.{name}", reference.partition(":")[2], {}
    for place, path in mentioned_paths(job):
        yield place, path, {"is_mentioned": True}


def _environment_paths(environment: Environment, job_directory: Path) -> Iterator[tuple[str, str]]:
    """Yield the paths of this machine from which an environment is made, each after its field."""
    yield "environment.python", environment.python
    yield "environment.archive", environment.archive.partition("#")[0]
    yield "environment.conda", environment.conda if "/" in environment.conda else ""
    if requirements := environment.requirements:
        from howdah.staging.project_files import file_to_install  # few jobs need it
        from howdah.staging.requirements_files import read_content

        yield "environment.requirements", requirements
        with contextlib.suppress(SpecError, StagingError):  # reported when the environment is staged
            found = read_content(file_to_install(job_directory / requirements))
            paths = (*found.texts, *found.packages, *found.linked)
            yield from (("environment.requirements", str(path)) for path in paths)


def why_not_store(uri: str, kept_paths: Iterable[KeptPath], conf_dir: str) -> str:
    """Return why the files that a task writes must not be stored in the directory `uri`; "" if they may. They may be
    stored in a directory of the job's code and beside an input: files that are replaced there are kept. Checkpoints and
    event files may share a directory.

    Raises:
        StagingError: a file system does not answer.
    """
    _is_same_hdfs.cache_clear()
    directory = _Place(uri, conf_dir)
    for kept in kept_paths:
        if kept.what == "checkpoint.path" or kept.is_around_files or _kind(kept.uri) != _kind(uri):
            continue
        place = _Place(kept.uri, conf_dir)
        is_same = place.holds(directory)
        if directory.holds(place) and (is_same or not kept.what.startswith("inputs.")):
            holds = "is" if is_same else "holds"
            shown = f"{kept.what} ({display_uri(kept.uri)})"
            return f"is {display_uri(uri)}, which {holds} {shown}: name a directory for the copy of `local` alone"
    return ""


def list_written_places(outputs: Sequence[Output], checkpoint: Checkpoint) -> list[KeptPath]:
    """Return where a job writes: the paths of its outputs, its checkpoint, and the places beside outputs."""
    found = [KeptPath(f"outputs.{number}.path", output.path) for number, output in enumerate(outputs)]
    found += [KeptPath("checkpoint.path", checkpoint.path)] if checkpoint.path else []
    for number, output in enumerate(outputs):
        found += [KeptPath(f"outputs.{number}.save", f"{output.path}.saved")] if not output.save.to else []
        found += [KeptPath(f"outputs.{number}.path", f"{output.path}.failed")] if output.keep_failed else []
    return found


def find_shared_places(paths: Sequence[KeptPath], conf_dir: str) -> Iterator[tuple[KeptPath, KeptPath]]:
    """Yield pairs of paths where one path is, or holds, the other under some name."""
    places = [_Place(path.uri, conf_dir) for path in paths] if len(paths) > 1 else []
    named: dict[object, list[int]] = {}
    for number, place in enumerate(places):
        for mark in place.marks:
            named.setdefault(mark, []).append(number)
    pairs = {
        (min(number, other), max(number, other))
        for number, place in enumerate(places)
        for mark in place.marks_above
        for other in named.get(mark, ())
        if other != number
    }
    for one, two in sorted(pairs):  # of thousands of places few share a mark
        first, second, place, other_place = paths[one], paths[two], places[one], places[two]
        if _kind(first.uri) == _kind(second.uri) and (place.holds(other_place) or other_place.holds(place)):
            yield first, second


def _kind(uri: str) -> str:
    scheme = uris.split(uri)[0]
    return _KINDS.get(scheme, scheme)


class _Place:
    """A path with all of its known names."""

    def __init__(self, uri: str, conf_dir: str) -> None:
        self.uri, self._conf_dir = uris.normalize(uri), conf_dir
        self.spellings = {self.uri, filesystem(uri, conf_dir).resolve(self.uri)}

    @property
    def marks(self) -> set[object]:
        """Return the place's paths, and its number on this machine. A place that holds another one has one of them in
        common with its `marks_above`."""
        return {mark for spelling in self.spellings for mark in _marks(spelling, PurePosixPath(uris.path(spelling)))}

    @property
    def marks_above(self) -> set[object]:
        """Return the marks of the place, and of the directories in which it lies."""
        paths = ((spelling, PurePosixPath(uris.path(spelling))) for spelling in self.spellings)
        above = ((spelling, each) for spelling, path in paths for each in (path, *path.parents))
        return {mark for spelling, path in above for mark in _marks(spelling, path)}

    def holds(self, other: _Place) -> bool:
        """Return whether `other` is this place, or lies in it."""
        return any(
            self._is_above(above, below) for above in self.spellings for below in other.spellings
        ) or self._is_mounted_above(other)

    def _is_above(self, above: str, below: str) -> bool:
        path = uris.path(above).rstrip("/")
        if uris.split(above)[0] != uris.split(below)[0] or not f"{uris.path(below)}/".startswith(f"{path}/"):
            return False
        return uris.root(above) == uris.root(below) or _is_same_hdfs(above, uris.root(below), self._conf_dir)

    def _is_mounted_above(self, other: _Place) -> bool:
        """Return whether `other` lies in the same directory of this machine, mounted in a second place."""
        if {uris.split(self.uri)[0], uris.split(other.uri)[0]} != {"file"}:
            return False
        own = _file_id(Path(uris.path(self.uri)))
        paths = [Path(uris.path(spelling)) for spelling in other.spellings]
        return own is not None and any(_file_id(each) == own for path in paths for each in (path, *path.parents))


def _marks(spelling: str, path: PurePosixPath) -> Iterator[object]:
    yield str(path)
    if uris.split(spelling)[0] == "file" and (found := _file_id(Path(path))) is not None:
        yield found


def _file_id(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


@cache
def _is_same_hdfs(uri: str, root: str, conf_dir: str) -> bool:
    """Return whether two authorities of HDFS lead to one NameNode: the content of `uri` is the same on both."""
    if uris.split(uri)[0] != "hdfs":
        return False
    there = uris.join(root, uris.path(uri))
    for _ in range(_LOOKS):
        before = _attributes(uri, conf_dir)
        found = _attributes(there, conf_dir)
        if before is None or found in (before, _attributes(uri, conf_dir)):
            return before is not None
    return False


def _attributes(uri: str, conf_dir: str) -> Entry | None:
    found = filesystem(uri, conf_dir).stat(uri)
    return replace(found, uri="", accessed_ms=0) if found else None


def display_uri(uri: str) -> str:
    """Return the path of a local file, and the URI of any other."""
    return uris.path(uri) if uris.split(uri)[0] == "file" else uri
