"""Removes jobs that ended long ago from the index, and their directories if the options say so.

The rule: what is removed is exactly `<home>/jobs/<id>`, of a job that has ended, in a home whose owner owns it, and
only if this user is that owner. Anything else stays, and is told of. Where a file system does not answer, the home's
jobs stay in the index as well: without it nobody would come back for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from howdah.errors import HowdahError, StagingError
from howdah.history.index import Index
from howdah.spec import uris
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import ConnectionBroken

AT_ONCE, MOST_TOLD = 500, 5
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def sweep(index: Index, before: float, owner: Callable[[str], str] | None, conf_dir: str) -> list[str]:
    """Remove jobs that ended before `before` (epoch seconds); return sentences about directories that stay.

    With `owner`, which tells who we are where a URI is, our own directories of these jobs are removed.

    Raises:
        sqlite3.Error: the index can't be written.
    """
    told: list[str] = []
    away: set[str] = set()
    while rows := index.ended_before(before, AT_ONCE, away):
        gone = []
        for id_, directory, root in rows:
            try:
                if owner is not None and root not in away:
                    told += filter(None, [_remove(id_, directory, root, owner(directory), conf_dir)])
            except HowdahError as error:
                away.add(root)
                told.append(f"jobs of {root} are removed later: {error}")
            if root not in away:
                gone.append(id_)
        index.drop(gone)
    return told if len(told) <= MOST_TOLD else [*told[:MOST_TOLD], f"{len(told) - MOST_TOLD} more directories stay"]


def _remove(id_: str, directory: str, root: str, me: str, conf_dir: str) -> str:
    """Why it stays for good, else "".

    Raises:
        HowdahError: nobody knows now whether it may go.
    """
    jobs = uris.join(root, "jobs")
    if not _SAFE.fullmatch(id_) or uris.normal(directory) != uris.normal(uris.join(jobs, id_)):
        return f"{directory} stays: it is not {id_} of {jobs}"
    files = filesystem(directory, conf_dir)
    try:
        entry, home = files.stat(directory), files.stat(jobs)
        if entry is None or home is None:
            return ""
        if not entry.is_dir or not entry.owner == home.owner == me:
            return f"{directory} stays: it is {entry.owner}'s in a home of {home.owner}'s, and this is {me}"
        files.delete(directory)
    except ConnectionBroken:
        raise
    except StagingError as error:
        return f"{directory} stays: {error}"
    return ""
