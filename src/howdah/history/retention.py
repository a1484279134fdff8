"""Removes jobs that ended long ago from the index, and their directories if the options say so.

The rule: only `<home>/jobs/<id>` of a job that has ended is removed, and only if this user owns it and its home. Any
other directory stays, and a sentence says so. If a file system does not answer, the home's jobs stay in the index as
well, because no later sweep would find their directories without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from howdah.api.job_annotations import annotation_uri
from howdah.errors import HowdahError, StagingError
from howdah.history.index import Index
from howdah.spec import uris
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import ConnectionBroken

BATCH_JOBS, MAX_SENTENCES = 500, 5
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def sweep(
    index: Index,
    before: float,
    owner: Callable[[str], str] | None,
    conf_dir_of: Callable[[str], str] = lambda _: "",
) -> list[str]:
    """Remove jobs that ended before `before` (epoch seconds); return sentences about directories that stay.

    With `owner`, which returns this user's name on the file system of a URI, the user's own directories of these jobs
    are removed, too. `conf_dir_of` returns the directory of the Hadoop configuration by which a URI is read.

    Raises:
        sqlite3.Error: the index can't be written.
    """
    sentences: list[str] = []
    away: set[str] = set()
    while rows := index.ended_before(before, BATCH_JOBS, away):
        gone = []
        for id_, directory, root in rows:
            try:
                if owner is not None and root not in away:
                    sentences += filter(None, [_remove(id_, directory, root, owner(directory), conf_dir_of(directory))])
            except HowdahError as error:
                away.add(root)
                sentences.append(f"jobs of {root} are removed later: {error}")
            if root not in away:
                gone.append((root, id_))
        index.drop(gone)
    more = len(sentences) - MAX_SENTENCES
    return sentences if more <= 0 else [*sentences[:MAX_SENTENCES], f"{more} more directories stay"]


def _remove(job_id: str, directory: str, root: str, me: str, conf_dir: str) -> str:
    """Remove the directory of a job; return why it stays for good, "" if it does not.

    Raises:
        HowdahError: whether it may be removed can't be found out now.
    """
    jobs = uris.join(root, "jobs")
    if not _SAFE.fullmatch(job_id) or uris.normalize(directory) != uris.normalize(uris.join(jobs, job_id)):
        return f"{directory} stays: it is not {job_id} of {jobs}"
    files = filesystem(directory, conf_dir)
    try:
        entry, home = files.stat(directory), files.stat(jobs)
        if entry is None or home is None:
            return ""
        if not entry.is_dir or not entry.owner == home.owner == me:
            return f"{directory} stays: it is {entry.owner}'s in a home of {home.owner}'s, and this is {me}"
        files.delete(directory)
        files.delete(annotation_uri(root, job_id))
    except ConnectionBroken:
        raise
    except StagingError as error:
        return f"{directory} stays: {error}"
    return ""
