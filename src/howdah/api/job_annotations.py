"""The note, the tags and the archive mark that people give a job. Each job's are in a small file in the home of the
job.

The rule: the owner of a job's home may annotate the job, and nobody else (docs/adr/0024). The files are read by servers
that have more rights than the writers, so a reader trusts nothing in them, and on a shared file system it reads only
files of the home's owner.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from howdah.errors import InvalidRequest, NotFound, NotPermitted, StagingError
from howdah.hadoop.conf import user_on
from howdah.localfiles.change_lock import changing
from howdah.spec import uris
from howdah.spec.units import LATEST_S
from howdah.spec.values import dataclass
from howdah.storage.files_of_owner import FilesOfOwner
from howdah.storage.filesystem import FileSystem

DIRECTORY, SUFFIX = "annotations", ".json"
MAX_NOTE, MAX_TAG, MAX_TAGS = 2000, 100, 20
"""The most characters of a note and of a tag, and the most tags that people may give a job."""
MAX_KEPT_TAGS = 200
"""The most tags of a job whose job file has more tags than people may give."""
MAX_BYTES = 512 << 10
"""The largest file that is read. The longest note and the most tags take half of that, even if every character is
`\\ud83d\\ude00`."""
VERSION = 1
FIELDS = ("note", "tags", "archived")
_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that a terminal or a browser would act on. A note may contain line ends and tabs, but none of these."""
_SPACES = re.compile(r"[\t\n]")


@dataclass(frozen=True)
class Annotation:
    """The annotation that people have added to a job."""

    note: str = ""
    """The note about the job, as plain text; "" for none."""
    tags: tuple[str, ...] | None = None
    """The tags of the job in place of those of its job file; None keeps those."""
    archived: bool = False
    """The job is left out of lists unless they are asked for it."""
    changed: float = 0.0
    """When the annotation was changed last, in epoch seconds."""
    by: str = ""
    """The user who changed the annotation last."""


NONE = Annotation()
EditTags = Callable[["tuple[str, ...] | None"], "list[str]"]
"""A function that is called with the tags that are stored (None: those of the job file), and returns those to store."""


def home_of(directory: str) -> str:
    """Return the home that has a job's directory."""
    return uris.parent(uris.parent(directory))


def annotation_uri(home: str, job_id: str) -> str:
    """Return the URI of a job's annotation."""
    return uris.join(home, DIRECTORY, job_id + SUFFIX)


def job_of_file(uri: str) -> str:
    """Return the id of the job whose annotation this file is; "" if it is no annotation."""
    name = uris.name(uri)
    job_id = name.removesuffix(SUFFIX)
    return job_id if name.endswith(SUFFIX) and _JOB_ID.fullmatch(job_id) else ""


def as_home_owner(files: FileSystem, home: str, owner: str) -> FileSystem:
    """Return `files` restricted to the files of the owner of `home`, if `home` is on a file system with links: then a
    link to a file that its owner may not read shows nothing."""
    return FilesOfOwner(files, owner) if uris.split(home)[0] == "file" else files


def read(files: FileSystem, home: str, job_id: str) -> Annotation:
    """Return the annotation of a job; `NONE` if it has none.

    Raises:
        StagingError, EngineUnavailable: it can't be read.
    """
    return parse(_stored(files, annotation_uri(home, job_id)))


def parse(stored: Mapping[str, Any]) -> Annotation:
    """Return the annotation in a file's JSON; wrong values count as missing."""
    note, tags, changed = stored.get("note"), stored.get("tags"), stored.get("changed")
    moment = 0.0
    if isinstance(changed, (int, float)) and not isinstance(changed, bool):
        with contextlib.suppress(OverflowError):  # an integer of hundreds of digits
            moment = float(changed)
    return Annotation(
        note=_CONTROL.sub("", note)[:MAX_NOTE] if isinstance(note, str) else "",
        tags=_clean_tags(tags) if isinstance(tags, list) else None,
        archived=stored.get("archived") is True,
        changed=moment if 0 <= moment <= LATEST_S else 0.0,
        by=_clean_line(stored.get("by"))[:MAX_TAG],
    )


def check_changes(changes: Mapping[str, Any], present_tags: int = 0) -> dict[str, Any]:
    """Return the changes that are fields of an annotation, in their stored form. Fields that are missing or null stay
    unchanged. A job that has more tags (`present_tags`) than people may give may keep that number.

    Raises:
        InvalidRequest: a field has a value that is not allowed.
    """
    found = {name: changes[name] for name in FIELDS if changes.get(name) is not None}
    note, tags, archived = found.get("note", ""), found.get("tags", []), found.get("archived", False)
    if not isinstance(note, str) or len(note) > MAX_NOTE or _CONTROL.search(note):
        raise InvalidRequest(f"note must be {MAX_NOTE} characters of plain text at most", "note")
    most_tags = max(MAX_TAGS, min(present_tags, MAX_KEPT_TAGS))
    if not isinstance(tags, list) or len(tags) > most_tags or not all(map(_is_tag, tags)):
        raise InvalidRequest(
            f"tags must be {MAX_TAGS} at most, each of 1 to {MAX_TAG} characters without a comma", "tags"
        )
    if not isinstance(archived, bool):
        raise InvalidRequest(f"archived is {str(archived)[:40]!r}, must be true or false", "archived")
    if "note" in found:
        found["note"] = note.strip()
    if "tags" in found:
        found["tags"] = list(dict.fromkeys(tag.strip() for tag in tags))
    if not found:
        raise InvalidRequest(f"one of {', '.join(FIELDS)} must be given", "note")
    return found


def change(
    files: FileSystem,
    home: str,
    job_id: str,
    changes: Mapping[str, Any],
    by: str,
    now: float,
    conf_dir: str = "",
    present_tags: int = 0,
    edit_tags: EditTags | None = None,
) -> Annotation:
    """Change fields of a job's annotation, publish it by one rename, and return it. The configuration in `conf_dir` is
    the one by which `files` are read; `present_tags` is the number of the job's tags including those of its file. On
    this machine's file systems no change of another process gets lost meanwhile.

    Raises:
        InvalidRequest: a field has a value that is not allowed. NotFound: there is no job of this id in the home.
        NotPermitted: this user does not own the home, or may not write in it.
        EngineUnavailable: the file system does not answer.
    """
    checked = check_changes(changes, present_tags) if changes or edit_tags is None else {}
    jobs, uri = uris.join(home, "jobs"), annotation_uri(home, job_id)
    try:
        above = files.stat(jobs)
        if above is None or not _JOB_ID.fullmatch(job_id) or not files.exists(uris.join(jobs, job_id)):
            raise NotFound(f"no job {job_id[:80]} in {home}", "job")
        if not _is_own(home, above.owner, conf_dir):
            raise NotPermitted(f"only the owner of {uris.path(home)} may annotate its jobs", "job")
        files.mkdirs(uris.parent(uri), (above.mode & 0o777) or 0o755)
        with _changing(uri):
            before = _stored(files, uri)
            if edit_tags is not None:
                checked |= check_changes({"tags": edit_tags(parse(before).tags)}, present_tags)
            if not before and files.exists(uri):
                files.rename(uri, f"{uri}.{now:.0f}")  # damaged: it may still hold text that people wrote
            stored = {**before, **checked, "version": VERSION, "job": job_id, "changed": now, "by": by}
            with files.writing(uri, 0o644) as sink:
                sink.write(json.dumps(stored).encode())
    except StagingError as error:
        raise NotPermitted(f"the annotation can't be written: {error}", "job") from error
    return parse(stored)


@contextlib.contextmanager
def _changing(uri: str) -> Iterator[None]:
    with changing(Path(uris.path(uri)).with_name("all")) if uris.split(uri)[0] == "file" else contextlib.nullcontext():
        yield


def _is_own(home: str, owner: str, conf_dir: str) -> bool:
    """Return whether this user owns the home, or it is on a file system without owners.

    A process with more rights than the owner of a directory must not write through the owner's links, and a file that
    an administrator makes on HDFS would belong to the administrator: the owner could not change it.
    """
    if uris.split(home)[0] == "file":
        return owner == str(os.getuid())
    return not owner or owner == user_on(conf_dir)


def _stored(files: FileSystem, uri: str) -> dict[str, Any]:
    """Return the JSON of an annotation's file, with the fields of other versions; {} if there is none."""
    entry = files.stat(uri)
    if entry is None or entry.is_dir or not 0 < entry.size <= MAX_BYTES:  # a pipe, which has no size, may block
        return {}
    try:
        found = json.loads(files.head(uri, MAX_BYTES))
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _is_tag(tag: Any) -> bool:
    return (
        isinstance(tag, str)
        and 0 < len(tag.strip()) <= MAX_TAG
        and "," not in tag
        and not _CONTROL.search(tag)
        and not _SPACES.search(tag)
    )


def _clean_tags(tags: Iterable[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag.strip() for tag in tags if _is_tag(tag)))[:MAX_KEPT_TAGS]


def _clean_line(text: Any) -> str:
    return _SPACES.sub(" ", _CONTROL.sub("", text)) if isinstance(text, str) else ""
