"""The index's copy of the annotations: the files that were read, and their effect on the rows of jobs.

The rule: an annotation may be read before or after its job's log. Its table keeps the annotation, and a job's row is
updated whenever its log or its annotation is written to the index.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from howdah.api.job_annotations import Annotation
from howdah.spec.values import dataclass

TABLE = """
CREATE TABLE annotation (
  root TEXT, id TEXT, modified_ms INTEGER, size INTEGER, note TEXT, tags TEXT, archived INTEGER, PRIMARY KEY (root, id)
) WITHOUT ROWID;
"""
_ANEW = -1
"""A value of `folder_ms` that no directory has: it makes the scanner read the job's log from its beginning."""


@dataclass(frozen=True)
class ReadAnnotation:
    """An annotation with the facts about its file."""

    job: str
    """The job's id."""
    modified_ms: int
    """When the file was written; 0: it is to be read again."""
    size: int
    """The size of the annotation's file in bytes."""
    annotation: Annotation
    """The content of the annotation's file."""


def known_files(connection: sqlite3.Connection, root: str) -> dict[str, tuple[int, int]]:
    """Return modification time and size of each file below `root` that was read, by the job's id."""
    rows = connection.execute("SELECT id, modified_ms, size FROM annotation WHERE root = ?", (root,))
    return {id_: (modified_ms, size) for id_, modified_ms, size in rows}


def store(connection: sqlite3.Connection, root: str, read: Iterable[ReadAnnotation], gone: Iterable[str] = ()) -> None:
    """Store annotations below `root`, and forget those of the jobs in `gone`; bring the jobs' rows up to date."""
    for each in read:
        noted = each.annotation
        tags = None if noted.tags is None else json.dumps(noted.tags)
        _read_anew_without_tags(connection, root, each.job, tags)
        row = (root, each.job, each.modified_ms, each.size, noted.note, tags, noted.archived)
        connection.execute("INSERT OR REPLACE INTO annotation VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        apply(connection, root, [each.job])
    for id_ in gone:
        _read_anew_without_tags(connection, root, id_, None)
        connection.execute("DELETE FROM annotation WHERE root = ? AND id = ?", (root, id_))
        if number := _number_of(connection, root, id_):
            _update_row(connection, number, "", False)


def _read_anew_without_tags(connection: sqlite3.Connection, root: str, id_: str, tags: str | None) -> None:
    """Have a job's log read again if its tags are those of the job file again, which only the log has."""
    if tags is None:
        anew = "UPDATE job SET folder_ms = ? WHERE root = ? AND id = ? AND EXISTS "
        had_tags = "(SELECT 1 FROM annotation a WHERE a.root = job.root AND a.id = job.id AND a.tags IS NOT NULL)"
        connection.execute(anew + had_tags, (_ANEW, root, id_))


def apply(connection: sqlite3.Connection, root: str, ids: Sequence[str]) -> None:
    """Update the rows of these jobs by their annotations."""
    for begin in range(0, len(ids), 500):
        part = ids[begin : begin + 500]
        found = connection.execute(
            f"SELECT id, note, tags, archived FROM annotation WHERE root = ? AND id IN ({', '.join('?' * len(part))})",  # noqa: S608 - our own words
            (root, *part),
        ).fetchall()
        for id_, note, tags, archived in found:
            number = _number_of(connection, root, id_)
            if number and tags is not None:
                connection.execute("DELETE FROM tag WHERE job = ?", (number,))
                connection.executemany("INSERT INTO tag VALUES (?, ?)", [(number, tag) for tag in json.loads(tags)])
            if number:
                _update_row(connection, number, note, archived)


def noted(note: str, tags: Iterable[str]) -> str:
    """Return the text of a note and of a job's present tags, in which words are searched."""
    return " ".join((note, *tags)).casefold()


def _number_of(connection: sqlite3.Connection, root: str, id_: str) -> int:
    """Return the number of a job's row; 0 if there is none."""
    found = connection.execute("SELECT number FROM job WHERE root = ? AND id = ?", (root, id_)).fetchone()
    return int(found[0]) if found else 0


def _update_row(connection: sqlite3.Connection, number: int, note: str, archived: bool) -> None:
    tags = [name for (name,) in connection.execute("SELECT name FROM tag WHERE job = ?", (number,))]
    update = "UPDATE job SET note = ?, archived = ?, noted = ? WHERE number = ?"
    connection.execute(update, (note, archived, noted(note, tags), number))
