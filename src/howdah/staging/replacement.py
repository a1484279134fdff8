"""Refuses outputs that would replace what has to stay: what the job reads, its code and checkpoints, and directories
that hold such things, whatever name they are called by.

An output that may `overwrite` replaces all that is at its path. What is there may be a data set that the output's path
was mistaken for, or a directory above it. So each path that the job names, and each file that its inputs have, is
compared with the output's path, after links, mounts and the names of one HDFS have been followed.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from howdah.spec import uris
from howdah.spec.job import JobSpec
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Entry
from howdah.storage.published import is_published

_PATH = re.compile(r"(?:^|(?<=[\s='\":,;]))(?:[A-Za-z][A-Za-z0-9+.-]*://|file:/|~?/|\$HOME/|\$\{HOME\}/)[^\s'\",;]*")
_HOME = re.compile(r"~(?=/)|\$HOME(?=/)|\$\{HOME\}")
_RESERVED = "/.reserved/"  # below it HDFS shows all of itself once more
_KINDS = {"viewfs": "hdfs", "s3a": "s3", "gcs": "gs", "az": "abfs"}
"""Schemes by which the same files can be named as by another one."""
_LOOKS = 3


@dataclass(frozen=True)
class KeptPath:
    """A path that no output may replace."""

    what: str
    """What it is: the field of the job that names it, or a sentence's object (`the home directory`)."""
    uri: str
    """The URI that the job names, before links and mounts are followed."""
    whole: bool = False
    """Whether what lies below belongs to it: an output there replaces only what a job has published there."""
    is_mentioned: bool = False
    """Whether a command or a variable mentions it, which may mean what is to be replaced: published output is."""


def personal_paths(job_directory: Path) -> list[KeptPath]:
    """Return the directories of this machine in which a person's own files are."""
    directories = {
        "the job file's directory": job_directory,
        "the current directory": Path.cwd(),
        "your home directory": Path.home(),
    }
    return [KeptPath(what, uris.of_local(path)) for what, path in directories.items()]


def mentioned_paths(job: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the absolute paths in a job's commands and variables, each after its field: what programs read in place."""
    texts = [("env", value) for value in job.env.values()]
    for name, role in job.roles.items():
        words = [role.command] if isinstance(role.command, str) else role.command
        texts += [(f"roles.{name}.command", word) for word in words]
        texts += [(f"roles.{name}.env", value) for value in role.env.values()]
    for place, text in texts:
        yield from ((place, _HOME.sub(lambda _: str(Path.home()), path, count=1)) for path in _PATH.findall(text))


def why_not_replace(uri: str, kept_paths: Iterable[KeptPath], conf_dir: str) -> str:
    """Return why an output must not replace what is, or will be, at `uri`; "" if it may.

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
    output = _Place(uri, conf_dir)
    is_ours = found is None or is_published(fs, uri) or not fs.children(uri)
    for kept in kept_paths:
        if _kind(kept.uri) != _kind(uri):
            continue
        place = _Place(kept.uri, conf_dir)
        if output.holds(place) and not (kept.is_mentioned and is_ours):
            holds = "is" if place.holds(output) else "holds"
            return f"would replace {shown}, which {holds} {kept.what} ({display_uri(kept.uri)})"
        if kept.whole and not is_ours and place.holds(output):
            return (
                f"would replace {shown}, which lies in {kept.what} ({display_uri(kept.uri)}), and no job of howdah's"
                " has published it"
            )
    return ""


def why_not_store(uri: str, kept_paths: Iterable[KeptPath], conf_dir: str) -> str:
    """Return why what a task writes must not be stored among what is at `uri`; "" if it may. In a directory of the
    job's code it may: what is replaced there is kept. Checkpoints and event files may have one directory.

    Raises:
        StagingError: a file system does not answer.
    """
    _is_same_hdfs.cache_clear()
    directory = _Place(uri, conf_dir)
    for kept in kept_paths:
        if kept.what == "checkpoint.path" or _kind(kept.uri) != _kind(uri):
            continue
        place = _Place(kept.uri, conf_dir)
        if directory.holds(place):
            holds = "is" if place.holds(directory) else "holds"
            shown = f"{kept.what} ({display_uri(kept.uri)})"
            return f"is {display_uri(uri)}, which {holds} {shown}: name a directory for the copy of `local` alone"
    return ""


def find_shared_places(paths: Sequence[KeptPath], conf_dir: str) -> Iterator[tuple[KeptPath, KeptPath]]:
    """Yield pairs of paths of which one is, or holds, the other under some name."""
    places = [(path, _Place(path.uri, conf_dir)) for path in paths] if len(paths) > 1 else []
    for (first, place), (second, other) in itertools.combinations(places, 2):
        if _kind(first.uri) == _kind(second.uri) and (place.holds(other) or other.holds(place)):
            yield first, second


def _kind(uri: str) -> str:
    scheme = uris.split(uri)[0]
    return _KINDS.get(scheme, scheme)


class _Place:
    """A path under all the names that are known for it."""

    def __init__(self, uri: str, conf_dir: str) -> None:
        self.uri, self._conf_dir = uris.normalize(uri), conf_dir
        self.spellings = {self.uri, filesystem(uri, conf_dir).resolve(self.uri)}

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


def _file_id(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


@cache
def _is_same_hdfs(uri: str, root: str, conf_dir: str) -> bool:
    """Return whether two authorities of HDFS lead to one NameNode: what is at `uri` is the same on both."""
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
